package argo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/controller/argo"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/testenv"
)

// teardownCase is a set with the Applications NAME-a and NAME-b that is deleted.
type teardownCase struct {
	policy  v1alpha1.ApplicationsSyncPolicy
	cascade string
	// held says that a person holds NAME-a.
	held  bool
	shows string
	// stay are those that must, and marked says that they tell of their set.
	stay   []string
	marked bool
}

// TestTeardown: deleting a set does as written, however it is deleted, and what
// it does is shown first.
func TestTeardown(t *testing.T) {
	cases := map[string]teardownCase{
		"plain":              {"sync", "background", false, "2 Applications are deleted with their objects, 0 without, 0 stay", nil, false},
		"orphaned":           {"sync", "orphan", false, "0 Applications are deleted with their objects, 0 without, 2 stay", []string{"a", "b"}, false},
		"kept":               {"create-update", "background", false, "0 without, 2 stay", []string{"a", "b"}, true},
		"kept-in-foreground": {"create-update", "foreground", false, "0 without, 2 stay", []string{"a", "b"}, false},
		"held":               {"sync", "background", true, "1 Applications are deleted with their objects, 0 without, 1 stay", []string{"a"}, true},
		"held-in-foreground": {"sync", "foreground", true, "0 without, 1 stay", []string{"a"}, false},
		"held-and-orphaned":  {"sync", "orphan", true, "0 without, 2 stay", []string{"a", "b"}, false},
	}
	p := newPlane(t)
	p.awaitCollector()
	p.start(daemon.SetConfig{})
	var all, stay []string
	for name, c := range cases {
		both := []string{name + "-a", name + "-b"}
		p.create(p.set(names(both...), func(set *v1alpha1.ApplicationSet) {
			set.Name, set.Spec.SyncPolicy = name, &v1alpha1.ApplicationSetSyncPolicy{ApplicationsSync: &c.policy}
		}))
		all = append(all, both...)
		for _, s := range c.stay {
			stay = append(stay, name+"-"+s)
		}
	}
	p.await(all)
	for name, c := range cases {
		if c.held {
			p.says(0, "hold "+name+"-a --why incident --for 1h", "is held until")
		}
	}
	for name, c := range cases {
		p.awaitKept(name+"-a", c.held || c.policy != "sync")
		p.says(3, "appset delete "+name+" --cascade "+c.cascade, c.shows, "nothing was done")
		p.says(0, "appset delete "+name+" --yes --cascade "+c.cascade, "deletion requested")
	}
	testenv.Eventually(t, patience, func() error {
		var left v1alpha1.ApplicationSetList
		if err := p.client.List(p.Context(), &left, client.InNamespace(p.ns)); err != nil || len(left.Items) > 0 {
			return fmt.Errorf("sets are still there: %d, %w", len(left.Items), err)
		}
		return nil
	})
	unowned := func(app *v1alpha1.Application) error {
		if metav1.GetControllerOf(app) != nil {
			return errors.New("it is still its set's")
		}
		return nil
	}
	p.await(stay, unowned)
	time.Sleep(500 * time.Millisecond) // what should not be deleted has the time to be
	p.await(stay, unowned)
	for name, c := range cases {
		for _, s := range c.stay {
			if app := p.apps()[name+"-"+s]; c.marked && app.Annotations[argo.AnnotationDetached] != name {
				t.Errorf("%s does not say that it is detached: %v", app.Name, app.Annotations)
			}
		}
	}
}

// TestPreservedObjectsOutliveTheirSet: deleting a set that preserves the objects of
// its Applications deletes none of them, however it is deleted: those of the
// Applications that it writes, of those whose removal waits, and of one whose element
// has an error, though all of them were made when the set did not say so.
func TestPreservedObjectsOutliveTheirSet(t *testing.T) {
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground} {
		t.Run(string(how), func(t *testing.T) { preservedOutlive(t, how) })
	}
}

func preservedOutlive(t *testing.T, how metav1.DeletionPropagation) {
	p := newPlane(t)
	p.awaitCollector()
	all := []string{"a", "b", "c", "d", "e", "f", "g"}
	dir := repository(t, all...)
	for _, name := range all {
		write(t, dir, name+"/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: obj-"+name+"}\n")
	}
	commit(t, dir)
	p.start(daemon.SetConfig{})
	element := func(names ...string) string {
		var out []string
		for _, n := range names {
			out = append(out, "{name: "+n+", path: "+n+"}")
		}
		return "{list: {elements: [" + strings.Join(out, ", ") + "]}}"
	}
	p.create(p.set(element(all...), func(set *v1alpha1.ApplicationSet) {
		src := set.Spec.Template.Spec.Source
		src.RepoURL, src.Path, src.TargetRevision = "file://"+dir, "{{.path}}", "main"
		set.Spec.Template.Spec.Destination.Namespace = p.ns
	}))
	p.await(all, func(app *v1alpha1.Application) error {
		if app.Status.Sync.Status != "Synced" {
			return fmt.Errorf("it is %s", app.Status.Sync.Status)
		}
		return nil
	})
	before := p.objects()
	if len(before) != len(all) {
		t.Fatalf("the objects are %v", before)
	}
	// Four removals wait, c has no path, and the set says that objects are to stay.
	broken := strings.Replace(element("a", "b", "c"), ", path: c", "", 1)
	next := p.set(broken)
	p.change(func(set *v1alpha1.ApplicationSet) {
		set.Spec.Generators = next.Spec.Generators
		set.Spec.GoTemplateOptions = []string{"missingkey=error"}
		set.Spec.SyncPolicy = &v1alpha1.ApplicationSetSyncPolicy{PreserveResourcesOnDeletion: true}
	})
	p.awaitCondition(v1alpha1.ApplicationSetConditionDeletionsHeld, "True", v1alpha1.ApplicationSetReasonHeldOverBudget, "without their objects")
	p.await(all, func(app *v1alpha1.Application) error {
		if len(app.Finalizers) > 0 {
			return fmt.Errorf("it still has %v", app.Finalizers)
		}
		return nil
	})
	if err := p.client.Delete(p.Context(), p.live(), client.PropagationPolicy(how)); err != nil {
		t.Fatal(err)
	}
	p.await(nil)
	testenv.Eventually(t, patience, func() error {
		var left v1alpha1.ApplicationSetList
		if err := p.client.List(p.Context(), &left, client.InNamespace(p.ns)); err != nil || len(left.Items) > 0 {
			return fmt.Errorf("the set is still there: %d, %w", len(left.Items), err)
		}
		return nil
	})
	time.Sleep(500 * time.Millisecond) // what should not be deleted has the time to be
	if diff := cmp.Diff(before, p.objects()); diff != "" {
		t.Errorf("other objects than before:\n%s", diff)
	}
	for _, w := range p.writes.of("configmaps/obj-") {
		if strings.HasPrefix(w, "DELETE") {
			t.Errorf("a deletion: %s", w)
		}
	}
}

// objects are the UIDs of the ConfigMaps that the Applications have, by name.
func (p *plane) objects() map[string]types.UID {
	p.Helper()
	var list corev1.ConfigMapList
	if err := p.client.List(p.Context(), &list, client.InNamespace(p.ns)); err != nil {
		p.Fatal(err)
	}
	out := map[string]types.UID{}
	for i := range list.Items {
		if o := &list.Items[i]; strings.HasPrefix(o.Name, "obj-") && o.DeletionTimestamp == nil {
			out[o.Name] = o.UID
		}
	}
	return out
}

// awaitCollector waits until the garbage collector knows the kind Application,
// which it learns in the first half minute: before, it collects nothing, and
// takes off no owners.
func (p *plane) awaitCollector() {
	p.Helper()
	set := p.set(names())
	p.create(set)
	app := &v1alpha1.Application{}
	app.Namespace, app.Name, app.Spec = p.ns, "orphan", set.Spec.Template.Spec
	app.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, v1alpha1.GroupVersion.WithKind("ApplicationSet"))}
	p.create(app)
	if err := p.client.Delete(p.Context(), set); err != nil {
		p.Fatal(err)
	}
	testenv.Eventually(p, patience, func() error {
		if len(p.apps()) > 0 {
			return errors.New("the garbage collector does not know Applications")
		}
		return nil
	})
}

// awaitKept waits until an Application that is to outlive its set, and no other,
// is owned by the namespace.
func (p *plane) awaitKept(name string, kept bool) {
	p.Helper()
	testenv.Eventually(p, patience, func() error {
		owners := p.apps()[name].OwnerReferences
		if got := slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.Kind == "Namespace" }); got != kept {
			return fmt.Errorf("its namespace owns %s: %v, want %v", name, got, kept)
		}
		return nil
	})
}

// TestHoldEndsByItself: what a person paused stays paused, and comes back when
// the hold ends, without anybody's doing.
func TestHoldEndsByItself(t *testing.T) {
	p := newPlane(t)
	p.start(daemon.SetConfig{})
	p.create(p.set(names("a", "b")))
	p.await([]string{"a", "b"})
	until := time.Now().Add(4 * time.Second)
	p.says(0, "hold a --who ada --why INC-42 --until "+until.Format(time.RFC3339), "a is held until")
	p.says(0, "holds", "ada", "INC-42")
	app := p.apps()["a"]
	if err := p.client.Patch(p.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"syncPolicy":{"automated":null}}}`))); err != nil {
		t.Fatal(err)
	}
	p.change(func(set *v1alpha1.ApplicationSet) { set.Spec.Template.Labels["tier"] = "two" })
	p.await([]string{"a", "b"}, tier("two"))
	testenv.Eventually(t, patience, func() error {
		app := p.apps()["a"]
		for _, c := range app.Status.Conditions {
			if strings.Contains(c.Message, "ada holds the application until ") && strings.HasSuffix(c.Message, ": INC-42") {
				return nil
			}
		}
		return fmt.Errorf("the hold is not shown: %+v", app.Status.Conditions)
	})
	p.says(0, "app list", "(held)")
	if app := p.apps()["a"]; time.Now().Before(until.Add(-time.Second)) && app.Spec.SyncPolicy.Automated != nil {
		t.Error("the pause was undone")
	}
	testenv.Eventually(t, patience, func() error {
		app := p.apps()["a"]
		switch {
		case app.Spec.SyncPolicy == nil || app.Spec.SyncPolicy.Automated == nil:
			return errors.New("the automated sync is not back")
		case len(app.Annotations) != 0:
			return fmt.Errorf("the hold is still there: %v", app.Annotations)
		}
		for _, c := range app.Status.Conditions {
			if strings.Contains(c.Message, "holds the application") {
				return errors.New("the hold is still shown")
			}
		}
		return nil
	})
	if late := time.Since(until); late > 20*time.Second {
		t.Errorf("the hold ended %s late", late)
	}
	p.says(0, "holds", "APPLICATION")
}
