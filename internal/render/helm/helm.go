// Package helm renders a chart that lies in the repository, with the result of
// `helm template` (reference 1.6): Helm's own library loads the chart, computes
// the values and the dependencies and sorts the output.
//
// Ring: adapter (render). Templates are somebody else's program, so they are
// executed here rather than in Helm's engine: with a limit on time, on what
// they write and on what they build, without network, environment or cluster.
// A test compares the two engines.
package helm

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Limits bounds what a chart may do.
type Limits struct {
	// MaxOutputBytes bounds what all templates write together.
	MaxOutputBytes int64
}

// Renderer renders charts. It is safe for concurrent use.
type Renderer struct {
	limits Limits
}

// New returns a Renderer.
func New(limits Limits) *Renderer {
	if limits.MaxOutputBytes <= 0 {
		limits.MaxOutputBytes = 64 << 20
	}
	return &Renderer{limits: limits}
}

// Input is one render of a chart.
type Input struct {
	// Repo holds the chart at Path; Refs are the other sources that value
	// files may come from, by name.
	Repo    *record.FS
	Path    string
	Refs    map[string]*record.FS
	Options rutter.HelmOptions
	Env     *buildenv.Env
	// AppName is the default of the release's name, Namespace that of its namespace.
	AppName   string
	Namespace string
	// KubeVersion and APIVersions are the cluster's.
	KubeVersion string
	APIVersions []string
}

// Render returns the objects that `helm template` would print, in its order.
func (r *Renderer) Render(ctx context.Context, in Input) ([]rutter.Object, []string, error) {
	c, err := loadChart(in.Repo, in.Path)
	if err != nil {
		return nil, nil, err
	}
	if strings.EqualFold(c.Metadata.Type, "library") {
		return nil, nil, chartError(in, "is a library chart, which renders nothing by itself: use a chart that depends on it")
	}
	if err := dependencies(in.Repo, in.Path, c, maxDependencyDepth); err != nil {
		return nil, nil, err
	}
	vals, err := values(in)
	if err != nil {
		return nil, nil, err
	}
	top, err := renderValues(in, c, vals)
	if err != nil {
		return nil, nil, err
	}
	e := newEngine(ctx, c.Name(), r.limits)
	files, err := e.render(c, top)
	if err != nil {
		return nil, nil, inChart(err, in.Path)
	}
	return output(in, c, files)
}

func chartError(in Input, format string, args ...any) error {
	return &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(in.Path, "Chart.yaml"), Message: fmt.Sprintf(format, args...)}
}

// renderValues is what templates see: the values, the release, the capabilities.
func renderValues(in Input, c *chart.Chart, vals map[string]any) (common.Values, error) {
	if err := chartutil.ProcessDependencies(c, vals); err != nil {
		return nil, chartError(in, "the dependencies of chart %s cannot be processed: %v", c.Name(), err)
	}
	caps, err := capabilities(in)
	if err != nil {
		return nil, err
	}
	if want := c.Metadata.KubeVersion; want != "" && !chartutil.IsCompatibleRange(want, caps.KubeVersion.String()) {
		return nil, chartError(in, "chart %s requires Kubernetes %s, and this is %s", c.Name(), want, caps.KubeVersion.Version)
	}
	release := common.ReleaseOptions{Name: releaseName(in), Namespace: namespace(in), Revision: 1, IsInstall: true}
	if err := chartutil.ValidateReleaseName(release.Name); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "helm.releaseName: %q cannot be a release's name: %w", release.Name, err)
	}
	top, err := util.ToRenderValuesWithSchemaValidation(c, vals, release, caps, true)
	if err != nil {
		return nil, chartError(in, "the values of chart %s cannot be computed: %v", c.Name(), err)
	}
	if in.Options.SkipSchemaValidation {
		return top, nil
	}
	computed, err := top.Table("Values")
	if err != nil {
		return nil, chartError(in, "the values of chart %s cannot be computed: %v", c.Name(), err)
	}
	if err := validate(in.Path, c, computed); err != nil {
		return nil, err
	}
	return top, nil
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
