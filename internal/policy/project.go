package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Project is an AppProject as it is in force: its own rules, those that it
// inherits and what is registered for it alone, made ready for use. It does not
// change; a changed AppProject is made a Project anew.
type Project struct {
	// Name is the AppProject's.
	Name string

	own          *v1alpha1.AppProject
	repos        []repoRule
	destinations []destinationRule
	accounts     []accountRule
	clusterAllow, clusterDeny,
	namespaceAllow, namespaceDeny []kindRule
	// restricts says that namespaced kinds must be listed.
	restricts bool
	windows   []window
	// ignored are what do not count as orphans.
	ignored []ignoredOrphan
}

// Around is what counts for a project besides its own spec.
type Around struct {
	// Global are the projects whose rules it inherits (6.10), in the order of the
	// settings; see Globals.
	Global []*v1alpha1.AppProject
	// Repositories are the URLs of the repository Secrets that are scoped to it
	// (6.2): what is registered for a project need not be listed by it.
	Repositories []string
}

// New makes an AppProject ready for use.
func New(p *v1alpha1.AppProject, around Around) *Project {
	out := &Project{Name: p.Name, own: p, restricts: p.Spec.NamespaceResourceWhitelist != nil, ignored: ignoredOrphans(p.Spec.OrphanedResources)}
	out.add(p, "AppProject "+p.Name)
	for _, g := range around.Global {
		out.add(g, "global AppProject "+g.Name)
	}
	for _, url := range around.Repositories {
		out.repos = append(out.repos, repoRule{pattern: plainPattern(glob.QuoteMeta(rutter.NormalizeGitURL(url)), '/'), where: "the repository Secret of " + url + " that is scoped to AppProject " + p.Name})
	}
	return out
}

// add takes the rules of an AppProject that are inherited (6.10) at the end of
// those there are; of says whose they are. The sum allows what any of them
// allows and none denies. Namespaced kinds must be listed as soon as one of the
// projects lists some.
func (p *Project) add(from *v1alpha1.AppProject, of string) {
	where := func(list string, i int) string { return fmt.Sprintf("spec.%s[%d] of %s", list, i, of) }
	for i, r := range from.Spec.SourceRepos {
		p.repos = append(p.repos, newRepoRule(r, where("sourceRepos", i)))
	}
	for i, d := range from.Spec.Destinations {
		p.destinations = append(p.destinations, newDestinationRule(d, where("destinations", i)))
	}
	for i, a := range from.Spec.DestinationServiceAccounts {
		p.accounts = append(p.accounts, newAccountRule(a, where("destinationServiceAccounts", i)))
	}
	for i, r := range from.Spec.ClusterResourceWhitelist {
		p.clusterAllow = append(p.clusterAllow, kindRule{r.Group, r.Kind, r.Name, where("clusterResourceWhitelist", i)})
	}
	for i, r := range from.Spec.ClusterResourceBlacklist {
		p.clusterDeny = append(p.clusterDeny, kindRule{r.Group, r.Kind, r.Name, where("clusterResourceBlacklist", i)})
	}
	if listed := from.Spec.NamespaceResourceWhitelist; listed != nil {
		for i, r := range *listed {
			p.namespaceAllow = append(p.namespaceAllow, kindRule{r.Group, r.Kind, "", where("namespaceResourceWhitelist", i)})
		}
		p.restricts = p.restricts || len(*listed) > 0
	}
	for i, r := range from.Spec.NamespaceResourceBlacklist {
		p.namespaceDeny = append(p.namespaceDeny, kindRule{r.Group, r.Kind, "", where("namespaceResourceBlacklist", i)})
	}
	for i, w := range from.Spec.SyncWindows {
		p.windows = append(p.windows, newWindow(w, where("syncWindows", i)))
	}
}

// refuse is a refusal in the project's name, which says what and by which rule.
func (p *Project) refuse(what, why string) error {
	return rutter.Errorf(rutter.CodeForbidden, "%s is not permitted in project %s: %s", what, p.Name, why)
}

// GlobalProject is an entry of globalProjects in argocd-cm (6.10): projects that
// the selector matches inherit from the one that is named.
type GlobalProject struct {
	LabelSelector metav1.LabelSelector `json:"labelSelector"`
	ProjectName   string               `json:"projectName"`
}

// Globals are the projects that p inherits from; find looks one up by name. A
// project does not inherit from itself, nor what another has inherited. A global
// project that is not there, or a selector that cannot be read, is a problem:
// its rules, the denying ones too, are not in force.
func Globals(p *v1alpha1.AppProject, settings []GlobalProject, find func(name string) (*v1alpha1.AppProject, bool)) (globals []*v1alpha1.AppProject, problems []error) {
	for i, s := range settings {
		selector, err := metav1.LabelSelectorAsSelector(&s.LabelSelector)
		if err != nil {
			problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "globalProjects[%d].labelSelector (project %s): %w", i, s.ProjectName, err))
			continue
		}
		if s.ProjectName == p.Name || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		g, ok := find(s.ProjectName)
		switch {
		case !ok:
			problems = append(problems, rutter.Errorf(rutter.CodeNotFound, "globalProjects[%d]: AppProject %q does not exist: make it, or take the entry out", i, s.ProjectName))
		case !slices.Contains(globals, g):
			globals = append(globals, g)
		}
	}
	return globals, problems
}

// clusterName is what people call a cluster.
func clusterName(c rutter.ClusterInfo) string {
	if c.Name != "" {
		return c.Name
	}
	return strings.TrimRight(c.Server, "/")
}
