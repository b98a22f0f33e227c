package controlplane

import (
	"fmt"
	"strconv"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
)

// DefaultVersion is the Kubernetes that is linked in. A build that was not
// stamped with a version reports it.
const DefaultVersion = "v1.37.2"

// unstamped is what Kubernetes calls itself in such a build.
const unstamped = "v0.0.0-master+$Format:%H$"

// reportedVersion is an API server's version as its clients see it. What the
// server can do stays that of the version that is linked in.
type reportedVersion struct {
	compatibility.EffectiveVersion
	git          string
	major, minor string
}

// parseVersion reads the version to report; empty means the real one.
func parseVersion(v string) (reportedVersion, error) {
	if v == "" {
		if v = baseversion.Get().GitVersion; v == unstamped {
			v = DefaultVersion
		}
	}
	parsed, err := utilversion.ParseSemantic(v)
	if err != nil {
		return reportedVersion{}, fmt.Errorf("--kube-version must be like v1.36.0 or v1.36.0+k3s1: %w", err)
	}
	number := func(n uint) string { return strconv.FormatUint(uint64(n), 10) }
	return reportedVersion{git: v, major: number(parsed.Major()), minor: number(parsed.Minor())}, nil
}

// of makes real, the server's own version, report this one.
func (r reportedVersion) of(real compatibility.EffectiveVersion) compatibility.EffectiveVersion {
	r.EffectiveVersion = real
	return r
}

// Info is what /version answers.
func (r reportedVersion) Info() *version.Info {
	info := r.EffectiveVersion.Info()
	if info == nil {
		return nil
	}
	info.GitVersion, info.Major, info.Minor = r.git, r.major, r.minor
	return info
}
