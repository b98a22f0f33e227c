// Package helm renders a chart with the result of `helm template` (reference
// 1.6): Helm's own library reads charts, computes the values and the
// dependencies and sorts the output.
//
// Ring: adapter (render). Templates are somebody else's program, so they are
// executed here rather than in Helm's engine: with a limit on time, on what
// they write and on what they build, without network or environment, and with a
// cluster only where an operator lets them look. A test compares the two
// engines, and test/parity/helm compares the results with those of the helm
// program.
package helm

import (
	"context"
	"fmt"
	"path"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Limits bounds what a chart may do, and what is kept in memory of charts.
type Limits struct {
	// MaxOutputBytes bounds what all templates write together; default 64 MiB.
	MaxOutputBytes int64
	// MaxCacheBytes bounds the charts that are kept parsed, by the size of their
	// files; default 32 MiB. Parsed templates take as much again.
	MaxCacheBytes int64
}

// Renderer renders charts. It is safe for concurrent use.
type Renderer struct {
	limits  Limits
	charts  *cache[*loaded]
	parsed  *cache[*templates]
	schemas *cache[*schema]
}

// New returns a Renderer.
func New(limits Limits) *Renderer {
	if limits.MaxOutputBytes <= 0 {
		limits.MaxOutputBytes = 64 << 20
	}
	if limits.MaxCacheBytes <= 0 {
		limits.MaxCacheBytes = 32 << 20
	}
	return &Renderer{
		limits:  limits,
		charts:  newCache[*loaded](limits.MaxCacheBytes),
		parsed:  newCache[*templates](limits.MaxCacheBytes),
		schemas: newCache[*schema](limits.MaxCacheBytes / 4),
	}
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
	// Project restricts the credentials with which dependencies and values files are fetched.
	Project string
	// AppName is the default of the release's name, Namespace that of its namespace.
	AppName   string
	Namespace string
	// KubeVersion and APIVersions are the cluster's.
	KubeVersion string
	APIVersions []string
	// ValuesFileSchemes are the protocols of remote values files; nil means http
	// and https, an empty list none.
	ValuesFileSchemes []string
}

// Render returns the objects that `helm template` would print, in its order,
// and warnings. Fields that come out differently each time are named on their
// objects.
func (r *Renderer) Render(ctx context.Context, in Input) (objs []rutter.Object, warnings []string, err error) {
	defer recovered(in, &err)
	f, err := r.family(in)
	if err != nil {
		return nil, nil, err
	}
	vals, err := values(in)
	if err != nil {
		return nil, nil, err
	}
	p := &pass{r: r, in: in, family: f, vals: vals, looked: map[string]map[string]any{}}
	first := &chance{}
	objs, warnings, err = p.run(ctx, first)
	if err != nil || !first.called {
		return objs, warnings, err
	}
	again, _, err := p.run(ctx, first.second())
	if err != nil {
		return nil, nil, fmt.Errorf("render a second time, because the chart calls functions of chance: %w", err)
	}
	random, err := findRandom(objs, again)
	if err != nil {
		return nil, nil, chartError(in, "%v", err)
	}
	if len(random) > 0 {
		in.Repo.Secret()
	}
	return objs, append(warnings, random...), nil
}

// recovered turns a panic of the library on hostile input into the chart's error.
func recovered(in Input, err *error) {
	if p := recover(); p != nil {
		*err = chartError(in, "the chart cannot be rendered: %s", oneLine(fmt.Sprint(p)))
	}
}

// family loads the chart and what it depends on.
func (r *Renderer) family(in Input) (*family, error) {
	f, err := resolver{r: r, in: in}.family(in.Repo, in.Path, maxDependencyDepth)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(f.chart.Metadata.Type, "library") {
		return nil, chartError(in, "is a library chart, which renders nothing by itself: use a chart that depends on it")
	}
	return f, nil
}

func chartError(in Input, format string, args ...any) error {
	return &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(in.Path, "Chart.yaml"), Message: fmt.Sprintf(format, args...)}
}

// pass renders the same inputs, once or twice.
type pass struct {
	r      *Renderer
	in     Input
	family *family
	vals   map[string]any
	// looked is what look-ups have found: both runs see the same cluster.
	looked map[string]map[string]any
}

func (p *pass) run(ctx context.Context, c *chance) ([]rutter.Object, []string, error) {
	ch := p.family.clone()
	top, err := p.renderValues(ctx, ch)
	if err != nil {
		return nil, nil, err
	}
	pages := map[string]page{}
	if err := collect(ch, top, pages); err != nil {
		return nil, nil, err
	}
	parsed, err := p.r.templates(ctx, p.family.identity(), ch.Name(), pages)
	if err != nil {
		return nil, nil, p.inChart(err, ch)
	}
	files, err := parsed.render(&run{ctx: ctx, chart: ch.Name(), limits: p.r.limits, lookup: p.lookup, chance: c,
		capabilities: p.useCapabilities, secret: p.in.Repo.IsSecret}, pages)
	if err != nil {
		return nil, nil, p.inChart(err, ch)
	}
	return output(p.in, ch, files, p.where(ch))
}

// lookup reads an object of the cluster once.
func (p *pass) lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	key := strings.Join([]string{apiVersion, kind, namespace, name}, "\x00")
	if obj, ok := p.looked[key]; ok {
		return obj, nil
	}
	obj, err := p.in.Repo.Lookup(apiVersion, kind, namespace, name)
	if err == nil {
		p.looked[key] = obj
	}
	return obj, err
}

// useCapabilities notes that the result depends on the cluster, unless the
// options say all there is to see of it.
func (p *pass) useCapabilities() {
	o := p.in.Options
	if p.in.Env != nil && (o.KubeVersion == "" || len(o.APIVersions) == 0) {
		p.in.Env.UseCapabilities()
	}
}

// where finds the place of a template by Helm's name for it, such as
// web/charts/db/templates/x.yaml.
func (p *pass) where(c *chart.Chart) func(name string) string {
	folders := map[string]string{}
	var walk func(c *chart.Chart)
	walk = func(c *chart.Chart) {
		folders[c.ChartFullPath()] = p.family.folder(c)
		for _, d := range c.Dependencies() {
			walk(d)
		}
	}
	walk(c)
	return func(name string) string {
		for at := name; at != "." && at != "/"; at = path.Dir(at) {
			if dir, ok := folders[at]; ok {
				return path.Join(dir, strings.TrimPrefix(name, at))
			}
		}
		return name
	}
}
