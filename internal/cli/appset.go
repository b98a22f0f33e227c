package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
)

func (r *root) appsetCommand() *cobra.Command {
	c := &cobra.Command{Use: "appset", Aliases: []string{"applicationset", "applicationsets", "appsets"}, Short: "Look at ApplicationSets and what they generate"}
	c.AddCommand(r.appsetList(), r.appsetGet(), r.appsetGenerate())
	return c
}

func (r *root) appsetList() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List ApplicationSets", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var list v1alpha1.ApplicationSetList
			if err := cl.List(c.Context(), &list, r.within(false)); err != nil {
				return fmt.Errorf("list ApplicationSets: %w", err)
			}
			t := table{header: []string{"NAME", "NAMESPACE", "APPLICATIONS", "HEALTH", "MESSAGE"}, wide: 1}
			for i := range list.Items {
				s := &list.Items[i]
				health, message := setState(s)
				t.rows = append(t.rows, []string{s.Name, s.Namespace, strconv.FormatInt(s.Status.ResourcesCount, 10), orDash(health), orDash(message)})
			}
			return r.print(list, t)
		},
	})
}

func setState(s *v1alpha1.ApplicationSet) (health, message string) {
	if s.Status.Health != nil {
		health = s.Status.Health.Status
	}
	for _, c := range s.Status.Conditions {
		if c.Type == v1alpha1.ApplicationSetConditionErrorOccurred && c.Status == "True" {
			message = c.Message
		}
	}
	return health, message
}

func (r *root) appsetGet() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "get NAME", Short: "Show one ApplicationSet and its Applications", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var set v1alpha1.ApplicationSet
			if err := cl.Get(c.Context(), client.ObjectKey{Namespace: r.namespace, Name: args[0]}, &set); err != nil {
				return fmt.Errorf("read ApplicationSet %q in namespace %q: %w", args[0], r.namespace, err)
			}
			set.ManagedFields = nil
			t := table{header: []string{"APPLICATION", "SYNC", "HEALTH"}}
			for _, res := range set.Status.Resources {
				health := ""
				if res.Health != nil {
					health = res.Health.Status
				}
				t.rows = append(t.rows, []string{res.Name, orDash(res.Status), orDash(health)})
			}
			if r.output == "table" || r.output == "wide" {
				for _, cond := range set.Status.Conditions {
					fmt.Fprintf(r.out, "%s=%s: %s\n", cond.Type, cond.Status, cond.Message)
				}
				fmt.Fprintln(r.out)
			}
			return r.print(set, t)
		},
	})
}

type generateFlags struct {
	file     string
	repos    []string
	clusters string
}

func (r *root) appsetGenerate() *cobra.Command {
	f := &generateFlags{}
	c := r.outputFlag(&cobra.Command{
		Use: "generate -f FILE", Short: "Print the Applications that an ApplicationSet generates, without a control plane", Args: cobra.NoArgs,
		Long: "Evaluates the ApplicationSets in FILE. Repositories are local folders or bare repositories given with --repo URL=DIR;\n" +
			"clusters are Secrets in the file given with --clusters. Nothing is contacted.",
		Example: "  rutter appset generate -f appset.yaml --repo https://github.com/org/fleet=. --clusters clusters.yaml -o yaml",
		RunE:    func(c *cobra.Command, _ []string) error { return r.generate(c.Context(), f) },
	})
	c.Flags().StringVarP(&f.file, "file", "f", "", "file with ApplicationSets; - is standard input")
	c.Flags().StringArrayVar(&f.repos, "repo", nil, "URL=DIR: a local folder or bare repository in place of a URL, repeatable")
	c.Flags().StringVar(&f.clusters, "clusters", "", "file with cluster Secrets")
	_ = c.MarkFlagRequired("file") // the flag exists
	return c
}

func (r *root) generate(ctx context.Context, f *generateFlags) error {
	objects, err := r.readObjects(f.file)
	if err != nil {
		return err
	}
	local, err := parseLocal(f.repos)
	if err != nil {
		return err
	}
	facts := &offlineFacts{ctx: ctx, r: r, local: local}
	if facts.clusters, err = r.readClusters(f.clusters); err != nil {
		return err
	}
	var apps []*v1alpha1.Application
	failed, sets := false, 0
	for _, o := range objects {
		set, ok := o.(*v1alpha1.ApplicationSet)
		if !ok {
			continue
		}
		sets++
		result := generate.Generate(set, facts)
		apps = append(apps, result.Applications...)
		failed = r.complain(set.Name, result) || failed
		if generate.UsesClusters(set) && f.clusters == "" {
			fmt.Fprintf(r.err, "rutter: ApplicationSet %s: reads the list of clusters, and none are given: use --clusters FILE\n", set.Name)
		}
	}
	if sets == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "%s holds no ApplicationSet", f.file)
	}
	if err := r.printApps(apps); err != nil {
		return err
	}
	if failed {
		return exit{ExitError}
	}
	return nil
}

// complain prints what went wrong, and reports whether anything did.
func (r *root) complain(name string, result generate.Result) bool {
	for _, err := range result.Errors {
		fmt.Fprintf(r.err, "rutter: ApplicationSet %s: %v\n", name, err)
	}
	bad := len(result.Errors) > 0
	for _, e := range result.Elements {
		if e.Err != nil {
			bad = true
			fmt.Fprintf(r.err, "rutter: ApplicationSet %s: %v\n", name, e.Err)
		}
		for _, w := range e.Warnings {
			fmt.Fprintf(r.err, "rutter: ApplicationSet %s: warning: %s\n", name, w)
		}
	}
	for _, w := range result.Warnings {
		fmt.Fprintf(r.err, "rutter: ApplicationSet %s: warning: %s\n", name, w)
	}
	return bad
}

// printApps writes Applications as documents that kubectl takes, or as a table.
func (r *root) printApps(apps []*v1alpha1.Application) error {
	if r.output == "yaml" {
		for _, app := range apps {
			data, err := applicationYAML(app)
			if err != nil {
				return err
			}
			fmt.Fprintf(r.out, "---\n%s", data)
		}
		return nil
	}
	t := table{header: []string{"NAME", "CLUSTER", "NAMESPACE", "REPOSITORY", "PATH", "REVISION"}}
	for _, app := range apps {
		d := app.Spec.Destination
		row := []string{app.Name, d.Name + d.Server, orDash(d.Namespace), "-", "-", "-"}
		if src := sourcesOf(app); len(src) > 0 {
			row[3], row[4], row[5] = src[0].RepoURL, orDash(src[0].Path), orDash(src[0].TargetRevision)
		}
		t.rows = append(t.rows, row)
	}
	return r.print(struct {
		Applications []*v1alpha1.Application `json:"applications"`
	}{apps}, t)
}

// applicationYAML leaves out the empty status that a Go struct always has.
func applicationYAML(app *v1alpha1.Application) ([]byte, error) {
	app = app.DeepCopy()
	app.TypeMeta.APIVersion, app.TypeMeta.Kind = v1alpha1.GroupVersion.String(), "Application"
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		return nil, fmt.Errorf("encode application %q: %w", app.Name, err)
	}
	delete(m, "status")
	data, err := yaml.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode application %q: %w", app.Name, err)
	}
	return data, nil
}

// parseLocal reads URL=DIR pairs.
func parseLocal(pairs []string) (map[string]string, error) {
	local := map[string]string{}
	for _, p := range pairs {
		// The last = divides, since a URL may hold one.
		at := strings.LastIndex(p, "=")
		if at <= 0 || at == len(p)-1 {
			return nil, rutter.Errorf(rutter.CodeInvalid, "--repo %q: write URL=DIR", p)
		}
		dir := p[at+1:]
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, rutter.Errorf(rutter.CodeNotFound, "--repo %q: %s is not a folder", p, dir)
		}
		local[rutter.NormalizeGitURL(p[:at])] = dir
	}
	return local, nil
}

func (r *root) readClusters(file string) ([]rutter.ClusterInfo, error) {
	clusters := []rutter.ClusterInfo{}
	hasLocal := false
	if file != "" {
		objects, err := r.readObjects(file)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			secret, ok := o.(*corev1.Secret)
			if !ok || secret.Labels["argocd.argoproj.io/secret-type"] != "cluster" {
				continue
			}
			info, _, err := argo.ParseCluster(secret, func(string) bool { return true }) // nothing is run
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			hasLocal = hasLocal || info.Server == generate.InClusterServer
			clusters = append(clusters, info)
		}
	}
	if !hasLocal {
		clusters = append(clusters, rutter.ClusterInfo{Name: "in-cluster", Server: generate.InClusterServer})
	}
	return clusters, nil
}

// offlineFacts answers generators from files.
type offlineFacts struct {
	ctx      context.Context //nolint:containedctx // lives for one command
	r        *root
	local    map[string]string
	clusters []rutter.ClusterInfo
}

// Clusters implements generate.Facts.
func (f *offlineFacts) Clusters() ([]rutter.ClusterInfo, error) { return f.clusters, nil }

// Snapshot implements generate.Facts.
func (f *offlineFacts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	return f.r.deps.Snapshot(f.ctx, f.local, repo)
}
