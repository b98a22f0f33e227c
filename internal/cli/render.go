package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	cluster     string
	plugins     string
	pluginTools []string
	offline     bool
	live        bool
	explain     bool
	trace       string
}

func (r *root) renderCommand() *cobra.Command {
	f := &renderFlags{}
	c := r.outputFlag(&cobra.Command{
		Use: "render [APPLICATION]", Short: "Print what a source or an Application renders to", Args: cobra.MaximumNArgs(1),
		Long: "Prints the objects that the controller would apply, rendered by the same code. Without a control plane, an Application comes from a\n" +
			"file or is made of the flags; repositories come from folders (--repo) or are fetched. Named by its name, an Application is read from the\n" +
			"control plane, with its credentials, settings and the version of its cluster.",
		Example: "  rutter render --repo . --path apps/web/overlays/dev\n" +
			"  rutter render --app app.yaml --repo https://github.com/org/fleet=.\n" +
			"  rutter render --app app.yaml --explain\n" +
			"  rutter render web-prod --trace-value image.tag",
		RunE: func(c *cobra.Command, args []string) error {
			o, err := r.renderOptions(c.Context(), f, args)
			if err != nil {
				return err
			}
			m, explanations, err := r.deps.Render(c.Context(), o)
			if err != nil {
				return err
			}
			for _, w := range m.Warnings {
				fmt.Fprintln(r.err, "rutter: warning:", w)
			}
			switch {
			case f.trace != "":
				return r.printTrace(f.trace, explanations)
			case f.explain:
				return r.printExplanations(explanations)
			}
			return r.printManifests(m)
		},
	})
	fl := c.Flags()
	fl.StringArrayVar(&f.repos, "repo", nil, "DIR with --path, or URL=DIR with an Application: a local folder or bare repository, repeatable")
	fl.StringVar(&f.path, "path", "", "path within the repository")
	fl.StringVar(&f.app, "app", "", "file with an Application")
	fl.StringVar(&f.name, "name", "app", "name of the application or release, with --path; or which Application of the file")
	fl.StringVar(&f.namespace, "dest-namespace", "default", "namespace of the destination, with --path")
	fl.StringVar(&f.revision, "revision", "", "revision to render, in place of the Application's")
	fl.StringArrayVar(&f.values, "values", nil, "Helm values file, with --path, repeatable")
	fl.StringArrayVar(&f.set, "helm-set", nil, "Helm parameter NAME=VALUE, with --path, repeatable")
	fl.StringVar(&f.kubeVersion, "kube-version", defaultKubeVersion, "Kubernetes version that charts see")
	fl.StringSliceVar(&f.apiVersions, "api-versions", nil, "API versions that charts see")
	fl.StringVar(&f.cluster, "cluster", "", "name of a registered cluster whose version and APIs charts see")
	fl.StringVar(&f.plugins, "plugins", "", "folder of ConfigManagementPlugin files")
	fl.StringSliceVar(&f.pluginTools, "plugin-tools", nil, "folders with programs that plugins may run, beside the system's")
	fl.BoolVar(&f.offline, "offline", false, "fetch nothing")
	fl.BoolVar(&f.live, "live", false, "use the control plane's credentials, keys, settings and projects")
	fl.BoolVar(&f.explain, "explain", false, "print which tool renders and why, which layers set each Helm value, and all that was read")
	fl.StringVar(&f.trace, "trace-value", "", "print each layer that set or removed a Helm value, such as image.tag")
	return c
}

// defaultKubeVersion is what charts see without a cluster.
const defaultKubeVersion = "v1.37.2"

func (r *root) renderOptions(ctx context.Context, f *renderFlags, args []string) (RenderOptions, error) {
	o := RenderOptions{KubeVersion: f.kubeVersion, APIVersions: f.apiVersions, Namespace: r.namespace, Cluster: f.cluster,
		Plugins: f.plugins, PluginTools: f.pluginTools, Offline: f.offline, Explain: f.explain || f.trace != ""}
	var err error
	if len(args) > 0 || f.live || f.cluster != "" {
		if o.REST, err = r.rest(); err != nil {
			return o, err
		}
	}
	switch {
	case len(args) > 0 && (f.app != "" || f.path != ""):
		return o, rutter.Errorf(rutter.CodeInvalid, "an APPLICATION, --app and --path exclude each other")
	case len(args) > 0:
		if o.App, err = r.liveApp(ctx, args[0]); err != nil {
			return o, err
		}
		o.Cluster = targetCluster(o.App, f.cluster)
	case f.app != "":
		if o.App, err = r.appOfFile(f.app, f.name); err != nil {
			return o, err
		}
	default:
		o.Offline = true
		return o, r.appOfFlags(f, &o)
	}
	setRevision(o.App, f.revision)
	o.Local, err = parseLocal(f.repos)
	return o, err
}

// liveApp reads an Application from the control plane.
func (r *root) liveApp(ctx context.Context, name string) (*v1alpha1.Application, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	var app v1alpha1.Application
	if err := c.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &app); err != nil {
		hint := ""
		if _, statErr := os.Stat(name); !errors.Is(statErr, fs.ErrNotExist) {
			hint = " (it is a file: use --app " + name + ")"
		}
		return nil, fmt.Errorf("read application %q in namespace %q%s: %w", name, r.namespace, hint, err)
	}
	return &app, nil
}

// targetCluster is whose version charts see: the one asked for, else the
// Application's own, as server URL or name.
func targetCluster(app *v1alpha1.Application, asked string) string {
	switch {
	case asked != "":
		return asked
	case app.Spec.Destination.Name != "":
		return app.Spec.Destination.Name
	}
	return app.Spec.Destination.Server
}

// appOfFile reads the one Application of a file, or that of the given name.
func (r *root) appOfFile(file, name string) (*v1alpha1.Application, error) {
	objects, err := r.readObjects(file)
	if err != nil {
		return nil, err
	}
	var apps []*v1alpha1.Application
	for _, obj := range objects {
		if app, ok := obj.(*v1alpha1.Application); ok {
			if app.Name == name {
				return app, nil
			}
			apps = append(apps, app)
		}
	}
	switch len(apps) {
	case 0:
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s holds no Application", file)
	case 1:
		return apps[0], nil
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "%s holds %d Applications: choose one with --name", file, len(apps))
}

func setRevision(app *v1alpha1.Application, revision string) {
	if revision == "" {
		return
	}
	if app.Spec.Source != nil {
		app.Spec.Source.TargetRevision = revision
	}
	for i := range app.Spec.Sources {
		if app.Spec.Sources[i].Chart == "" {
			app.Spec.Sources[i].TargetRevision = revision
		}
	}
}

// appOfFlags makes an Application of a folder and a path.
func (r *root) appOfFlags(f *renderFlags, o *RenderOptions) error {
	if len(f.repos) != 1 || f.path == "" {
		return rutter.Errorf(rutter.CodeInvalid, "use --repo DIR --path PATH, --app FILE, or the name of an Application of the control plane")
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
				return err
			}
			helm.Parameters = append(helm.Parameters, p)
		}
		o.App.Spec.Source.Helm = helm
	}
	var err error
	o.Local, err = parseLocal([]string{url + "=" + f.repos[0]})
	return err
}

func (r *root) printManifests(m rutter.Manifests) error {
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
