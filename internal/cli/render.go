package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

type renderFlags struct {
	repos       []string
	path, app   string
	namespace   string
	name        string
	revision    string
	values      []string
	set         []string
	kubeVersion string
	apiVersions []string
}

func (r *root) renderCommand() *cobra.Command {
	f := &renderFlags{}
	c := r.outputFlag(&cobra.Command{
		Use: "render", Short: "Print what a source or an Application renders to, without a control plane", Args: cobra.NoArgs,
		Example: "  rutter render --repo . --path apps/web/overlays/dev\n" +
			"  rutter render --app app.yaml --repo https://github.com/org/fleet=.",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := r.renderOptions(f)
			if err != nil {
				return err
			}
			m, err := r.deps.Render(c.Context(), o)
			if err != nil {
				return err
			}
			return r.printManifests(m)
		},
	})
	fl := c.Flags()
	fl.StringArrayVar(&f.repos, "repo", nil, "DIR with --path, or URL=DIR with --app: a local folder or bare repository, repeatable")
	fl.StringVar(&f.path, "path", "", "path within the repository")
	fl.StringVar(&f.app, "app", "", "file with an Application")
	fl.StringVar(&f.name, "name", "app", "name of the application or release, with --path")
	fl.StringVar(&f.namespace, "dest-namespace", "default", "namespace of the destination, with --path")
	fl.StringVar(&f.revision, "revision", "", "revision, for a bare repository")
	fl.StringArrayVar(&f.values, "values", nil, "Helm values file, with --path, repeatable")
	fl.StringArrayVar(&f.set, "helm-set", nil, "Helm parameter NAME=VALUE, with --path, repeatable")
	fl.StringVar(&f.kubeVersion, "kube-version", "v1.37.2", "Kubernetes version that charts see")
	fl.StringSliceVar(&f.apiVersions, "api-versions", nil, "API versions that charts see")
	return c
}

func (r *root) renderOptions(f *renderFlags) (RenderOptions, error) {
	o := RenderOptions{KubeVersion: f.kubeVersion, APIVersions: f.apiVersions}
	var err error
	if f.app != "" {
		objects, err := r.readObjects(f.app)
		if err != nil {
			return o, err
		}
		for _, obj := range objects {
			if app, ok := obj.(*v1alpha1.Application); ok {
				o.App = app
				break
			}
		}
		if o.App == nil {
			return o, rutter.Errorf(rutter.CodeInvalid, "%s holds no Application", f.app)
		}
		o.Local, err = parseLocal(f.repos)
		return o, err
	}
	if len(f.repos) != 1 || f.path == "" {
		return o, rutter.Errorf(rutter.CodeInvalid, "use --repo DIR --path PATH, or --app FILE --repo URL=DIR")
	}
	const url = "file:///local"
	o.App = &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: f.name, Namespace: "argocd"}, Spec: v1alpha1.ApplicationSpec{
		Destination: v1alpha1.ApplicationDestination{Name: "local", Namespace: f.namespace},
		Source:      &v1alpha1.ApplicationSource{RepoURL: url, Path: f.path, TargetRevision: f.revision},
	}}
	if len(f.values)+len(f.set) > 0 {
		helm := &v1alpha1.ApplicationSourceHelm{ValueFiles: f.values}
		for _, s := range f.set {
			p, err := parseParameter(s)
			if err != nil {
				return o, err
			}
			helm.Parameters = append(helm.Parameters, p)
		}
		o.App.Spec.Source.Helm = helm
	}
	o.Local, err = parseLocal([]string{url + "=" + f.repos[0]})
	return o, err
}

func (r *root) printManifests(m rutter.Manifests) error {
	for _, w := range m.Warnings {
		fmt.Fprintln(r.err, "rutter: warning:", w)
	}
	if r.output == "json" {
		items := make([]map[string]any, 0, len(m.Objects))
		for _, o := range m.Objects {
			items = append(items, o.Object)
		}
		return r.print(map[string]any{"apiVersion": "v1", "kind": "List", "items": items}, table{})
	}
	for _, o := range m.Objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return fmt.Errorf("encode %s: %w", o.Ref(), err)
		}
		fmt.Fprintf(r.out, "---\n%s", data)
	}
	return nil
}
