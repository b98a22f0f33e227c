package helm

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/rutterhq/rutter"
)

// renderValues is what templates see: the values, the release, the capabilities.
func (p *pass) renderValues(ctx context.Context, c *chart.Chart) (common.Values, error) {
	in := p.in
	if err := chartutil.ProcessDependencies(c, p.vals); err != nil {
		return nil, chartError(in, "the dependencies of chart %s cannot be processed: %s", c.Name(), withoutValue(err))
	}
	caps, err := capabilities(in)
	if err != nil {
		return nil, err
	}
	if want := c.Metadata.KubeVersion; want != "" {
		p.useCapabilities()
		if !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
			return nil, chartError(in, "chart %s requires Kubernetes %s, and this is %s", c.Name(), want, caps.KubeVersion.Version)
		}
	}
	release := common.ReleaseOptions{Name: releaseName(in), Namespace: namespace(in), Revision: 1, IsInstall: true}
	if err := chartutil.ValidateReleaseName(release.Name); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "helm.releaseName: %q cannot be a release's name: %w", release.Name, err)
	}
	top, err := util.ToRenderValuesWithSchemaValidation(c, p.vals, release, caps, true)
	if err != nil {
		return nil, chartError(in, "the values of chart %s cannot be computed: %s", c.Name(), withoutValue(err))
	}
	if in.Options.SkipSchemaValidation {
		return top, nil
	}
	computed, err := top.Table("Values")
	if err != nil {
		return nil, chartError(in, "the values of chart %s cannot be computed: %v", c.Name(), err)
	}
	if err := p.r.validate(ctx, p.family, c, computed); err != nil {
		return nil, err
	}
	return top, nil
}

var typeMismatch = regexp.MustCompile(`^type mismatch on (.*): %!t\(`)

// withoutValue is Helm's message without the value in it, which may be a secret.
func withoutValue(err error) string {
	if m := typeMismatch.FindStringSubmatch(err.Error()); m != nil {
		return "the value " + m[1] + " must be a mapping: it holds the values of the chart of that name"
	}
	return oneLine(err.Error())
}

func releaseName(in Input) string {
	if in.Options.ReleaseName != "" {
		return in.Options.ReleaseName
	}
	return in.AppName
}

func namespace(in Input) string {
	if in.Options.Namespace != "" {
		return in.Options.Namespace
	}
	return in.Namespace
}

// capabilities are the cluster's, or what the options say instead. As with
// --api-versions, they are added to those that Helm always assumes.
func capabilities(in Input) (*common.Capabilities, error) {
	caps := common.DefaultCapabilities.Copy()
	version := in.Options.KubeVersion
	if version == "" {
		version = in.KubeVersion
	}
	if version != "" {
		kv, err := common.ParseKubeVersion(plainVersion(version))
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "helm.kubeVersion: %q is no version of Kubernetes: %w", version, err)
		}
		caps.KubeVersion = *kv
	}
	apis := in.APIVersions
	if len(in.Options.APIVersions) > 0 {
		apis = in.Options.APIVersions
	}
	caps.APIVersions = append(slices.Clone(caps.APIVersions), apis...)
	return caps, nil
}

// plainVersion reduces a version to major.minor.patch.
func plainVersion(v string) string {
	if i := strings.IndexAny(v, "+-"); i >= 0 {
		v = v[:i]
	}
	return v
}
