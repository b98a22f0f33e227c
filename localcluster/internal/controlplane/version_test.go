package controlplane

import (
	"strings"
	"testing"

	"k8s.io/component-base/compatibility"
)

func TestReportedVersion(t *testing.T) {
	for _, tc := range []struct{ give, git, minor, reason string }{
		{"", DefaultVersion, "37", "a build of go test is not stamped"},
		{"v1.30.4", "v1.30.4", "30", "a version that is not linked in"},
		{"v1.36.0+k3s1", "v1.36.0+k3s1", "36", "a distribution's suffix"},
	} {
		r, err := parseVersion(tc.give)
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		info := r.of(compatibility.NewEffectiveVersionFromString("1.37", "", "")).Info()
		if info.GitVersion != tc.git || info.Minor != tc.minor || info.Major != "1" {
			t.Errorf("%s: reports %+v", tc.reason, info)
		}
	}
	for _, bad := range []string{"latest", "1", "v1.36"} {
		if _, err := parseVersion(bad); err == nil || !strings.Contains(err.Error(), "--kube-version") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
