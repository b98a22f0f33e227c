package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/plan"
)

// desired is what Git declares for a unit at one moment. The objects themselves
// stay in the render store; here is what deciding needs of each.
type desired struct {
	// key names what was rendered from what: declarations and manifests, not
	// commits, so that a commit that changes nothing changes no key.
	key       string
	revisions []string
	// sources is a digest of the unit's sources and target as they were rendered.
	sources     string
	sourceTypes []string
	digests     []string
	// inline are objects that came with a sync, in the place of what is rendered.
	inline     []rutter.Manifests
	objects    []desiredObject
	index      map[rutter.Ref]int
	images     []string
	conditions []rutter.Condition
	// ignore is the rule set that verdicts are judged by: the unit's, and one for
	// each object with fields that come out differently in each render.
	ignore []rutter.IgnoreRule
	// rules are these, ready for use, with what settings say about all comparisons.
	rules    *compare.Rules
	settings rutter.CompareSettings
	// webhooks says that only the server can tell whether an object is in sync.
	webhooks bool
}

// desiredObject is one declared object.
type desiredObject struct {
	plan.Desired

	gvk    rutter.GVK
	source int // which of digests
	pos    int // position within those manifests
	origin rutter.Origin
}

// keepForever is the age at which a known revision is still used as it is.
const keepForever = int64(1<<63 - 1)

// render resolves and renders all sources of a unit. The result is complete or
// an error; there is nothing in between.
func (e *Engine) render(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, fresh, rebuild bool) (*desired, error) {
	snaps, err := e.snapshots(ctx, unit, fresh)
	if err != nil {
		return nil, err
	}
	if err := e.verify(unit, snaps); err != nil {
		return nil, err
	}
	d := &desired{index: map[rutter.Ref]int{}, ignore: slices.Clip(unit.Ignore), webhooks: unit.Policy.IncludeWebhooks, sources: unit.SourcesDigest()}
	var all []rutter.Manifests
	for i, src := range unit.Sources {
		d.revisions = append(d.revisions, snaps[i].Revision())
		if src.OnlyRef() {
			d.sourceTypes = append(d.sourceTypes, "Directory")
			all = append(all, rutter.Manifests{})
			continue
		}
		res, err := e.renderOne(ctx, unit, c, i, snaps, true)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", unit.SourceField(i), err)
		}
		if !res.Cached {
			e.stats.Renders.Add(1)
			u.mu.Lock()
			u.renders++
			u.mu.Unlock()
			e.opts.Logger.Info("rendered", "unit", unit.ID.String(), "revision", snaps[i].Revision(), "objects", len(res.Objects))
		} else {
			e.stats.RenderHit.Add(1)
		}
		d.sourceTypes = append(d.sourceTypes, res.SourceType)
		all = append(all, res.Manifests)
	}
	for _, m := range all {
		d.digests = append(d.digests, m.Digest)
		for _, w := range m.Warnings {
			d.conditions = append(d.conditions, rutter.Condition{Type: rutter.CondRender, Message: w})
		}
	}
	d.key = desiredKey(unit, d.digests)
	u.mu.Lock()
	old := u.desired
	u.mu.Unlock()
	if old != nil && old.key == d.key && !rebuild {
		return old.at(d), nil
	}
	for i := range all {
		if err := e.loadObjects(ctx, unit, c, i, snaps, &all[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", unit.SourceField(i), err)
		}
		d.digests[i] = all[i].Digest
	}
	d.key = desiredKey(unit, d.digests)
	return d, e.build(ctx, unit, c, d, all)
}

// loadObjects completes an answer that the store gave by name only. What it no
// longer holds is rendered once more.
func (e *Engine) loadObjects(ctx context.Context, unit rutter.Unit, c rutter.Cluster, i int, snaps []rutter.Snapshot, m *rutter.Manifests) error {
	if m.Objects != nil || m.Digest == "" {
		return nil
	}
	loaded, err := e.opts.Renderer.Load(m.Digest)
	if err == nil {
		m.Objects = loaded.Objects
		return nil
	}
	res, err := e.renderOne(ctx, unit, c, i, snaps, false)
	if err != nil {
		return err
	}
	e.stats.Renders.Add(1)
	*m = res.Manifests
	return nil
}

// at is the same desired objects at other commits.
func (d *desired) at(o *desired) *desired {
	same := *d
	same.revisions, same.conditions = o.revisions, d.conditions
	return &same
}

func desiredKey(unit rutter.Unit, digests []string) string {
	h := sha256.New()
	// Everything that decorates or steers the objects is part of the key.
	_ = json.NewEncoder(h).Encode([]any{ //nolint:errchkjson // plain data into a hash
		unit.Instance, unit.Tracking, unit.Project, unit.Target, unit.Policy, unit.Ignore, unit.Sources, digests,
	})
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// snapshots resolves every source of a unit, once a repository and revision.
func (e *Engine) snapshots(ctx context.Context, unit rutter.Unit, fresh bool) ([]rutter.Snapshot, error) {
	age := keepForever
	if fresh {
		age = 0
	}
	return unit.Snapshots(func(repo rutter.Repo) (rutter.Snapshot, error) { //nolint:wrapcheck // it names the source
		snap, err := e.opts.Sources.Snapshot(ctx, repo, rutter.ResolveOptions{MaxAge: age})
		if err == nil {
			e.repos.Saw(repo, snap.Revision(), fresh)
		}
		return snap, err //nolint:wrapcheck // it names the repository
	})
}

// verify asks of every source whether it is signed as the unit's project demands:
// before any tool reads a file of it.
func (e *Engine) verify(unit rutter.Unit, snaps []rutter.Snapshot) error {
	if e.opts.Verify == nil {
		return nil
	}
	for i, src := range unit.Sources {
		if err := e.opts.Verify(unit, src, snaps[i]); err != nil {
			return fmt.Errorf("%s: %w", unit.SourceField(i), err)
		}
	}
	return nil
}

func (e *Engine) renderOne(ctx context.Context, unit rutter.Unit, c rutter.Cluster, i int, snaps []rutter.Snapshot, lazy bool) (rutter.RenderResult, error) {
	req := unit.Request(i, snaps)
	req.Lazy, req.Cluster = lazy, c.Info().Server
	req.Permit = func(repo rutter.Repo) error { return e.opts.PermitRepo(unit.Project, repo) }
	if e.opts.Lookup != nil {
		req.Lookup = e.opts.Lookup(unit, c)
	}
	var err error
	if req.KubeVersion, req.APIVersions, err = c.Version(ctx); err != nil {
		return rutter.RenderResult{}, fmt.Errorf("ask the cluster for its version: %w", err)
	}
	return e.opts.Renderer.Render(ctx, req) //nolint:wrapcheck // the caller names the source
}

// build turns manifests into desired objects: namespaces, marks, policy.
func (e *Engine) build(ctx context.Context, unit rutter.Unit, c rutter.Cluster, d *desired, all []rutter.Manifests) error {
	scopes := plan.Scopes(all)
	d.reserve(all)
	names := interned{}
	for si, m := range all {
		for pos, obj := range m.Objects {
			o := desiredObject{gvk: rutter.GVKOf(obj.Unstructured), source: si, pos: pos, origin: obj.Origin}
			namespaced, missing, err := scope(ctx, c, o.gvk, scopes)
			if err != nil {
				return err
			}
			full := plan.Sent(obj.Unstructured, unit, namespaced)
			o.Ref = names.ref(rutter.RefOf(full))
			o.gvk = rutter.GVK{Group: o.Ref.Group, Version: names.of(o.gvk.Version), Kind: o.Ref.Kind}
			o.origin.File = names.of(o.origin.File)
			if e.excludes(o.gvk, c.Info().Server) {
				d.conditions = append(d.conditions, rutter.Condition{Type: rutter.CondExcluded, Message: fmt.Sprintf("Resource %s is excluded in the settings", o.Ref)})
				continue
			}
			o.Meta = plan.MetaOf(obj.GetAnnotations())
			o.KindMissing = missing
			rule := randomRule(obj, full)
			random, err := compare.NewRules(rule, rutter.CompareSettings{})
			if err != nil {
				return fmt.Errorf("fields of %s that come out differently each time: %w", o.Ref, err)
			}
			d.ignore = append(d.ignore, rule...)
			if rule, ok := compare.ScalerRule(full); ok {
				d.ignore = append(d.ignore, rule)
			}
			o.Hash = compare.Hash(compare.Strip(full, random))
			o.DefinesGroup, o.DefinesKind = plan.Defines(full)
			if namespaced && o.Ref.Namespace == "" {
				return rutter.Errorf(rutter.CodeInvalid, "namespace for %s %q is missing: set metadata.namespace or spec.destination.namespace", o.Ref.Kind, o.Ref.Name)
			}
			if err := e.opts.Permit(unit, c.Info(), o.Ref, namespaced); err != nil {
				o.Refused = err.Error()
			}
			d.add(o)
			d.images = append(d.images, plan.Images(full)...)
		}
	}
	slices.Sort(d.images)
	d.images = slices.Compact(d.images)
	return e.comparing.Load().settle(d)
}

// reserve makes room for as many objects as there are, and no more.
func (d *desired) reserve(all []rutter.Manifests) {
	n := 0
	for i := range all {
		n += len(all[i].Objects)
	}
	d.objects = make([]desiredObject, 0, n)
	d.index = make(map[rutter.Ref]int, n)
}

// interned holds each of the words that many objects share once.
type interned map[string]string

func (in interned) of(s string) string {
	if known, ok := in[s]; ok {
		return known
	}
	in[s] = s
	return s
}

// ref is r in words that are held already, but for the name.
func (in interned) ref(r rutter.Ref) rutter.Ref {
	return rutter.Ref{Group: in.of(r.Group), Kind: in.of(r.Kind), Namespace: in.of(r.Namespace), Name: r.Name}
}

// randomRule ignores the fields of an object that come out differently each
// time it is rendered: their first applied value is kept (scenario B21).
func randomRule(obj rutter.Object, full *unstructured.Unstructured) []rutter.IgnoreRule {
	if len(obj.Random) == 0 {
		return nil
	}
	ref := rutter.RefOf(full)
	pointers := slices.Clone(obj.Random)
	for i, p := range pointers {
		if rest, ok := strings.CutPrefix(p, "/stringData/"); ok && ref.Kind == "Secret" && ref.Group == "" {
			pointers[i] = "/data/" + rest // where it is sent
		}
	}
	return []rutter.IgnoreRule{{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, JSONPointers: pointers}}
}

// add appends o; of two declarations of one object the last wins (reference 2.11).
func (d *desired) add(o desiredObject) {
	if at, dup := d.index[o.Ref]; dup && !o.Meta.IsHook {
		d.conditions = append(d.conditions, rutter.Condition{Type: rutter.CondRepeated,
			Message: fmt.Sprintf("Resource %s appears more than once among the application's resources; the last one is used", o.Ref)})
		d.objects[at] = o
		return
	}
	if !o.Meta.IsHook || o.Ref.Name != "" {
		d.index[o.Ref] = len(d.objects)
	}
	d.objects = append(d.objects, o)
}

// object loads a desired object from the store, as it is sent.
func (e *Engine) object(unit rutter.Unit, d *desired, i int) (*unstructured.Unstructured, error) {
	o := d.objects[i]
	if d.inline != nil {
		return plan.Sent(d.inline[o.source].Objects[o.pos].Unstructured, unit, o.Ref.Namespace != ""), nil
	}
	m, err := e.opts.Renderer.Load(d.digests[o.source])
	if err != nil {
		return nil, fmt.Errorf("load the manifests of %s: %w", unit.ID, err)
	}
	return plan.Sent(m.Objects[o.pos].Unstructured, unit, o.Ref.Namespace != ""), nil
}

// scope says whether a kind is namespaced: by the cluster, by a CRD of the same
// render, or, for a kind that neither knows yet, as if it were (missing).
func scope(ctx context.Context, c rutter.Cluster, gvk rutter.GVK, crds map[[2]string]bool) (namespaced, missing bool, err error) {
	m, err := c.Mapping(ctx, gvk)
	if err == nil {
		return m.Namespaced, false, nil
	}
	if rutter.CodeOf(err) != rutter.CodeNotFound {
		return false, false, fmt.Errorf("look up kind %s: %w", gvk.Kind, err)
	}
	if ns, ok := crds[[2]string{gvk.Group, gvk.Kind}]; ok {
		return ns, true, nil
	}
	return true, true, nil
}

// retryRender is the pause before a failed render is tried again without any
// change: the remote may be back, or a kind may be served by then.
func retryRender(n int) time.Duration {
	return min(time.Second<<min(n, 8), 3*time.Minute)
}
