package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
)

type generateFlags struct {
	file     string
	repos    []string
	clusters string
	objects  string
	answers  string
	params   bool
}

func (r *root) appsetGenerate() *cobra.Command {
	f := &generateFlags{}
	c := r.outputFlag(&cobra.Command{
		Use: "generate [FILE]", Short: "Print the Applications that an ApplicationSet generates, without a control plane", Args: cobra.MaximumNArgs(1),
		Long: "Evaluates the ApplicationSets in FILE; - is standard input. Repositories are local folders or bare repositories given\n" +
			"with --repo URL=DIR; clusters are Secrets in the file given with --clusters. Nothing is contacted.\n" +
			"Placements of clusterDecisionResource generators, and their ConfigMaps, are read from --objects; what hosting services and\n" +
			"plugins would answer, from --answers: lists named repositories, pullRequests and parameters.\n" +
			"An element that has an error is told on standard error and ends the command with 2; the others are printed.",
		Example: "  rutter appset generate appset.yaml --repo https://github.com/org/fleet=. --clusters clusters.yaml -o json",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && f.file == "":
				f.file = args[0]
			case len(args) == 1 || f.file == "":
				return rutter.Errorf(rutter.CodeInvalid, "name one file with ApplicationSets, as FILE or with -f; - is standard input")
			}
			return r.generate(c.Context(), f)
		},
	})
	c.Flags().StringVarP(&f.file, "file", "f", "", "file with ApplicationSets; - is standard input")
	c.Flags().StringArrayVar(&f.repos, "repo", nil, "URL=DIR: a local folder or bare repository in place of a URL, repeatable")
	c.Flags().StringVar(&f.clusters, "clusters", "", "file with cluster Secrets")
	c.Flags().StringVar(&f.objects, "objects", "", "file with placements and their ConfigMaps")
	c.Flags().StringVar(&f.answers, "answers", "", "file with what scmProvider, pullRequest and plugin generators are answered")
	c.Flags().BoolVar(&f.params, "params", false, "print the parameters of each element, and which generator each came from, in place of Applications")
	return c
}

func (r *root) generate(ctx context.Context, f *generateFlags) error {
	text, err := r.readFile(f.file)
	if err != nil {
		return err
	}
	objects, err := argo.Decode(text, f.file)
	if err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	local, err := parseLocal(f.repos)
	if err != nil {
		return err
	}
	facts := &offlineFacts{ctx: ctx, r: r, local: local, text: text}
	if facts.clusters, err = r.readClusters(f.clusters); err != nil {
		return err
	}
	if err := facts.read(f); err != nil {
		return err
	}
	var elements []elementRow
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
		elements = append(elements, elementRows(set.Name, result.Elements)...)
		failed = r.complain(set.Name, result) || failed
		if len(result.Elements) == 0 && len(result.Errors) == 0 {
			fmt.Fprintf(r.err, "rutter: ApplicationSet %s: generates nothing: its generators found no element\n", set.Name)
		}
		facts.words(set)
		if generate.UsesClusters(set) && f.clusters == "" {
			fmt.Fprintf(r.err, "rutter: ApplicationSet %s: reads the list of clusters, and none are given: use --clusters FILE\n", set.Name)
		}
	}
	if sets == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "%s holds no ApplicationSet", f.file)
	}
	if f.params {
		err = r.printElements(elements)
	} else {
		err = r.printApps(apps)
	}
	if err != nil {
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

// printApps writes Applications as a JSON list, as documents that kubectl takes,
// or as a table.
func (r *root) printApps(apps []*v1alpha1.Application) error {
	if r.output == "json" {
		list := make([]map[string]any, 0, len(apps))
		for _, app := range apps {
			m, err := applicationTree(app)
			if err != nil {
				return err
			}
			list = append(list, m)
		}
		return r.print(list, table{})
	}
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
	return r.table(t)
}

// shownValue is a parameter as a table shows it.
func shownValue(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode a parameter: %w", err)
	}
	return string(data), nil
}

// applicationTree leaves out what a Go struct always has: an empty status, and
// an empty time of creation.
func applicationTree(app *v1alpha1.Application) (map[string]any, error) {
	app = app.DeepCopy()
	app.TypeMeta.APIVersion, app.TypeMeta.Kind = v1alpha1.GroupVersion.String(), "Application"
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		return nil, fmt.Errorf("encode application %q: %w", app.Name, err)
	}
	delete(m, "status")
	if meta, ok := m["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	return m, nil
}

func applicationYAML(app *v1alpha1.Application) ([]byte, error) {
	m, err := applicationTree(app)
	if err != nil {
		return nil, err
	}
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
