package daemon

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// listPage is how many Applications are read at once.
const listPage = 500

// chosen are the Applications that are compared.
func (o *observer) chosen(ctx context.Context, c client.Client, cfg CompareConfig) ([]v1alpha1.Application, error) {
	all, err := listApplications(ctx, c, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.App != "" {
		all = o.called(all, cfg.App)
	}
	var out []v1alpha1.Application
	seen := map[string]bool{}
	for i := range all {
		names := o.namesOf(&all[i])
		if len(cfg.Clusters) > 0 && !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(cfg.Clusters, n) }) {
			continue
		}
		for _, n := range names {
			seen[n] = true
		}
		out = append(out, all[i])
	}
	switch {
	case len(all) == 0:
		return nil, rutter.Errorf(rutter.CodeNotFound, "no Application is found: --app is the name of an Application, of its ApplicationSet, or what the names of Applications have besides their cluster's; see 'rutter app list'")
	case len(out) > mostColumns:
		return nil, rutter.Errorf(rutter.CodeInvalid, "%d Applications are found, more than %d: name clusters, or a narrower label", len(out), mostColumns)
	}
	for _, want := range cfg.Clusters {
		if !seen[want] {
			return nil, rutter.Errorf(rutter.CodeNotFound, "no such Application is deployed to cluster %q: see 'rutter app list' and 'rutter cluster list'", want)
		}
	}
	return out, nil
}

// listApplications reads those of all namespaces, or of the control plane's only for
// who may not read the others.
func listApplications(ctx context.Context, c client.Client, cfg CompareConfig) ([]v1alpha1.Application, error) {
	var opts []client.ListOption
	if cfg.Labels != "" {
		selector, err := labels.Parse(cfg.Labels)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "--label %q: %w", cfg.Labels, err)
		}
		opts = append(opts, client.MatchingLabelsSelector{Selector: selector})
	}
	var out []v1alpha1.Application
	for namespace, token := "", ""; ; {
		var list v1alpha1.ApplicationList
		err := c.List(ctx, &list, append(slices.Clone(opts), client.InNamespace(namespace), client.Limit(listPage), client.Continue(token))...)
		if apierrors.IsForbidden(err) && namespace == "" {
			namespace, token, out = cfg.Namespace, "", nil
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list Applications: %w", err)
		}
		out = append(out, list.Items...)
		if token = list.Continue; token == "" {
			return out, nil
		}
	}
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

// called are the Applications that a name stands for. One that is named by itself
// brings its family.
func (o *observer) called(all []v1alpha1.Application, name string) []v1alpha1.Application {
	var out []v1alpha1.Application
	for i := range all {
		if isOf(&all[i], name, o.namesOf(&all[i])) {
			out = append(out, all[i])
		}
	}
	if len(out) != 1 {
		return out
	}
	one := out[0]
	return slices.DeleteFunc(slices.Clone(all), func(app v1alpha1.Application) bool {
		return (app.Name != one.Name || app.Namespace != one.Namespace) && !sameFamily(&app, &one)
	})
}

// isOf reports whether an Application is one of those that name stands for; clusters
// are the names of its cluster.
func isOf(app *v1alpha1.Application, name string, clusters []string) bool {
	if app.Name == name || app.Labels["app"] == name || setOf(app) == name {
		return true
	}
	return slices.ContainsFunc(clusters, func(c string) bool { return app.Name == name+"-"+c || app.Name == c+"-"+name })
}

// setOf is the ApplicationSet of an Application; empty when it has none.
func setOf(app *v1alpha1.Application) string {
	for _, owner := range app.OwnerReferences {
		if owner.Kind == "ApplicationSet" {
			return owner.Name
		}
	}
	return ""
}

// sameFamily reports whether two Applications deploy the same thing: they are of one
// ApplicationSet, or else of no set and with the same chart, the same folder, or
// sibling folders, as overlays are.
func sameFamily(a, b *v1alpha1.Application) bool {
	if setOf(a) != "" || setOf(b) != "" {
		return setOf(a) == setOf(b) && a.Namespace == b.Namespace
	}
	x, y := mainSource(a), mainSource(b)
	if x == nil || y == nil || rutter.NormalizeGitURL(x.RepoURL) != rutter.NormalizeGitURL(y.RepoURL) || x.Chart != y.Chart {
		return false
	}
	if x.Chart != "" {
		return true
	}
	p, q := path.Clean(x.Path), path.Clean(y.Path)
	parent := path.Dir(p)
	return p == q || parent == path.Dir(q) && isOverlays(path.Base(parent))
}

// isOverlays reports whether the folders in one of that name are variants of one thing.
func isOverlays(folder string) bool {
	return slices.Contains([]string{"overlays", "overlay", "envs", "env", "environments", "clusters", "variants", "regions"}, folder)
}

// mainSource is the first source of an Application that yields objects; nil when there is none.
func mainSource(app *v1alpha1.Application) *v1alpha1.ApplicationSource {
	if app.Spec.Source != nil {
		return app.Spec.Source
	}
	for i := range app.Spec.Sources {
		if s := &app.Spec.Sources[i]; s.Chart != "" || s.Path != "" {
			return s
		}
	}
	return nil
}
