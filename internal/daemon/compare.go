package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
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
	ctx, cancel := context.WithTimeoutCause(ctx, diffTimeout, errors.New("the comparison did not end in time"))
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
	units := make([]rutter.Unit, len(apps))
	for i := range apps {
		apps[i].Spec.SyncPolicy = withoutAutomation(apps[i].Spec.SyncPolicy)
		units[i], _ = argo.ToUnit(&apps[i], argo.Config{Namespace: cfg.Namespace}, projects)
	}
	reports := o.observeAll(ctx, units)
	columns := make([]matrix.Column, len(units))
	for i, u := range units {
		report, known := reports[u.ID]
		columns[i] = o.column(ctx, u, report, known)
	}
	nameColumns(columns)
	return matrix.Of(columns), nil
}

// chosen are the Applications that are compared.
func (o *observer) chosen(ctx context.Context, c client.Client, cfg CompareConfig) ([]v1alpha1.Application, error) {
	opts := []client.ListOption{client.InNamespace(cfg.Namespace)}
	if cfg.Labels != "" {
		selector, err := labels.Parse(cfg.Labels)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "--label %q: %w", cfg.Labels, err)
		}
		opts = append(opts, client.MatchingLabelsSelector{Selector: selector})
	}
	var list v1alpha1.ApplicationList
	if err := c.List(ctx, &list, opts...); err != nil {
		return nil, fmt.Errorf("list the Applications in namespace %q: %w", cfg.Namespace, err)
	}
	var out []v1alpha1.Application
	seen := map[string]bool{}
	for i := range list.Items {
		app := &list.Items[i]
		names := o.namesOf(app)
		if !isOf(app, cfg.App, names) {
			continue
		}
		if len(cfg.Clusters) > 0 && !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(cfg.Clusters, n) }) {
			continue
		}
		for _, n := range names {
			seen[n] = true
		}
		out = append(out, *app)
	}
	for _, want := range cfg.Clusters {
		if !seen[want] {
			return nil, rutter.Errorf(rutter.CodeNotFound, "no such Application is deployed to cluster %q: see 'rutter app list' and 'rutter cluster list'", want)
		}
	}
	switch {
	case len(out) == 0:
		return nil, rutter.Errorf(rutter.CodeNotFound, "no Application is found: --app is the name of Applications, of their ApplicationSet, or what their names have besides their cluster's; see 'rutter app list'")
	case len(out) > mostColumns:
		return nil, rutter.Errorf(rutter.CodeInvalid, "%d Applications are found, more than %d: name clusters, or a narrower label", len(out), mostColumns)
	}
	return out, nil
}

// namesOf are the names of an Application's cluster: as it is written, and the
// member's name and server where that is known.
func (o *observer) namesOf(app *v1alpha1.Application) []string {
	d := app.Spec.Destination
	names := []string{cmp.Or(d.Name, d.Server)}
	if member, err := o.clusters.Lookup(rutter.Target{Server: d.Server, Name: d.Name}); err == nil {
		names = append(names, member.Info().Name, member.Info().Server)
	}
	return names
}

// isOf reports whether an Application is one of those that name stands for; clusters
// are the names of its cluster.
func isOf(app *v1alpha1.Application, name string, clusters []string) bool {
	if name == "" || app.Name == name || app.Labels["app"] == name {
		return true
	}
	for _, owner := range app.OwnerReferences {
		if owner.Kind == "ApplicationSet" && owner.Name == name {
			return true
		}
	}
	return slices.ContainsFunc(clusters, func(c string) bool { return app.Name == name+"-"+c || app.Name == c+"-"+name })
}

// column is what one Application has on its cluster.
func (o *observer) column(ctx context.Context, u rutter.Unit, report rutter.Report, known bool) matrix.Column {
	col := matrix.Column{Cluster: cmp.Or(u.Target.Name, u.Target.Server), Application: u.ID.Name, Namespace: u.Target.Namespace, Report: report}
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
	switch {
	case !known:
		col.Problem = "the comparison did not end in time"
	case col.Problem == "":
		if err := o.declared(ctx, u, member, &col); err != nil {
			col.Problem = err.Error()
		}
	}
	return col
}

// declared fills in what Git declares for the unit, and where from. The render store
// answers: the comparison has rendered already.
func (o *observer) declared(ctx context.Context, u rutter.Unit, member rutter.Cluster, col *matrix.Column) error {
	snaps, err := u.Snapshots(func(repo rutter.Repo) (rutter.Snapshot, error) {
		return o.sources.Snapshot(ctx, repo, rutter.ResolveOptions{MaxAge: int64(diffTimeout)}) //nolint:wrapcheck // it names the repository
	})
	if err != nil {
		return err //nolint:wrapcheck // it names the source
	}
	version, apis, err := member.Version(ctx)
	if err != nil {
		return fmt.Errorf("ask cluster %s for its version: %w", col.Cluster, err)
	}
	for i, src := range u.Sources {
		col.Settings = append(col.Settings, settingsOf(u.SourceField(i), src)...)
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
			m, err := member.Mapping(ctx, plan.KindOf(obj.Unstructured))
			sent := plan.Sent(obj.Unstructured, u, err != nil || m.Namespaced)
			if !plan.MetaOf(sent.GetAnnotations()).IsHook {
				col.Objects = append(col.Objects, rutter.Object{Unstructured: sent, Origin: obj.Origin})
			}
		}
		col.Files = append(col.Files, filesOf(res.Inputs, snaps)...)
	}
	return nil
}

// filesOf reads the small files that a render read in the unit's own repositories.
func filesOf(inputs []rutter.Input, snaps []rutter.Snapshot) []matrix.File {
	var out []matrix.File
	for _, in := range inputs {
		if in.Kind != rutter.InputFile || in.Repo != "" || in.Source >= len(snaps) || !isYAML(in.Path) {
			continue
		}
		if data, err := snaps[in.Source].ReadFile(in.Path); err == nil && len(data) <= mostFile {
			out = append(out, matrix.File{Path: in.Path, Data: data})
		}
	}
	return out
}

// settingsOf are the values that an Application gives the tool of a source.
func settingsOf(field string, src rutter.Source) []matrix.Setting {
	var out []matrix.Setting
	if h := src.Helm; h != nil {
		for _, p := range h.Parameters {
			out = append(out, matrix.Setting{Field: field + ".helm.parameters." + p.Name, Value: p.Value})
		}
		out = append(out, values(field+".helm.values", []byte(h.Values))...)
		out = append(out, values(field+".helm.valuesObject", h.ValuesObject)...)
	}
	if k := src.Kustomize; k != nil {
		for _, image := range k.Images {
			_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
			out = append(out, matrix.Setting{Field: field + ".kustomize.images", Value: cmp.Or(tag, image)})
		}
		for _, r := range k.Replicas {
			out = append(out, matrix.Setting{Field: field + ".kustomize.replicas", Value: fmt.Sprint(r.Count)})
		}
		for key, value := range k.CommonAnnotations {
			out = append(out, matrix.Setting{Field: field + ".kustomize.commonAnnotations." + key, Value: value})
		}
		for key, value := range k.CommonLabels {
			out = append(out, matrix.Setting{Field: field + ".kustomize.commonLabels." + key, Value: value})
		}
		for _, s := range []matrix.Setting{{Field: ".kustomize.namePrefix", Value: k.NamePrefix}, {Field: ".kustomize.nameSuffix", Value: k.NameSuffix}} {
			if s.Value != "" {
				out = append(out, matrix.Setting{Field: field + s.Field, Value: s.Value})
			}
		}
	}
	slices.SortFunc(out, func(a, b matrix.Setting) int { return cmp.Compare(a.Field, b.Field) })
	return out
}

// values are the leaves of Helm values.
func values(field string, text []byte) []matrix.Setting {
	var tree any
	if len(text) == 0 || yaml.Unmarshal(text, &tree) != nil {
		return nil
	}
	var out []matrix.Setting
	var walk func(field string, v any)
	walk = func(field string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, e := range x {
				walk(field+"."+k, e)
			}
		case []any:
			for i, e := range x {
				walk(fmt.Sprintf("%s[%d]", field, i), e)
			}
		case string:
			out = append(out, matrix.Setting{Field: field, Value: x})
		default:
			if raw, err := json.Marshal(x); err == nil && x != nil {
				out = append(out, matrix.Setting{Field: field, Value: string(raw)})
			}
		}
	}
	walk(field, tree)
	slices.SortFunc(out, func(a, b matrix.Setting) int { return cmp.Compare(a.Field, b.Field) })
	return out
}

// nameColumns heads the columns by their clusters, and adds the Application where a
// cluster has several.
func nameColumns(columns []matrix.Column) {
	n := map[string]int{}
	for i := range columns {
		n[columns[i].Cluster]++
	}
	for i := range columns {
		c := &columns[i]
		if c.Name = c.Cluster; n[c.Cluster] > 1 {
			c.Name = c.Cluster + "/" + c.Application
		}
	}
	slices.SortFunc(columns, func(a, b matrix.Column) int { return cmp.Compare(a.Name, b.Name) })
}
