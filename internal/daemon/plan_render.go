package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/plan"
	"github.com/rutterhq/rutter/internal/policy"
	"github.com/rutterhq/rutter/internal/preview"
)

// planUnit is an Application of a side.
type planUnit struct {
	name                string
	side                *planSide
	app                 *v1alpha1.Application
	unit                rutter.Unit
	cluster             preview.ClusterFacts
	set, parent, file   string
	stays, orphans, bad string
	// held says that only the budget keeps it, and makes that it shows the
	// namespace which it makes.
	held, makes bool
	// believed says that nobody knows whether there is such a cluster.
	believed bool

	requests []rutter.RenderRequest // one a source; those that are only referred to are empty
	renders  []rutter.Manifests
	read     []string // files of the repository that went into what declares others
	err      error
	key      string
	objects  []preview.Object
}

// newUnit translates an Application as the controller does.
func (p *planner) newUnit(s *planSide, app *v1alpha1.Application, d declared, set string) *planUnit {
	u := &planUnit{side: s, name: p.display(app.Namespace, app.Name), app: app, set: set, parent: d.parent, file: d.file}
	u.unit, _ = argo.ToUnit(app, argo.Config{Namespace: p.cfg.Namespace}, nil)
	var known bool
	if u.cluster, known = p.inventory.Find(u.unit.Target); known {
		u.unit.Target.Server, u.unit.Target.Name = u.cluster.Server, u.cluster.Name
	} else {
		u.cluster = preview.ClusterFacts{Name: cmp.Or(u.unit.Target.Name, u.unit.Target.Server), Server: cmp.Or(u.unit.Target.Server, u.unit.Target.Name)}
		if local := u.unit.Target; local.Server == localServer || local.Name == localName {
			u.cluster.Name, u.cluster.Server = localName, localServer
			known = true
		}
	}
	u.believed = !known && len(p.inventory.Clusters) == 0
	switch {
	case u.unit.Problem != nil:
		u.err = u.unit.Problem
	case !known && len(p.inventory.Clusters) > 0:
		u.err = rutter.Errorf(rutter.CodeNotFound, "spec.destination: cluster %q is not in the inventory", u.cluster.Name)
	}
	return u
}

// The control plane's own cluster as a destination.
const (
	localServer = "https://kubernetes.default.svc"
	localName   = "in-cluster"
)

// declaredIn says what declares a unit.
func (u *planUnit) declaredIn() string {
	switch {
	case u.set != "":
		return "set " + u.set
	case u.parent != "":
		return "Application " + u.parent
	}
	return u.file
}

// render finds out by name what a unit's sources render to; the objects stay in
// the store, so that what is as it was costs no more than looking that up.
func (p *planner) render(ctx context.Context, u *planUnit) {
	if u.err != nil {
		return
	}
	if u.requests, u.err = p.requests(ctx, u); u.err != nil {
		return
	}
	for i, req := range u.requests {
		if req.Snapshot == nil {
			u.renders = append(u.renders, rutter.Manifests{})
			continue
		}
		res, err := p.rendering.renderer.Render(ctx, req)
		if err != nil {
			u.err = fmt.Errorf("%s: %w", u.unit.SourceField(i), err)
			return
		}
		res.Objects = nil // loaded again where they are needed
		u.renders = append(u.renders, res.Manifests)
	}
}

// requests resolves all sources of a unit and says what is asked of the renderer.
func (p *planner) requests(ctx context.Context, u *planUnit) ([]rutter.RenderRequest, error) {
	snaps, err := u.unit.Snapshots(func(repo rutter.Repo) (rutter.Snapshot, error) {
		return p.sources.Snapshot(ctx, repo, rutter.ResolveOptions{})
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the source
	}
	out := make([]rutter.RenderRequest, len(snaps))
	for i, src := range u.unit.Sources {
		if src.OnlyRef() {
			continue
		}
		out[i] = u.unit.Request(i, snaps)
		out[i].KubeVersion, out[i].APIVersions = cmp.Or(u.cluster.Version, p.cfg.KubeVersion), u.cluster.APIVersions
		out[i].Lazy, out[i].Cluster, out[i].Permit = true, u.cluster.Server, u.permit
	}
	return out, nil
}

// permit asks the unit's project about a repository that a source itself names.
func (u *planUnit) permit(repo rutter.Repo) error {
	return permitRepo(u.side.project)(u.unit.Project, repo)
}

// objects opens what a source renders to; what the store does not hold any more
// is rendered once more.
func (p *planner) objects(ctx context.Context, u *planUnit, i int) ([]rutter.Object, error) {
	if u.renders[i].Digest == "" {
		return nil, nil
	}
	if m, err := p.rendering.renderer.Load(u.renders[i].Digest); err == nil {
		return m.Objects, nil
	}
	req := u.requests[i]
	req.Lazy = false
	res, err := p.rendering.renderer.Render(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.unit.SourceField(i), err)
	}
	u.renders[i].Digest = res.Digest
	return res.Objects, nil
}

// keyOf is equal on both sides when nothing about the unit can differ.
func (p *planner) keyOf(s *planSide, u *planUnit) string {
	h := sha256.New()
	var digests []string
	for _, r := range u.renders {
		digests = append(digests, r.Digest)
	}
	failure := ""
	if u.err != nil {
		failure = u.err.Error()
	}
	_ = json.NewEncoder(h).Encode([]any{ //nolint:errchkjson // plain data into a hash
		u.unit.Instance, u.unit.Target, u.app.Spec, u.app.Labels, u.app.Annotations, u.app.Finalizers, digests, s.rules(u.unit.Project), failure,
	})
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// rules are those of a project and those that it inherits, none when it is not known.
func (s *planSide) rules(project string) []v1alpha1.AppProjectSpec {
	p := s.projects[project]
	if p == nil {
		return nil
	}
	out := []v1alpha1.AppProjectSpec{p.Spec}
	globals, _ := policy.Globals(p, s.around.globals, s.declared)
	for _, g := range globals {
		out = append(out, g.Spec)
	}
	return out
}

func (s *planSide) declared(project string) (*v1alpha1.AppProject, bool) {
	p, ok := s.projects[project]
	return p, ok
}

// project is a project of the side as it is in force.
func (s *planSide) project(name string) (*policy.Project, bool) {
	declared, ok := s.declared(name)
	if !ok {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inForce[name] == nil {
		globals, _ := policy.Globals(declared, s.around.globals, s.declared)
		s.inForce[name] = policy.New(declared, policy.Around{Global: globals, Repositories: s.around.repositories[name]})
	}
	return s.inForce[name], true
}

// forgetRules makes the projects anew when they are asked for again.
func (s *planSide) forgetRules() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inForce = map[string]*policy.Project{}
}

// load opens the objects of the units that are not the same on the other side.
func (p *planner) load(ctx context.Context, s, other *planSide) error {
	var todo []*planUnit
	for _, u := range s.ordered() {
		u.key = cmp.Or(u.key, p.keyOf(s, u))
		if o := other.units[u.name]; o != nil {
			if o.key = cmp.Or(o.key, p.keyOf(other, o)); o.key == u.key {
				continue
			}
		}
		todo = append(todo, u)
	}
	return each(ctx, todo, func(ctx context.Context, u *planUnit) {
		if err := p.decorate(ctx, s, u); err != nil {
			u.err = err
			s.problem(u.name, err)
		}
	})
}

// decorate makes the objects of a unit as they are sent, and asks the project's rules.
func (p *planner) decorate(ctx context.Context, s *planSide, u *planUnit) error {
	u.bad = p.refusal(s, u)
	if u.err != nil {
		return nil //nolint:nilerr // it has been noted
	}
	all := make([]rutter.Manifests, len(u.renders))
	for i := range u.renders {
		objects, err := p.objects(ctx, u, i)
		if err != nil {
			return err
		}
		all[i].Objects = objects
	}
	crds := plan.Scopes(all)
	for _, m := range all {
		for _, o := range m.Objects {
			if isDeclaration(o) && u.cluster.Server == localServer {
				continue // shown as what it declares
			}
			namespaced := preview.Namespaced(rutter.GVKOf(o.Unstructured), crds, u.cluster)
			sent, meta := plan.Sent(o.Unstructured, u.unit, namespaced), plan.MetaOf(o.GetAnnotations())
			if meta.Skip || meta.IsHook && len(meta.Hooks) == 0 {
				continue // never applied
			}
			x := preview.Object{Unstructured: sent, Origin: o.Origin, Hook: meta.IsHook, Stays: meta.NoPrune}
			if project, ok := s.project(u.unit.Project); ok {
				if err := project.CheckResource(u.cluster.Info(), x.Ref(), namespaced); err != nil {
					x.Refused = err.Error()
				}
			}
			u.objects = append(u.objects, x)
		}
	}
	if ns, ok := u.namespace(); ok {
		u.objects = append(u.objects, ns)
	}
	return nil
}

// refusal is why the rules of its project forbid a unit.
func (p *planner) refusal(s *planSide, u *planUnit) string {
	if u.unit.Problem != nil {
		return ""
	}
	if _, ok := s.projects[u.unit.Project]; !ok && (u.unit.Project == "default" || !p.base.has(u.unit.Project)) {
		return "" // it is nowhere here; unchecked says so
	}
	unit, _ := argo.ToUnit(u.app, p.instance(), s.project)
	if unit.Problem == nil {
		return ""
	}
	return unit.Problem.Error()
}

func (s *planSide) has(project string) bool { return s.projects[project] != nil }

// show is a side as it is compared.
func (p *planner) show(s *planSide) preview.Side {
	out := preview.Side{Name: s.name, Revision: s.snap.Revision(), Problems: s.problems}
	for _, name := range slices.Sorted(maps.Keys(s.projects)) {
		project := s.projects[name]
		out.Projects = append(out.Projects, preview.Project{Name: name, Declaration: plainJSON(map[string]any{"spec": project.Spec, "metadata": metadata(project)})})
	}
	for _, name := range slices.Sorted(maps.Keys(s.sets)) {
		ps := s.sets[name]
		set := preview.Set{Name: ps.name, File: ps.from.file, Size: ps.size, Declaration: plainJSON(map[string]any{"spec": ps.set.Spec, "metadata": metadata(ps.set)})}
		if len(ps.waits) > 0 {
			set.Held = &preview.Held{Set: ps.name, Applications: ps.waits, Reason: ps.why, ObjectsStay: generate.Preserves(ps.set)}
			if set.Held.Digest = p.heldDigest(ps); set.Held.Digest != "" {
				set.Held.Namespace = ps.set.Namespace
			}
		}
		out.Sets = append(out.Sets, set)
	}
	for _, u := range s.ordered() {
		shown := preview.Unit{ID: u.unit.ID, Name: u.name, Set: u.set, Parent: u.parent, File: u.file, Cluster: u.cluster.Name, Server: u.cluster.Server,
			Namespace: u.unit.Target.Namespace, Key: u.key, Objects: u.objects, Failed: u.err != nil, Refused: u.bad,
			Vanished: u.vanished() && !u.held,
			Prunes:   u.unit.Policy.Automated && u.unit.Policy.Prune, Manual: !u.unit.Policy.Automated, Stays: u.stays, Orphans: u.orphans}
		if o := p.otherSide(s).units[u.name]; o == nil || o.key != u.key {
			shown.Declaration, shown.Inputs = plainJSON(map[string]any{"spec": u.app.Spec, "metadata": metadata(u.app)}), u.inputs()
		}
		out.Units = append(out.Units, shown)
	}
	return out
}

// vanished reports whether what its sources name is not there.
func (u *planUnit) vanished() bool {
	return u.err != nil && rutter.CodeOf(u.err) == rutter.CodeNotFound
}

func (p *planner) otherSide(s *planSide) *planSide {
	if s == p.base {
		return p.head
	}
	return p.base
}

// inputs names everything that was read to render a unit.
func (u *planUnit) inputs() string {
	h := sha256.New()
	for _, r := range u.renders {
		_ = json.NewEncoder(h).Encode(r.Inputs) //nolint:errchkjson // plain data into a hash
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// metadata is what a user writes of it.
func metadata(o interface {
	GetLabels() map[string]string
	GetAnnotations() map[string]string
	GetFinalizers() []string
},
) map[string]any {
	out := map[string]any{}
	if l := o.GetLabels(); len(l) > 0 {
		out["labels"] = l
	}
	if a := o.GetAnnotations(); len(a) > 0 {
		out["annotations"] = a
	}
	if f := o.GetFinalizers(); len(f) > 0 {
		out["finalizers"] = f
	}
	return out
}

// plainJSON is a value as its JSON reads.
func plainJSON(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		return nil // declarations were read from JSON
	}
	var out any
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		return nil
	}
	return out
}

// unchecked names the projects whose rules could not be asked.
func (p *planner) unchecked() []string {
	missing := map[string]bool{}
	for _, u := range p.head.units {
		if name := u.unit.Project; name != "default" && !p.head.has(name) && !p.base.has(name) {
			missing[name] = true
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{"The rules of these projects were not asked, since no file declares them (--live asks the control plane): " + strings.Join(slices.Sorted(maps.Keys(missing)), ", ") + "."}
}
