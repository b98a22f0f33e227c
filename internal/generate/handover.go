package generate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// SetChanges are the decisions about one set, in a comparison of several.
type SetChanges struct {
	Set     *v1alpha1.ApplicationSet
	Changes []Change
}

// Place is where an Application is generated.
type Place struct {
	Namespace, Set, Name string
}

// Handover is an Application that one set, generator or name gives up and
// another one has, with the same objects. Its objects are not deleted.
//
// Where From and To have one name in one namespace it is the same object, that
// only gets another owner: Application is what to write, over the live one.
// Otherwise To is made or is there already; once it has the objects, From is
// deleted without its resources finalizer. Neither step deletes an object, and
// each can be repeated.
type Handover struct {
	From, To Place
	// Live is the Application that is given up.
	Live *v1alpha1.Application
	// Application is what to write at To; nil when what is there is right.
	Application *v1alpha1.Application
}

// SameObject reports whether only the owner changes.
func (h Handover) SameObject() bool {
	return h.From.Namespace == h.To.Namespace && h.From.Name == h.To.Name
}

// Handovers finds, among the decisions about several sets that belong together,
// what is not deleted and made again but handed over: removals (also held ones)
// for which there is an Application of the same sources, destination and
// project, or which only another set generates now. clusters, where they are
// known, tell that a server and a name are the same cluster.
func Handovers(sets []SetChanges, clusters []rutter.ClusterInfo) []Handover {
	m := newMembers(clusters)
	rough := map[string]bool{}
	for _, s := range sets {
		for _, c := range s.Changes {
			if c.givesUp() {
				rough[m.roughKey(c.Application)] = true
			}
		}
	}
	takers := takersOf(sets, m, rough)
	var out []Handover
	for _, s := range sets {
		for _, c := range s.Changes {
			if !c.givesUp() {
				continue
			}
			from := Place{Namespace: c.Application.Namespace, Set: s.Set.Name, Name: c.Name}
			if t, ok := takers.take(from, m.contentKey(c.Application)); ok {
				out = append(out, Handover{From: from, To: t.place, Live: c.Application, Application: t.write})
			}
		}
	}
	slices.SortFunc(out, func(a, b Handover) int {
		return cmp.Or(cmp.Compare(a.From.Namespace, b.From.Namespace), cmp.Compare(a.From.Name, b.From.Name), cmp.Compare(a.From.Set, b.From.Set))
	})
	return out
}

// givesUp reports whether a change is of an Application that its set gives up.
func (c Change) givesUp() bool {
	return c.Application != nil && c.Err == nil && !c.wanted && (c.Verb == Delete || c.Verb == Hold || c.Verb == Release)
}

// taker is an Application that is wanted.
type taker struct {
	place Place
	// write is what is written there, if anything is.
	write *v1alpha1.Application
	// fresh ones are made for the first time.
	fresh bool
}

// takers are those of several sets.
type takers struct {
	members members
	rough   map[string]bool
	// byName are those that are refused because the name is another set's.
	byName map[Place]taker
	// byContent are the best for each content.
	byContent map[string]taker
}

// takersOf gathers those that may take over something with one of the rough keys.
func takersOf(sets []SetChanges, m members, rough map[string]bool) takers {
	ts := takers{members: m, rough: rough, byName: map[Place]taker{}, byContent: map[string]taker{}}
	for _, s := range sets {
		for _, c := range s.Changes {
			place := Place{Namespace: s.Set.Namespace, Set: s.Set.Name, Name: c.Name}
			switch {
			case c.Verb == Create && c.Application != nil:
				ts.offer(c.Application, taker{place: place, write: c.Application, fresh: true})
			case c.Verb == Update && c.Application != nil:
				ts.offer(c.Application, taker{place: place, write: c.Application})
			case c.Verb == Keep && c.Application != nil && c.Err == nil && ownedBy(c.Application, s.Set) && c.wanted:
				ts.offer(c.Application, taker{place: place})
			case c.Verb == Refuse && c.Desired != nil && c.Application != nil && rutter.CodeOf(c.Err) == rutter.CodeConflict:
				ts.byName[Place{Namespace: place.Namespace, Name: c.Name}] = taker{place: place, write: adopted(c.Desired, c.Application, s.Set)}
			}
		}
	}
	return ts
}

// offer keeps the best taker: one that is made, and of those the first by name.
func (ts takers) offer(app *v1alpha1.Application, t taker) {
	if !ts.rough[ts.members.roughKey(app)] {
		return
	}
	key := ts.members.contentKey(app)
	old, ok := ts.byContent[key]
	if !ok || t.fresh && !old.fresh || t.fresh == old.fresh && comparePlaces(t.place, old.place) < 0 {
		ts.byContent[key] = t
	}
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Set, b.Set), cmp.Compare(a.Name, b.Name))
}

// take finds who takes the objects of what is given up.
func (ts takers) take(from Place, key string) (taker, bool) {
	if t, ok := ts.byName[Place{Namespace: from.Namespace, Name: from.Name}]; ok && t.place.Set != from.Set {
		return t, true
	}
	t, ok := ts.byContent[key]
	return t, ok && t.place != from
}

// adopted is the live Application as another set writes it.
func adopted(desired, live *v1alpha1.Application, set *v1alpha1.ApplicationSet) *v1alpha1.Application {
	rc := &reconciliation{set: set}
	return rc.merge(desired, withoutOwner(live))
}

// contentKey is what decides which objects an Application has: two with the
// same key have the same ones. Where Helm names its release after the
// Application, the name is a part of it.
func (m members) contentKey(app *v1alpha1.Application) string {
	sources := app.Spec.Sources
	if len(sources) == 0 && app.Spec.Source != nil {
		sources = []v1alpha1.ApplicationSource{*app.Spec.Source}
	}
	named := false
	normal := make([]any, 0, len(sources))
	for _, s := range sources {
		named = named || (s.Chart != "" || s.Helm != nil) && (s.Helm == nil || s.Helm.ReleaseName == "")
		s.RepoURL = rutter.NormalizeGitURL(s.RepoURL)
		tree, err := treeOf(s)
		if err != nil {
			return app.Namespace + "/" + app.Name // it is like no other
		}
		normal = append(normal, prune(tree))
	}
	key := []any{app.Namespace, cmp.Or(app.Spec.Project, defaultProject), m.place(app.Spec.Destination), app.Spec.Destination.Namespace, normal}
	if named {
		key = append(key, app.Name)
	}
	raw, err := json.Marshal(key)
	if err != nil || len(normal) == 0 {
		return app.Namespace + "/" + app.Name
	}
	return string(raw)
}

// roughKey is equal for all that have an equal contentKey, and costs little.
func (m members) roughKey(app *v1alpha1.Application) string {
	path := ""
	switch {
	case len(app.Spec.Sources) > 0:
		path = app.Spec.Sources[0].Path
	case app.Spec.Source != nil:
		path = app.Spec.Source.Path
	}
	return m.place(app.Spec.Destination) + "\x00" + app.Spec.Destination.Namespace + "\x00" + path
}

// handOver takes out of what goes what another Application of the namespace
// has the objects of, and answers with the rest.
func (rc *reconciliation) handOver(gone, live []*v1alpha1.Application) []*v1alpha1.Application {
	going := make(map[string]bool, len(gone))
	for _, app := range gone {
		going[app.Name] = true
	}
	rough := make(map[string]bool, len(gone))
	for _, app := range gone {
		rough[rc.members.roughKey(app)] = true
	}
	takers := takersOf([]SetChanges{{Set: rc.set, Changes: rc.decision.Changes}}, rc.members, rough)
	for _, app := range live {
		if app.Namespace == rc.set.Namespace && !going[app.Name] && app.DeletionTimestamp == nil && !ownedBy(app, rc.set) {
			takers.offer(app, taker{place: Place{Namespace: app.Namespace, Name: app.Name}})
		}
	}
	created := make(map[string]int, len(rc.decision.Changes))
	for i, c := range rc.decision.Changes {
		if c.Verb == Create {
			created[c.Name] = i
		}
	}
	var rest []*v1alpha1.Application
	for _, app := range gone {
		t, ok := takers.take(Place{Namespace: app.Namespace, Set: rc.set.Name, Name: app.Name}, rc.members.contentKey(app))
		if !ok {
			rest = append(rest, app)
			continue
		}
		to := t.place.Namespace + "/" + t.place.Name
		if i, fresh := created[t.place.Name]; fresh {
			rc.decision.Changes[i].From = app.Namespace + "/" + app.Name
		}
		rc.add(Change{Verb: Release, Name: app.Name, Application: app, To: to, StripFinalizer: true,
			Reason: "Application " + strings.TrimPrefix(to, rc.set.Namespace+"/") + " has its objects now"})
	}
	return rest
}
