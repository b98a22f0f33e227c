package daemon

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	ktypes "k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
)

// maxNesting is how deep Applications may declare Applications.
const maxNesting = 10

// expand finds everything that a side declares: in files, by generating, and by
// rendering Applications that declare Applications. Files that are rendered by
// one of those are not declarations of their own; they show only when it has
// been rendered, so that what was found is then found anew without them.
func (p *planner) expand(ctx context.Context, s *planSide) error {
	if err := p.discover(ctx, s); err != nil {
		return err
	}
	if s == p.head {
		p.keepUnread(s)
	}
	found := s.problems
	for {
		s.forgetRules()
		s.around = p.around
		s.projects, s.sets, s.units = maps.Clone(p.projects), map[string]*planSet{}, map[string]*planUnit{}
		if s.projects == nil {
			s.projects = map[string]*v1alpha1.AppProject{}
		}
		s.problems = slices.Clone(found)
		var first []declared
		for _, d := range s.files {
			if !p.governed.has(d.file) {
				first = append(first, d)
			}
		}
		parents, err := p.follow(ctx, s, first)
		if err != nil {
			return err
		}
		more := false
		for _, u := range parents {
			more = p.govern(u) || more
		}
		if !more {
			return p.onlyLive(ctx, s)
		}
	}
}

// governed are files, folders and whole trees that are rendered by Applications
// which declare others.
type governed struct {
	own                   map[string]bool // files that declare such Applications
	files, folders, trees map[string]bool
}

// has reports whether a file is no declaration of its own. The file that
// declares the Application which renders it is one all the same.
func (g governed) has(file string) bool {
	if g.own[file] {
		return false
	}
	if g.files[file] || g.folders[path.Dir(file)] {
		return true
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if g.trees[dir] {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// govern notes what a unit that declares others renders, and reports whether
// that is news. What it governs on the base it governs on the head: a file that
// it leaves out there is not declared any more.
func (p *planner) govern(u *planUnit) bool {
	g := &p.governed
	if g.own == nil {
		*g = governed{own: map[string]bool{}, files: map[string]bool{}, folders: map[string]bool{}, trees: map[string]bool{}}
	}
	before := len(g.own) + len(g.files) + len(g.folders) + len(g.trees)
	if u.set == "" && u.parent == "" {
		g.own[u.file] = true
	}
	for _, file := range u.read {
		g.files[file] = true
	}
	for i, src := range u.unit.Sources {
		if !p.repo.owns(src.Repo(u.unit.Project)) || src.OnlyRef() {
			continue
		}
		dir := path.Clean(src.Path)
		if u.renders[i].SourceType == "Helm" || src.Directory != nil && src.Directory.Recurse {
			g.trees[dir] = true
		} else {
			g.folders[dir] = true
		}
	}
	return len(g.own)+len(g.files)+len(g.folders)+len(g.trees) != before
}

// follow takes declarations in, level by level, and returns the units that
// declare others.
func (p *planner) follow(ctx context.Context, s *planSide, level []declared) ([]*planUnit, error) {
	var parents []*planUnit
	for depth := 0; len(level) > 0; depth++ {
		if depth > maxNesting {
			s.problem(level[0].parent, rutter.Errorf(rutter.CodeInvalid, "Applications declare Applications more than %d levels deep", maxNesting))
			break
		}
		todo := p.take(ctx, s, level, depth)
		if err := each(ctx, todo, func(ctx context.Context, u *planUnit) { p.render(ctx, u) }); err != nil {
			return nil, err
		}
		level = nil
		for _, u := range todo {
			if u.err != nil {
				if !u.held || !u.vanished() { // that it is gone is why it would be removed
					s.problem(u.name, u.err)
				}
				continue
			}
			more := p.declaredBy(ctx, s, u)
			if len(more) > 0 {
				parents, level = append(parents, u), append(level, more...)
			}
		}
	}
	return parents, nil
}

// take adds a level's declarations to a side and returns the new units.
func (p *planner) take(ctx context.Context, s *planSide, level []declared, depth int) []*planUnit {
	for _, d := range level {
		if project, ok := d.object.(*v1alpha1.AppProject); ok {
			s.projects[project.Name] = project
			s.forgetRules()
		}
	}
	var todo []*planUnit
	var sets []*planSet
	for _, d := range level {
		switch o := d.object.(type) {
		case *v1alpha1.Application:
			if u := p.unit(s, p.placed(o), d, ""); u != nil {
				todo = append(todo, u)
			}
		case *v1alpha1.ApplicationSet:
			if set := p.set(ctx, s, o, d); set != nil {
				sets = append(sets, set)
			}
		}
	}
	todo = append(todo, p.generated(s, sets, depth)...)
	slices.SortFunc(todo, func(a, b *planUnit) int { return cmp.Compare(a.name, b.name) })
	return todo
}

// placed is an Application with a namespace: the control plane's where it has none.
func (p *planner) placed(app *v1alpha1.Application) *v1alpha1.Application {
	if app.Namespace != "" {
		return app
	}
	app = app.DeepCopy()
	app.Namespace = p.cfg.Namespace
	return app
}

// unit adds an Application; nil when there is one of that name.
func (p *planner) unit(s *planSide, app *v1alpha1.Application, d declared, set string) *planUnit {
	u := p.newUnit(s, app, d, set)
	if other := s.units[u.name]; other != nil {
		if other.parent != u.parent || other.file != u.file || other.set != u.set {
			if other.declaredIn() != u.name && u.declaredIn() != u.name { // it may declare itself
				s.problem(u.name, rutter.Errorf(rutter.CodeConflict, "it is declared by %s and by %s: the first counts; --root says where to look", other.declaredIn(), u.declaredIn()))
			}
		}
		return nil
	}
	s.units[u.name] = u
	return u
}

// declaredBy are the declarations among what a unit renders, where it goes to the
// control plane. A render that is known to have none is not opened.
func (p *planner) declaredBy(ctx context.Context, s *planSide, u *planUnit) []declared {
	if u.unit.Target.Server != generate.InClusterServer && u.cluster.Server != generate.InClusterServer && u.unit.Target.Name != "in-cluster" {
		return nil
	}
	var out []declared
	for i, r := range u.renders {
		if r.Digest == "" || p.barren.has(r.Digest) {
			continue
		}
		objects, err := p.objects(ctx, u, i)
		if err != nil {
			s.problem(u.name, err)
			continue
		}
		before := len(out)
		for _, o := range objects {
			d, ok, err := declaration(o, u)
			if err != nil {
				s.problem(u.name, err)
			}
			if ok {
				out = append(out, d)
			}
		}
		if len(out) == before {
			p.barren.add(r.Digest)
		}
		for _, in := range r.Inputs {
			if in.Kind == rutter.InputFile && in.Source == 0 && len(out) > before {
				u.read = append(u.read, in.Path)
			}
		}
	}
	return out
}

// declaration turns a rendered object into what it declares; false for other kinds.
func declaration(o rutter.Object, u *planUnit) (declared, bool, error) {
	if !isDeclaration(o) {
		return declared{}, false, nil
	}
	var into runtime.Object
	switch o.GetKind() {
	case "Application":
		into = &v1alpha1.Application{}
	case "ApplicationSet":
		into = &v1alpha1.ApplicationSet{}
	default:
		into = &v1alpha1.AppProject{}
	}
	object := o.DeepCopy()
	if object.GetNamespace() == "" {
		object.SetNamespace(u.unit.Target.Namespace)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return declared{}, false, rutter.Errorf(rutter.CodeInvalid, "%s %q that it renders: %w", o.GetKind(), o.GetName(), err)
	}
	return declared{object: into, file: o.Origin.File, parent: u.name}, true, nil
}

func isDeclaration(o rutter.Object) bool {
	return strings.HasPrefix(o.GetAPIVersion(), v1alpha1.GroupVersion.Group+"/") && slices.Contains([]string{"Application", "ApplicationSet", "AppProject"}, o.GetKind())
}

// planSet is an ApplicationSet and what it generates.
type planSet struct {
	name   string
	set    *v1alpha1.ApplicationSet
	from   declared
	result generate.Result
	// decision is what becomes of its Applications; of those waits are held back, because of why.
	decision generate.Decision
	size     int
	waits    []string
	// removed is what the controller removed lately.
	removed string
	why     string
}

// set evaluates an ApplicationSet; nil when there is one of that name.
func (p *planner) set(ctx context.Context, s *planSide, set *v1alpha1.ApplicationSet, d declared) *planSet {
	set = set.DeepCopy()
	set.Namespace = cmp.Or(set.Namespace, p.cfg.Namespace)
	set.UID = ktypes.UID(set.Namespace + "/" + set.Name) // owners are told apart by it
	ps := &planSet{name: p.display(set.Namespace, set.Name), set: set, from: d}
	if s.sets[ps.name] != nil {
		return nil
	}
	s.sets[ps.name] = ps
	options := p.sets.Generate
	options.Memory, ps.removed = p.memory(ctx, set)
	ps.result = options.Generate(set, &planFacts{ctx: ctx, p: p})
	known := slices.ContainsFunc(ps.result.Elements, func(e generate.Element) bool { return e.Stale })
	for _, err := range ps.result.Errors {
		if known && rutter.CodeOf(err) == rutter.CodeUnsupported {
			p.note("Set " + ps.name + ": hosting services, placements and plugins are not asked; it is shown with what the controller heard of them last, and nothing is concluded about what they may not list any more.")
			continue
		}
		s.problem("set "+ps.name, err)
	}
	for _, e := range ps.result.Elements {
		if e.Err != nil {
			s.problem("set "+ps.name, e.Err)
		}
	}
	return ps
}

// display is a name for people: with the namespace where it is not the control plane's.
func (p *planner) display(namespace, name string) string {
	if namespace == p.cfg.Namespace || namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// planFacts answer generators from the inventory and the side.
type planFacts struct {
	ctx context.Context //nolint:containedctx // lives for one evaluation
	p   *planner
}

var _ generate.Facts = (*planFacts)(nil)

// Clusters implements generate.Facts.
func (f *planFacts) Clusters() ([]rutter.ClusterInfo, error) {
	if f.p.cfg.Inventory == nil && f.p.cfg.REST == nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the clusters of the fleet are not known: use --inventory FILE (rutter cluster export writes one) or --live")
	}
	var out []rutter.ClusterInfo
	local := false
	for _, c := range f.p.inventory.Clusters {
		out = append(out, c.Info())
		local = local || c.Server == generate.InClusterServer
	}
	if !local {
		out = append(out, rutter.ClusterInfo{Name: "in-cluster", Server: generate.InClusterServer})
	}
	return out, nil
}

// Snapshot implements generate.Facts.
func (f *planFacts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	return f.p.sources.Snapshot(f.ctx, repo, rutter.ResolveOptions{})
}

// instance is the name in tracking ids.
func (p *planner) instance() argo.Config {
	return argo.Config{Namespace: p.cfg.Namespace, Cluster: func(t rutter.Target) (rutter.ClusterInfo, bool) {
		c, ok := p.inventory.Find(t)
		return c.Info(), ok
	}}
}
