package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/matrix"
	"github.com/rutterhq/rutter/internal/plan"
)

// CompareConfig is what Compare needs.
type CompareConfig struct {
	REST      *rest.Config
	Namespace string
	// App names the Applications: their own name, their ApplicationSet's, or what
	// their names have besides their cluster's; Labels selects them instead.
	App    string
	Labels string
	// Clusters are the ones to compare, by name or server; all when there are none.
	Clusters []string
	Plugins  string
}

const (
	// mostColumns bounds how much is rendered and held at a time.
	mostColumns = 500
	// mostFile is the size of a file in which an origin is looked for.
	mostFile = 1 << 20
)

// Compare lays what several clusters have of one application side by side. It
// compares each with Git as Diff does, and sends nothing. What cannot be looked at
// is a column with a problem.
func Compare(ctx context.Context, cfg CompareConfig) (matrix.Matrix, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*diffTimeout, errors.New("the comparison did not end in time"))
	defer cancel()
	c, err := NewClient(cfg.REST)
	if err != nil {
		return matrix.Matrix{}, err
	}
	tmp, err := os.MkdirTemp("", "rutter-compare-")
	if err != nil {
		return matrix.Matrix{}, fmt.Errorf("make a folder for the mirror: %w", err)
	}
	defer os.RemoveAll(tmp)
	o, err := newObserver(ctx, c, DiffConfig{REST: cfg.REST, Namespace: cfg.Namespace, Plugins: cfg.Plugins}, tmp)
	if err != nil {
		return matrix.Matrix{}, err
	}
	defer o.close()
	apps, err := o.chosen(ctx, c, cfg)
	if err != nil {
		return matrix.Matrix{}, err
	}
	projects, err := readProjects(ctx, c, cfg.Namespace)
	if err != nil {
		return matrix.Matrix{}, err
	}
	tracking, err := readTracking(ctx, c, cfg.Namespace)
	if err != nil {
		return matrix.Matrix{}, err
	}
	units := make([]rutter.Unit, len(apps))
	for i := range apps {
		apps[i].Spec.SyncPolicy = withoutAutomation(apps[i].Spec.SyncPolicy)
		units[i], _ = argo.ToUnit(&apps[i], argo.Config{Namespace: cfg.Namespace, Tracking: tracking}, projects)
	}
	excluded, err := readScope(ctx, c, cfg.Namespace)
	if err != nil {
		return matrix.Matrix{}, err
	}
	columns := o.columns(ctx, units, excluded)
	if ctx.Err() != nil {
		return matrix.Matrix{}, fmt.Errorf("compare clusters: %w", context.Cause(ctx))
	}
	nameColumns(columns)
	return matrix.Of(columns), nil
}

// readScope is what the settings exclude from all comparisons.
func readScope(ctx context.Context, c client.Client, namespace string) (*compare.Scope, error) {
	var cm corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argo.ConfigMapName}, &cm); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", argo.ConfigMapName, err)
	}
	settings, _ := argo.ParseComparison(&cm) // the controller warns of what cannot be read
	return compare.NewScope(settings)
}

// columns looks at all units. A cluster that hangs does not take the time of those
// that answered.
func (o *observer) columns(ctx context.Context, units []rutter.Unit, excluded *compare.Scope) []matrix.Column {
	looking, stop := context.WithTimeout(ctx, diffTimeout)
	reports := o.observeAll(looking, units)
	stop()
	files := fileSet{}
	out := make([]matrix.Column, len(units))
	for i, u := range units {
		report, known := reports[u.ID]
		asking, cancel := context.WithTimeoutCause(ctx, askTimeout, errors.New("the cluster does not answer in time"))
		out[i] = o.column(asking, u, report, known)
		if out[i].Problem == "" {
			if err := o.declared(asking, u, &out[i], files, excluded); err != nil {
				out[i].Problem = err.Error()
			}
		}
		cancel()
	}
	return out
}

// column is what one Application has on its cluster, without what Git declares.
func (o *observer) column(ctx context.Context, u rutter.Unit, report rutter.Report, known bool) matrix.Column {
	col := matrix.Column{Cluster: cmp.Or(u.Target.Name, u.Target.Server), Application: u.ID.Name, AppNamespace: u.ID.Namespace,
		Namespace: u.Target.Namespace, Release: releaseOf(u), Report: report}
	if u.Problem != nil {
		col.Problem = u.Problem.Error()
		return col
	}
	member, err := o.member(u)
	if err != nil {
		col.Problem = err.Error()
		return col
	}
	col.Cluster = member.Info().Name
	if status, ok := o.clusters.Status(member.Info().Server); ok && !status.Reachable {
		col.Problem = "the cluster does not answer"
		if status.Err != nil {
			col.Problem += ": " + status.Err.Error()
		}
		return col
	}
	for _, c := range report.Conditions {
		if c.Type == rutter.CondComparison || c.Type == rutter.CondInvalidSpec {
			col.Problem = cmp.Or(col.Problem, c.Message)
		}
	}
	if col.Problem == "" && !known {
		col.Problem = "the comparison did not end in time"
	}
	if _, _, err := member.Version(ctx); err != nil {
		col.Problem = cmp.Or(col.Problem, "ask the cluster for its version: "+err.Error())
	}
	return col
}

// releaseOf is what a unit's charts name their objects after.
func releaseOf(u rutter.Unit) string {
	for _, src := range u.Sources {
		if src.Helm != nil && src.Helm.ReleaseName != "" {
			return src.Helm.ReleaseName
		}
	}
	return u.ID.Name
}

// declared fills in what Git declares for the unit, and where from. The render store
// answers: the comparison has rendered already.
func (o *observer) declared(ctx context.Context, u rutter.Unit, col *matrix.Column, files fileSet, excluded *compare.Scope) error {
	snaps, err := u.Snapshots(func(repo rutter.Repo) (rutter.Snapshot, error) {
		return o.sources.Snapshot(ctx, repo, rutter.ResolveOptions{MaxAge: int64(2 * diffTimeout)})
	})
	if err != nil {
		return err //nolint:wrapcheck // it names the source
	}
	member, err := o.member(u)
	if err != nil {
		return err
	}
	version, apis, err := member.Version(ctx)
	if err != nil {
		return fmt.Errorf("ask cluster %s for its version: %w", col.Cluster, err)
	}
	for i, src := range u.Sources {
		col.Revision = cmp.Or(col.Revision, snaps[i].Revision())
		if src.OnlyRef() {
			continue
		}
		req := u.Request(i, snaps)
		req.KubeVersion, req.APIVersions, req.Cluster = version, apis, member.Info().Server
		res, err := o.rendering.renderer.Render(ctx, req)
		if err != nil {
			return fmt.Errorf("%s: %w", u.SourceField(i), err)
		}
		for _, obj := range res.Objects {
			gvk := rutter.GVKOf(obj.Unstructured)
			if meta := plan.MetaOf(obj.GetAnnotations()); meta.IsHook || meta.Skip || excluded.Excludes(gvk, member.Info().Server) {
				continue // not compared with any cluster
			}
			m, err := member.Mapping(ctx, gvk)
			col.Objects = append(col.Objects, rutter.Object{Unstructured: plan.Sent(obj.Unstructured, u, err != nil || m.Namespaced), Origin: obj.Origin})
		}
		col.Files = append(col.Files, files.of(res.Inputs, snaps)...)
		col.Settings = append(col.Settings, o.settings(ctx, u, i, req, res.Manifests)...)
	}
	return nil
}

// fileSet holds each file once, however many clusters read it.
type fileSet map[rutter.Input]matrix.File

// of are the small files that a render read in the unit's own repositories.
func (f fileSet) of(inputs []rutter.Input, snaps []rutter.Snapshot) []matrix.File {
	var out []matrix.File
	for _, in := range inputs {
		if in.Kind != rutter.InputFile || in.Repo != "" || in.Hash == "" || in.Source >= len(snaps) || !isYAML(in.Path) {
			continue
		}
		id := rutter.Input{Path: in.Path, Hash: in.Hash}
		file, known := f[id]
		if !known {
			file = matrix.File{Path: in.Path, Hash: in.Hash}
			if data, err := snaps[in.Source].ReadFile(in.Path); err == nil && len(data) <= mostFile {
				file.Data = data
			}
			f[id] = file
		}
		out = append(out, file)
	}
	return out
}

// nameColumns heads the columns by their clusters, and adds the Application where a
// cluster has several.
func nameColumns(columns []matrix.Column) {
	name := func(with func(c *matrix.Column) string) {
		n := map[string]int{}
		for i := range columns {
			n[columns[i].Name]++
		}
		for i := range columns {
			if c := &columns[i]; n[c.Name] > 1 {
				c.Name = with(c)
			}
		}
	}
	for i := range columns {
		columns[i].Name = columns[i].Cluster
	}
	name(func(c *matrix.Column) string { return c.Cluster + "/" + c.Application })
	name(func(c *matrix.Column) string { return c.Cluster + "/" + c.AppNamespace + "/" + c.Application })
	slices.SortFunc(columns, func(a, b matrix.Column) int { return cmp.Compare(a.Name, b.Name) })
}
