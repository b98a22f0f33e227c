package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/plan"
	"github.com/rutterhq/rutter/internal/policy"
	"github.com/rutterhq/rutter/internal/preview"
)

// CanAnswer is the JSON of project can.
type CanAnswer struct {
	Allowed     bool   `json:"allowed"`
	Project     string `json:"project"`
	Application string `json:"application"`
	// User is whose rights a sync would use; empty means the engine's own.
	User   string     `json:"user,omitempty"`
	Checks []CanCheck `json:"checks"`
}

// CanCheck is the answer to one question.
type CanCheck struct {
	// About is what was asked about: a source, the destination, an object.
	About   string `json:"about"`
	Allowed bool   `json:"allowed"`
	// Rules are those that allow it, and Refusal names the one that does not.
	Rules   []string `json:"rules,omitempty"`
	Refusal string   `json:"refusal,omitempty"`
}

type canFlags struct {
	project []string
	app     string
	objects []string
}

func (r *root) projectCan() *cobra.Command {
	f := &canFlags{}
	c := r.outputFlag(&cobra.Command{
		Use: "can -f PROJECT --app FILE [--object FILE]", Short: "Say whether a project allows an Application, and by which rule", Args: cobra.NoArgs,
		Long: "Asks the rules of an AppProject, from files, what the controller would ask: whether the Application may use the\n" +
			"project, its sources and its destination, and with --object whether the project lets it manage these objects there.\n\n" +
			"The files of -f may also hold what else counts: the projects that argocd-cm makes global, that ConfigMap, and the\n" +
			"Secrets of repositories and clusters. A cluster that is in none of them is known by what the destination says of it.\n\n" +
			"Exit codes: 0 allowed, 1 refused, 2 it could not be said.",
		Example: "  rutter project can -f team.yaml --app shop.yaml\n  rutter project can -f team.yaml --app shop.yaml --object service.yaml -o json\n" +
			"  rutter render --app shop.yaml --local .=. | rutter project can -f team.yaml --app shop.yaml --object -",
		RunE: func(*cobra.Command, []string) error {
			answer, err := r.can(f)
			if err != nil {
				return err
			}
			return r.printCan(answer)
		},
	})
	c.Flags().StringArrayVarP(&f.project, "filename", "f", nil, "file with the AppProject, and with what else counts; repeatable")
	c.Flags().StringVar(&f.app, "app", "", "file with the Application")
	c.Flags().StringArrayVar(&f.objects, "object", nil, "file with objects that the Application would manage; - is standard input; repeatable")
	for _, name := range []string{"filename", "app"} {
		_ = c.MarkFlagRequired(name) // the flag exists
	}
	return c
}

func (r *root) printCan(a CanAnswer) error {
	switch {
	case r.output == "json" || r.output == "yaml":
		if err := r.print(a, table{}); err != nil {
			return err
		}
	case a.Allowed:
		fmt.Fprintf(r.out, "allowed: Application %s in project %s\n", a.Application, a.Project)
		for _, c := range a.Checks {
			fmt.Fprintf(r.out, "  %s: by %s\n", c.About, strings.Join(c.Rules, " and "))
		}
		if a.User != "" {
			fmt.Fprintf(r.out, "  with the rights of %s\n", a.User)
		}
	default:
		for _, c := range a.Checks {
			if !c.Allowed {
				fmt.Fprintf(r.out, "refused: %s: %s\n", c.About, c.Refusal)
			}
		}
	}
	if !a.Allowed {
		return exit{code: ExitDifferent}
	}
	return nil
}

// can reads the files and asks.
func (r *root) can(f *canFlags) (CanAnswer, error) {
	known := &projectFiles{}
	for _, file := range f.project {
		objects, err := r.readObjects(file)
		if err != nil {
			return CanAnswer{}, err
		}
		if err := known.add(objects); err != nil {
			return CanAnswer{}, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(known.projects) == 0 {
		return CanAnswer{}, rutter.Errorf(rutter.CodeInvalid, "%s: there is no AppProject in it", strings.Join(f.project, ", "))
	}
	objects, err := r.readObjects(f.app)
	if err != nil {
		return CanAnswer{}, err
	}
	var apps []*v1alpha1.Application
	for _, o := range objects {
		if app, ok := o.(*v1alpha1.Application); ok {
			apps = append(apps, app)
		}
	}
	if len(apps) != 1 {
		return CanAnswer{}, rutter.Errorf(rutter.CodeInvalid, "%s: there are %d Applications in it: name a file with one", f.app, len(apps))
	}
	asked := &asking{files: known, app: apps[0], namespace: r.namespace}
	for _, file := range f.objects {
		objects, err := r.readObjects(file)
		if err != nil {
			return CanAnswer{}, err
		}
		if err := asked.take(objects, file); err != nil {
			return CanAnswer{}, err
		}
	}
	return asked.answer()
}

// projectFiles are what the files of -f hold.
type projectFiles struct {
	projects []v1alpha1.AppProject
	settings *corev1.ConfigMap
	secrets  []corev1.Secret
	clusters []rutter.ClusterInfo
}

func (p *projectFiles) add(objects []runtime.Object) error {
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.AppProject:
			p.projects = append(p.projects, *o)
		case *corev1.ConfigMap:
			if o.Name == argo.ConfigMapName {
				p.settings = o
			}
		case *corev1.Secret:
			for k, v := range o.StringData { // as the server would take it
				if o.Data == nil {
					o.Data = map[string][]byte{}
				}
				o.Data[k] = []byte(v)
			}
			p.secrets = append(p.secrets, *o)
			if o.Labels[argo.LabelSecretType] != argo.SecretTypeCluster {
				continue
			}
			info, _, err := argo.ParseCluster(o, nil)
			if info.Server == "" {
				return fmt.Errorf("cluster Secret %s: %w", o.Name, err)
			}
			info.Server = strings.TrimRight(info.Server, "/")
			p.clusters = append(p.clusters, info)
		}
	}
	return nil
}

// project chooses the one that an Application is of. One that names none is
// asked about in the project that there is.
func (p *projectFiles) project(app *v1alpha1.Application) (*v1alpha1.AppProject, error) {
	name := app.Spec.Project
	if name == "" && len(p.projects) == 1 {
		return &p.projects[0], nil
	}
	name = cmp.Or(name, "default")
	names := make([]string, 0, len(p.projects))
	for i := range p.projects {
		if p.projects[i].Name == name {
			return &p.projects[i], nil
		}
		names = append(names, p.projects[i].Name)
	}
	return nil, rutter.Errorf(rutter.CodeNotFound, "the Application is of project %q, and the files have %s", name, strings.Join(names, ", "))
}

// cluster is what is known of a destination.
func (p *projectFiles) cluster(t rutter.Target) rutter.ClusterInfo {
	const server, name = "https://kubernetes.default.svc", "in-cluster"
	known := append(slices.Clip(p.clusters), rutter.ClusterInfo{Name: name, Server: server})
	for _, c := range known {
		if t.Server != "" && c.Server == t.Server || t.Server == "" && c.Name == t.Name {
			return c
		}
	}
	return rutter.ClusterInfo{Name: t.Name, Server: t.Server}
}

// asking is one Application and the objects that it would manage.
type asking struct {
	files     *projectFiles
	app       *v1alpha1.Application
	namespace string // of the control plane, where the project's does not say it
	objects   []*unstructured.Unstructured
	crds      map[[2]string]bool
}

func (a *asking) take(objects []runtime.Object, file string) error {
	for _, o := range objects {
		raw, ok := o.(*unstructured.Unstructured)
		if !ok {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return rutter.Errorf(rutter.CodeInvalid, "%s: %w", file, err)
			}
			raw = &unstructured.Unstructured{Object: content}
		}
		if raw.GetKind() == "" {
			return rutter.Errorf(rutter.CodeInvalid, "%s: an object has no kind", file)
		}
		a.objects = append(a.objects, raw)
	}
	if len(objects) == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "%s: there is no object in it", file)
	}
	return nil
}

// answer asks the evaluator that admission and apply ask.
func (a *asking) answer() (CanAnswer, error) {
	out := CanAnswer{Allowed: true, Application: a.app.Name, Checks: []CanCheck{}}
	declared, err := a.files.project(a.app)
	if err != nil {
		return out, err
	}
	project, err := a.files.inForce(declared)
	if err != nil {
		return out, err
	}
	how, problems := argo.ParseImpersonation(a.files.settings)
	if len(problems) > 0 {
		return out, problems[0]
	}
	home := cmp.Or(declared.Namespace, a.namespace)
	unit, conditions := argo.ToUnit(a.app, argo.Config{Namespace: home}, nil)
	for _, c := range conditions {
		if c.Type == rutter.CondInvalidSpec {
			return out, rutter.Errorf(rutter.CodeInvalid, "Application %s: %s", a.app.Name, c.Message)
		}
	}
	out.Project = project.Name
	ask := func(about string, q policy.Question) {
		q.Application, q.ApplicationNamespace, q.ControlPlane, q.Identity = a.app.Name, a.app.Namespace, home, how
		check := CanCheck{About: about}
		said, err := project.Decide(q)
		if check.Allowed = err == nil; err != nil {
			check.Refusal = err.Error()
		} else {
			check.Rules, out.User = said.Rules, cmp.Or(said.User, out.User)
		}
		out.Allowed = out.Allowed && check.Allowed
		out.Checks = append(out.Checks, check)
	}
	for _, s := range unit.Sources {
		if s.RepoURL != "" {
			ask("source "+s.RepoURL, policy.Question{Source: s.RepoURL})
		}
	}
	cluster := a.files.cluster(unit.Target)
	place := cmp.Or(cluster.Name, cluster.Server)
	ask(fmt.Sprintf("destination %s, namespace %q", place, unit.Target.Namespace), policy.Question{Cluster: &cluster, Namespace: unit.Target.Namespace})
	for _, o := range a.objects {
		ref, namespaced := a.place(o, unit.Target)
		ask("object "+ref.String(), policy.Question{Cluster: &cluster, Namespace: unit.Target.Namespace, Object: ref, Namespaced: namespaced})
	}
	return out, nil
}

// place is where an object would be. Its kind has a namespace unless Kubernetes or
// a definition among the objects says that it has none.
func (a *asking) place(o *unstructured.Unstructured, t rutter.Target) (ref rutter.Ref, namespaced bool) {
	if a.crds == nil {
		all := rutter.Manifests{}
		for _, o := range a.objects {
			all.Objects = append(all.Objects, rutter.Object{Unstructured: o})
		}
		a.crds = plan.Scopes([]rutter.Manifests{all})
	}
	ref = rutter.RefOf(o)
	if !preview.Namespaced(rutter.GVKOf(o), a.crds, preview.ClusterFacts{}) {
		ref.Namespace = ""
		return ref, false
	}
	ref.Namespace = cmp.Or(ref.Namespace, t.Namespace)
	return ref, true
}

// inForce is a project with what it inherits and what is registered for it.
func (p *projectFiles) inForce(project *v1alpha1.AppProject) (*policy.Project, error) {
	globals, err := argo.GlobalProjects(p.settings)
	if err != nil {
		return nil, err
	}
	all, problems := argo.InForce(p.projects, globals, argo.ScopedRepositories(p.secrets))
	for _, problem := range problems {
		if rutter.CodeOf(problem) == rutter.CodeInvalid {
			return nil, problem
		}
		if selects(globals, project) { // its rules may deny
			return nil, problem
		}
	}
	return all[project.Name], nil
}

// selects reports whether some global project counts for this one.
func selects(globals []policy.GlobalProject, project *v1alpha1.AppProject) bool {
	_, missing := policy.Globals(project, globals, func(string) (*v1alpha1.AppProject, bool) { return nil, false })
	return len(missing) > 0
}
