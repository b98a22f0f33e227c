package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/testenv"
)

// listSet is a set that makes an Application of each element, which is the
// namespace where the workload goes.
func listSet(set, name, policy string, elements ...string) string {
	var list strings.Builder
	for _, e := range elements {
		fmt.Fprintf(&list, "          - ns: %s\n", e)
	}
	if list.Len() == 0 {
		list.WriteString("          []\n")
	}
	return fmt.Sprintf(`apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata:
  name: %s
spec:
  goTemplate: true
  generators:
    - list:
        elements:
%s  template:
    metadata:
      name: '%s'
      finalizers: [%s]
    spec:
      project: default
      source: {repoURL: "${REPO}", targetRevision: main, path: app}
      destination: {name: alpha, namespace: '{{.ns}}'}
      syncPolicy: %s
`, set, list.String(), name, cascadeFinalizer, policy)
}

const automated = "{automated: {prune: true, selfHeal: true}}"

// replace writes another spec into a set that is there.
func (w *world) replace(t *testing.T, text string, v vars) {
	t.Helper()
	next := object(t, v.expand(text))
	live := next.DeepCopy()
	if err := w.hub.client.Get(t.Context(), client.ObjectKey{Namespace: controlNamespace, Name: next.GetName()}, live); err != nil {
		t.Fatal(err)
	}
	live.Object["spec"] = next.Object["spec"]
	if err := w.hub.client.Update(t.Context(), live, client.FieldValidation("Strict")); err != nil {
		t.Fatal(err)
	}
}

// fleet is some namespaces of a member, in each of which an Application has the
// workload.
type fleet struct {
	namespaces []string
	witnesses  []*witness
}

func (w *world) fleet(t *testing.T, prefix string, n int) *fleet {
	t.Helper()
	f := &fleet{}
	for range n {
		f.namespaces = append(f.namespaces, w.alpha.namespace(t, prefix))
	}
	return f
}

// look begins once every Application is Synced.
func (f *fleet) look(t *testing.T, w *world, app func(ns string) string) {
	t.Helper()
	for _, ns := range f.namespaces {
		w.awaitSynced(t, app(ns), "")
		f.witnesses = append(f.witnesses, w.alpha.witness(t, ns))
	}
}

// moved waits until every workload is another Application's, and checks that
// nothing has happened to it.
func (f *fleet) moved(t *testing.T, w *world, from, to func(ns string) string) {
	t.Helper()
	for i, ns := range f.namespaces {
		w.awaitSynced(t, to(ns), "")
		if from(ns) != to(ns) {
			w.awaitGone(t, from(ns))
		}
		f.witnesses[i].are(t, to(ns))
	}
	time.Sleep(time.Second) // nothing may follow
	for _, x := range f.witnesses {
		x.unharmed(t)
	}
}

// TestMoves moves the Applications of sets in every way that they can move, and
// none of their workloads is deleted or made anew.
func TestMoves(t *testing.T) {
	t.Parallel()
	w := start(t)
	named := func(prefix string) func(string) string { return func(ns string) string { return prefix + ns } }
	for name, tc := range map[string]struct {
		before, after []string // sets: S is the test's prefix, A and B are namespaces
		from, to      string   // prefixes of the Applications' names
		reason        string
	}{
		"renamed by the template": {before: []string{"list one old automated A B"}, after: []string{"list one new automated A B"}, from: "old", to: "new",
			reason: "another name is another Application with the same objects"},
		"renamed, synced by hand": {before: []string{"list one old automated A B"}, after: []string{"list one new manual A B"}, from: "old", to: "new",
			reason: "the marks move although nobody syncs"},
		"to another set, same names": {before: []string{"list one app automated A B", "list two app automated"}, after: []string{"list one app automated", "list two app automated A B"},
			from: "app", to: "app", reason: "only the owner changes"},
		"to another set, which is written first": {before: []string{"list one app automated A B", "list two app automated"}, after: []string{"list two app automated A B", "list one app automated"},
			from: "app", to: "app", reason: "both generate it for a moment"},
		"to another set, other names": {before: []string{"list one old automated A B", "list two new automated"}, after: []string{"list one old automated", "list two new automated A B"},
			from: "old", to: "new", reason: "the set that gives is seen first"},
		"to a new set": {before: []string{"list one old automated A B"}, after: []string{"list one old automated", "list two new automated A B"},
			from: "old", to: "new", reason: "the other set is made after the Applications are given up"},
		"set deleted, other names": {before: []string{"list one old automated A B"}, after: []string{"delete one", "list two new automated A B"},
			from: "old", to: "new", reason: "the garbage collector deletes what another set has"},
		"set deleted, same names": {before: []string{"list one app automated A B"}, after: []string{"delete one", "list two app automated A B"},
			from: "app", to: "app", reason: "the garbage collector deletes what another set makes again"},
		"set deleted and made again": {before: []string{"list one app automated A B"}, after: []string{"delete one", "list one app automated A B"},
			from: "app", to: "app", reason: "a set of the same name is another one to the garbage collector"},
		"set replaced, same names": {before: []string{"list one app automated A B"}, after: []string{"list two app automated A B", "delete one"},
			from: "app", to: "app", reason: "the other set is there before"},
		"to a git generator": {before: []string{"list one old automated A B"}, after: []string{"git one new automated"},
			from: "old", to: "new", reason: "the generator does not matter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := w.fleet(t, "moves", 2)
			id := unique("s") + "-"
			files := tree{"app/web.yaml": workload["app/web.yaml"]}
			for _, ns := range f.namespaces {
				files["fleet/"+ns+"/README.md"] = "an element\n"
			}
			v := vars{"REPO": w.repo(t, "moves", files).url}
			m := mover{w: w, id: id, vars: v, made: map[string]bool{}, namespaces: f.namespaces}
			for _, step := range tc.before {
				m.do(t, step)
			}
			from, to := named(id+tc.from+"-"), named(id+tc.to+"-")
			f.look(t, w, from)
			uids := m.applications(t, from)
			for _, step := range tc.after {
				m.do(t, step)
			}
			f.moved(t, w, from, to)
			if tc.from == tc.to && !strings.HasPrefix(tc.after[0], "delete") && !strings.HasPrefix(tc.after[1], "delete") {
				for name, uid := range m.applications(t, to) {
					if uids[name] != uid {
						t.Errorf("%s: Application %s was made anew", tc.reason, name)
					}
				}
			}
		})
	}
}

// mover carries out the steps of TestMoves.
type mover struct {
	w          *world
	id         string
	vars       vars
	made       map[string]bool
	namespaces []string
}

// do makes, changes or deletes a set: "list set prefix policy elements",
// "git set prefix policy" or "delete set".
func (m *mover) do(t *testing.T, step string) {
	t.Helper()
	words := strings.Fields(step)
	set := m.id + words[1]
	if words[0] == "delete" {
		if err := m.w.hub.client.Delete(t.Context(), get(t, m.w.hub, controlNamespace, set, &v1alpha1.ApplicationSet{})); err != nil {
			t.Fatal(err)
		}
		m.made[set] = false
		return
	}
	policy := "{}"
	if words[3] == "automated" {
		policy = automated
	}
	var elements []string
	for _, e := range words[4:] {
		elements = append(elements, m.namespaces[strings.Index("AB", e)])
	}
	text := listSet(set, m.id+words[2]+"-{{.ns}}", policy, elements...)
	if words[0] == "git" {
		text = listSet(set, m.id+words[2]+"-{{.path.basename}}", policy)
		text = strings.Replace(text, "    - list:\n        elements:\n          []\n",
			"    - git: {repoURL: \"${REPO}\", revision: main, directories: [{path: fleet/*}]}\n", 1)
		text = strings.ReplaceAll(text, "{{.ns}}", "{{.path.basename}}")
	}
	if m.made[set] {
		m.w.replace(t, text, m.vars)
	} else {
		m.w.create(t, text, m.vars)
	}
	m.made[set] = true
}

// applications are the UIDs of the Applications by name.
func (m *mover) applications(t *testing.T, name func(ns string) string) map[string]string {
	t.Helper()
	uids := map[string]string{}
	for _, ns := range m.namespaces {
		uids[name(ns)] = string(get(t, m.w.hub, controlNamespace, name(ns), &v1alpha1.Application{}).UID)
	}
	return uids
}

// TestSetRenamedInGit renames a set that an Application makes in one commit, so
// that the old one is pruned and a new one made; with the Applications' names,
// and with others.
func TestSetRenamedInGit(t *testing.T) {
	t.Parallel()
	w := start(t)
	for name, prefix := range map[string]string{"same names": "same", "other names": "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := w.fleet(t, "renamed", 2)
			id := unique("r") + "-"
			r := w.repo(t, "renamed", tree{"app/web.yaml": workload["app/web.yaml"]})
			v := vars{"REPO": r.url}
			set := func(set, prefix string) string {
				text := strings.Replace(listSet(id+set, id+prefix+"-{{.ns}}", automated, f.namespaces...), "metadata:\n", "metadata:\n  namespace: "+controlNamespace+"\n", 1)
				return v.expand(text)
			}
			r.push(t, tree{"root/set.yaml": set("old", "same")})
			w.create(t, strings.Replace(inCluster(id+"root", "root"), "${NS}", controlNamespace, 1), v)
			t.Cleanup(func() {
				w.discard(object(t, "{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, metadata: {name: "+id+"new, namespace: "+controlNamespace+"}}"))
			})
			from := func(ns string) string { return id + "same-" + ns }
			to := func(ns string) string { return id + prefix + "-" + ns }
			f.look(t, w, from)

			r.push(t, tree{"root/set.yaml": set("new", prefix)})
			for _, ns := range f.namespaces {
				await(t, w.hub.client, &v1alpha1.ApplicationList{}, controlNamespace, to(ns), func(app *v1alpha1.Application) error {
					if app == nil || len(app.OwnerReferences) == 0 || app.OwnerReferences[0].Name != id+"new" || app.DeletionTimestamp != nil {
						return errors.New("is not the new set's")
					}
					return nil
				})
			}
			f.moved(t, w, from, to)
		})
	}
}

// TestGoneWithItsSet deletes an Application as the garbage collector does when
// its set is gone, and then makes a set that generates it: it is made again, and
// has the same objects. An Application that is deleted while its set is there
// goes with its objects.
func TestGoneWithItsSet(t *testing.T) {
	t.Parallel()
	w := start(t)
	f := w.fleet(t, "orphaned", 1)
	id := unique("g") + "-"
	m := mover{w: w, id: id, vars: vars{"REPO": w.repo(t, "orphaned", tree{"app/web.yaml": workload["app/web.yaml"]}).url}, made: map[string]bool{}, namespaces: f.namespaces}
	name := func(ns string) string { return id + "app-" + ns }
	m.do(t, "list one app automated A")
	f.look(t, w, name)
	uid := m.applications(t, name)

	const hold = `{"metadata":{"finalizers":["example.com/held"]}}`
	w.hub.patch(t, &v1alpha1.ApplicationSet{}, controlNamespace, id+"one", hold)
	m.do(t, "delete one") // it stays, and is going
	app := get(t, w.hub, controlNamespace, name(f.namespaces[0]), &v1alpha1.Application{})
	if err := w.hub.client.Delete(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	m.do(t, "list two app automated A")
	await(t, w.hub.client, &v1alpha1.ApplicationList{}, controlNamespace, app.Name, func(app *v1alpha1.Application) error {
		if app == nil || string(app.UID) == uid[app.Name] {
			return errors.New("is not made again")
		}
		return nil
	})
	w.hub.patch(t, &v1alpha1.ApplicationSet{}, controlNamespace, id+"one", `{"metadata":{"finalizers":null}}`)
	f.moved(t, w, name, name)

	if err := w.hub.client.Delete(t.Context(), get(t, w.hub, controlNamespace, app.Name, &v1alpha1.Application{})); err != nil {
		t.Fatal(err)
	}
	before := f.witnesses[0].uids
	testenv.Eventually(t, patience, func() error {
		now := f.witnesses[0].now(t)
		for what, uid := range before {
			if now[what] == uid || now[what] == "" {
				return fmt.Errorf("%s is still, or not yet again, there", what)
			}
		}
		return nil
	})
}

// TestHandOverWhileDown renames the Applications of a set while their member
// does not answer: both stay, the set says why, and it goes on when it does.
func TestHandOverWhileDown(t *testing.T) {
	t.Parallel()
	w := start(t)
	member := unique("away")
	proxy := w.member(t, member, nil)
	f := w.fleet(t, "down", 2)
	v := vars{"REPO": w.repo(t, "down", tree{"app/web.yaml": workload["app/web.yaml"]}).url}
	text := func(prefix string) string {
		return strings.Replace(listSet(member, member+"-"+prefix+"-{{.ns}}", automated, f.namespaces...), "name: alpha", "name: "+member, 1)
	}
	named := func(prefix string) func(string) string {
		return func(ns string) string { return member + "-" + prefix + "-" + ns }
	}
	w.create(t, text("old"), v)
	f.look(t, w, named("old"))
	proxy.Cut()
	for _, ns := range f.namespaces {
		w.awaitCondition(t, named("old")(ns), "ComparisonError", "does not answer")
	}
	w.replace(t, text("new"), v)
	await(t, w.hub.client, &v1alpha1.ApplicationSetList{}, controlNamespace, member, func(set *v1alpha1.ApplicationSet) error {
		for _, c := range set.Status.Conditions {
			if c.Status == "True" && strings.Contains(c.Message, "does not answer") {
				return nil
			}
		}
		return errors.New("it is not said why the Applications stay")
	})
	for _, ns := range f.namespaces {
		get(t, w.hub, controlNamespace, named("old")(ns), &v1alpha1.Application{})
		get(t, w.hub, controlNamespace, named("new")(ns), &v1alpha1.Application{})
	}
	proxy.Restore()
	f.moved(t, w, named("old"), named("new"))
}
