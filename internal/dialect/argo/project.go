package argo

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

// project holds an application against its AppProject (reference 6.2, 6.3, 6.9)
// and gives it the project's sync windows (2.13). Without an AppProject of that
// name, default allows everything and any other name nothing.
func (t *translation) project(u *rutter.Unit, projects Projects) {
	p, ok := projects(u.Project)
	if !ok {
		if u.Project != "default" {
			t.invalid("spec.project: AppProject %s does not exist", u.Project)
		}
		return
	}
	if err := p.CheckSourceNamespace(t.app.Name, t.app.Namespace, t.cfg.Namespace); err != nil {
		t.invalid("spec.project: %v", err)
	}
	for i, s := range u.Sources {
		if err := p.CheckSource(s.RepoURL); s.RepoURL != "" && err != nil {
			t.invalid("%s.repoURL: %v", sourceField(t.app, i), err)
		}
		t.signatures(p, i, s)
	}
	cluster := t.cluster(u.Target)
	if cluster != nil { // one that is not known is the engine's to report
		if err := p.CheckDestination(*cluster, u.Target.Namespace); err != nil {
			t.invalid("spec.destination: %v", err)
		}
		if _, _, err := p.Identity(t.cfg.Impersonation, *cluster, u.Target.Namespace, t.app.Namespace); err != nil {
			t.invalid("spec.destination: %v", err)
		}
	}
	u.Windows = p.Windows(t.app.Name, u.Target, cluster)
	if watches, warns := p.WatchesOrphans(); watches {
		u.Orphans = &rutter.OrphanWatch{Warn: warns}
	}
}

// cluster is the application's destination, nil where it is not known (yet).
func (t *translation) cluster(target rutter.Target) *rutter.ClusterInfo {
	if t.cfg.Cluster == nil || (target.Server == "") == (target.Name == "") {
		return nil
	}
	cluster, ok := t.cfg.Cluster(target)
	if !ok {
		return nil
	}
	return &cluster
}

// signatures names what of the rules on signatures cannot be followed. The others
// are for the moment at which a source is read. Only Git has commits (6.7).
func (t *translation) signatures(p *policy.Project, i int, s rutter.Source) {
	if s.Repo("").Kind() != rutter.RepoGit {
		return
	}
	rule, err := p.SignatureRule(s.RepoURL)
	if err != nil {
		t.invalid("%s: %v", sourceField(t.app, i), err)
		return
	}
	t.refuse(rule.Mode == policy.SignatureStrict, rule.Where+".gpg.mode strict")
}

// GlobalProjects reads globalProjects of argocd-cm (6.10); cm may be nil.
func GlobalProjects(cm *corev1.ConfigMap) ([]policy.GlobalProject, error) {
	if cm == nil {
		return nil, nil
	}
	var out []policy.GlobalProject
	if err := yaml.UnmarshalStrict([]byte(cm.Data["globalProjects"]), &out); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "globalProjects in ConfigMap %s: it is no list of labelSelector and projectName: %w", cm.Name, err)
	}
	return out, nil
}

// ScopedRepositories are the URLs of the repositories that are registered for
// one project only, by project (1.12).
func ScopedRepositories(secrets []corev1.Secret) map[string][]string {
	out := map[string][]string{}
	for i := range secrets {
		s := &secrets[i]
		project, url := string(s.Data["project"]), string(s.Data["url"])
		if s.Labels[LabelSecretType] == "repository" && project != "" && url != "" && !slices.Contains(out[project], url) {
			out[project] = append(out[project], url)
		}
	}
	for _, urls := range out {
		slices.Sort(urls)
	}
	return out
}

// InForce makes AppProjects ready for use, each with what it inherits and what is
// registered for it alone. The problems are those of the settings.
func InForce(projects []v1alpha1.AppProject, globals []policy.GlobalProject, repositories map[string][]string) (inForce map[string]*policy.Project, problems []error) {
	inForce = map[string]*policy.Project{}
	byName := map[string]*v1alpha1.AppProject{}
	for i := range projects {
		byName[projects[i].Name] = &projects[i]
	}
	find := func(name string) (*v1alpha1.AppProject, bool) { p, ok := byName[name]; return p, ok }
	for name, p := range byName {
		inherited, errs := policy.Globals(p, globals, find)
		problems = append(problems, errs...)
		inForce[name] = policy.New(p, policy.Around{Global: inherited, Repositories: repositories[name]})
	}
	return inForce, problems
}
