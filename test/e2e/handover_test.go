package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/testenv"
)

// witness sees every deletion in a namespace, from when it was begun, and knows
// which objects were there.
type witness struct {
	cluster *cluster
	ns      string
	uids    map[string]string

	mu      sync.Mutex
	deleted []string
}

// witness begins to look at a namespace, in which everything is there by now.
func (c *cluster) witness(t *testing.T, ns string) *witness {
	t.Helper()
	x := &witness{cluster: c, ns: ns}
	x.uids = x.now(t)
	if len(x.uids) == 0 {
		t.Fatalf("there is nothing in %s to keep", ns)
	}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{}} {
		w, err := c.client.Watch(t.Context(), list, client.InNamespace(ns))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		go x.look(w)
	}
	return x
}

func (x *witness) look(w watch.Interface) {
	for ev := range w.ResultChan() {
		obj, is := ev.Object.(client.Object)
		if is && (ev.Type == watch.Deleted || obj.GetDeletionTimestamp() != nil) {
			x.mu.Lock()
			x.deleted = append(x.deleted, fmt.Sprintf("%T %s", obj, obj.GetName()))
			x.mu.Unlock()
		}
	}
}

// now are the UIDs of what is managed in the namespace.
func (x *witness) now(t *testing.T) map[string]string {
	t.Helper()
	uids := map[string]string{}
	x.each(t, func(obj client.Object) { uids[fmt.Sprintf("%T %s", obj, obj.GetName())] = string(obj.GetUID()) })
	return uids
}

func (x *witness) each(t *testing.T, f func(client.Object)) {
	t.Helper()
	var deployments appsv1.DeploymentList
	var maps corev1.ConfigMapList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&deployments, &maps, &services} {
		if err := x.cluster.client.List(t.Context(), list, client.InNamespace(x.ns), client.HasLabels{rutter.LabelUnit}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range deployments.Items {
		f(&deployments.Items[i])
	}
	for i := range maps.Items {
		f(&maps.Items[i])
	}
	for i := range services.Items {
		f(&services.Items[i])
	}
}

// unharmed fails the test unless every object is the same one as before, and
// none was deleted between.
func (x *witness) unharmed(t *testing.T) {
	t.Helper()
	for name, uid := range x.now(t) {
		if old, known := x.uids[name]; known && old != uid {
			t.Errorf("%s was replaced", name)
		}
	}
	for name := range x.uids {
		if x.now(t)[name] == "" {
			t.Errorf("%s is gone", name)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.deleted) > 0 {
		t.Errorf("%d deletions: %s", len(x.deleted), strings.Join(x.deleted, ", "))
	}
}

// are waits until everything in the namespace carries the marks of an Application.
func (x *witness) are(t *testing.T, app string) {
	t.Helper()
	hash := rutter.UnitID{Dialect: "argo", Namespace: controlNamespace, Name: app}.Hash()
	testenv.Eventually(t, patience, func() error {
		var errs []error
		x.each(t, func(obj client.Object) {
			if obj.GetLabels()[rutter.LabelUnit] != hash || !strings.HasPrefix(obj.GetAnnotations()[rutter.AnnotationTracking], app+":") {
				errs = append(errs, fmt.Errorf("%s is marked as part of %s", obj.GetName(), obj.GetAnnotations()[rutter.AnnotationTracking]))
			}
		})
		return errors.Join(errs...)
	})
}

// workload is what the tests of hand-overs move.
var workload = tree{"app/web.yaml": deployment("web", 1) + "---\n" + service("web") + "---\n" + configMap("settings", "1")}

// cascading is an Application that takes its objects with it when it is deleted.
func cascading(name, path string) string {
	return strings.Replace(application(name, path, ""), "metadata:\n", "metadata:\n  finalizers: ["+cascadeFinalizer+"]\n", 1)
}

// manual is an Application that is synced by hand only.
func manual(app string) string {
	head, _, _ := strings.Cut(app, "  syncPolicy:")
	return head
}

// TestDeleteShared deletes an Application while another one declares the same
// objects: they become that one's, whether it syncs by itself or not, and
// whether it has been looked at yet or not.
func TestDeleteShared(t *testing.T) {
	t.Parallel()
	w := start(t)
	for name, shape := range map[string]func(string) string{
		"automated": func(s string) string { return s }, "manual": manual,
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, early %t", name, early), func(t *testing.T) {
				t.Parallel()
				first, second := unique("given"), unique("taker")
				ns := w.alpha.namespace(t, "given")
				r := w.repo(t, "given", workload)
				v := vars{"REPO": r.url, "NS": ns}
				w.create(t, cascading(first, "app"), v)
				app := w.awaitSynced(t, first, "")
				x := w.alpha.witness(t, ns)
				w.create(t, shape(cascading(second, "app")), v)
				if !early {
					w.awaitApp(t, second, func(app *v1alpha1.Application) error {
						if len(app.Status.Resources) < 3 {
							return errors.New("is not compared yet")
						}
						return nil
					})
				}
				if err := w.hub.client.Delete(t.Context(), app); err != nil {
					t.Fatal(err)
				}
				w.awaitGone(t, first)
				w.awaitState(t, second, "Synced", "Healthy")
				x.are(t, second)
				x.unharmed(t)
			})
		}
	}
}

// TestRenameInGit renames an Application that another one makes, in one commit.
func TestRenameInGit(t *testing.T) {
	t.Parallel()
	w := start(t)
	root, before, after := unique("root"), unique("before"), unique("after")
	ns := w.alpha.namespace(t, "rename")
	r := w.repo(t, "rename", workload)
	v := vars{"REPO": r.url, "NS": ns}
	r.push(t, tree{"root/" + before + ".yaml": v.expand(cascading(before, "app"))})
	w.create(t, strings.Replace(inCluster(root, "root"), "${NS}", controlNamespace, 1), vars{"REPO": r.url})
	t.Cleanup(func() {
		w.discard(object(t, "{apiVersion: argoproj.io/v1alpha1, kind: Application, metadata: {name: "+after+", namespace: "+controlNamespace+"}}"))
	})
	w.awaitSynced(t, before, "")
	x := w.alpha.witness(t, ns)

	r.push(t, tree{"root/" + before + ".yaml": "", "root/" + after + ".yaml": v.expand(cascading(after, "app"))})
	w.awaitSynced(t, after, "")
	w.awaitGone(t, before)
	x.are(t, after)
	x.unharmed(t)
}

// TestMoveInGit moves a manifest from the folder of one Application to that of
// another in one commit, there and back: prune is on, and nothing is deleted.
func TestMoveInGit(t *testing.T) {
	t.Parallel()
	w := start(t)
	left, right := unique("left"), unique("right")
	ns := w.alpha.namespace(t, "move")
	r := w.repo(t, "move", tree{"left/stay.yaml": configMap("left", "1"), "right/stay.yaml": configMap("right", "1"), "left/web.yaml": workload["app/web.yaml"]})
	v := vars{"REPO": r.url, "NS": ns}
	w.create(t, cascading(left, "left"), v)
	w.create(t, cascading(right, "right"), v)
	w.awaitSynced(t, left, "")
	w.awaitSynced(t, right, "")
	x := w.alpha.witness(t, ns)
	from, to := left, right
	for range 4 {
		a, b := strings.Split(from, "-")[0], strings.Split(to, "-")[0]
		head := r.push(t, tree{a + "/web.yaml": "", b + "/web.yaml": workload["app/web.yaml"]})
		w.awaitSynced(t, from, head)
		app := w.awaitSynced(t, to, head)
		if len(app.Status.Resources) != 4 {
			t.Errorf("%s lists %d resources", to, len(app.Status.Resources))
		}
		x.unharmed(t)
		from, to = to, from
	}
	// What nobody declares any more goes, by the rules of who has it now.
	r.push(t, tree{"left/web.yaml": ""})
	gone(t, w.alpha, ns, "web", &appsv1.Deployment{})
	get(t, w.alpha, ns, "left", &corev1.ConfigMap{})
}

// TestPruneWaits adds an Application that cannot be rendered, with the sources
// of one whose deletion is asked for: the deletion waits and says for whom, and
// goes on when the other one is taken back.
func TestPruneWaits(t *testing.T) {
	t.Parallel()
	w := start(t)
	first, second := unique("waits"), unique("broken")
	ns := w.alpha.namespace(t, "waits")
	r := w.repo(t, "waits", workload)
	v := vars{"REPO": r.url, "NS": ns}
	w.create(t, cascading(first, "app"), v)
	app := w.awaitSynced(t, first, "")
	x := w.alpha.witness(t, ns)
	w.create(t, strings.Replace(cascading(second, "app"), "targetRevision: main", "targetRevision: absent", 1), v)
	w.awaitCondition(t, second, "ComparisonError", "absent")
	if err := w.hub.client.Delete(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, first, "DeletionError", second)
	x.unharmed(t)
	if err := w.hub.client.Delete(t.Context(), get(t, w.hub, controlNamespace, second, &v1alpha1.Application{}), client.Preconditions{}); err != nil {
		t.Fatal(err)
	}
	w.hub.patch(t, &v1alpha1.Application{}, controlNamespace, second, `{"metadata":{"finalizers":null}}`)
	w.awaitGone(t, first)
	gone(t, w.alpha, ns, "web", &appsv1.Deployment{})
}
