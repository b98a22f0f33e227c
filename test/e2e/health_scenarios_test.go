package e2e

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// parentOf is an Application of Applications: what it declares goes to the control plane.
func parentOf(name string) string {
	text := strings.Replace(application(name, "root", ""), "name: alpha", "server: https://kubernetes.default.svc", 1)
	return strings.Replace(text, "namespace: ${NS}", "namespace: "+controlNamespace, 1)
}

// played is a child whose controller is the test.
func played(name, path, wave string) string {
	child := strings.Replace(application(name, path, ""), "  syncPolicy:\n    automated:\n      prune: true\n      selfHeal: true\n", "", 1)
	return annotated(child, "sync-wave", wave, "skip-reconcile", "true")
}

// says writes the status of a child, as its controller would.
func (w *world) says(t *testing.T, child, path, health string) {
	t.Helper()
	app := get(t, w.hub, controlNamespace, child, &v1alpha1.Application{})
	source := app.Spec.Source.DeepCopy()
	source.Path = path
	next := app.DeepCopy()
	next.Status.Sync = v1alpha1.SyncStatus{Status: "Synced", ComparedTo: v1alpha1.ComparedTo{Source: source, Destination: app.Spec.Destination}}
	next.Status.Health = v1alpha1.AppHealthStatus{Status: health}
	if err := w.hub.client.Status().Patch(t.Context(), next, client.MergeFrom(app)); err != nil {
		t.Fatal(err)
	}
}

// pathOf waits until a child has a path; "" is for one that is not there.
func (w *world) pathOf(t *testing.T, child, want string) {
	t.Helper()
	w.awaitApp(t, child, func(app *v1alpha1.Application) error {
		if app.Spec.Source.Path != want {
			return fmt.Errorf("its path is %q, wanted %q", app.Spec.Source.Path, want)
		}
		return nil
	})
}

// TestB38ChildOfAWaveIsFresh: the specs of two healthy children change in one commit.
// That of the second wave does so when the first has seen its new spec and became
// healthy after; the green that it shows of the old one does not count.
func TestB38ChildOfAWaveIsFresh(t *testing.T) {
	t.Parallel()
	w := start(t)
	parent, a, b := unique("b38"), unique("b38-a"), unique("b38-b")
	v := vars{"NS": "nowhere"}
	r := w.repo(t, "b38", tree{"root/none": "x"})
	v["REPO"] = r.url
	children := func(path string) tree {
		return tree{"root/a.yaml": v.expand(played(a, path, "1")), "root/b.yaml": v.expand(played(b, path, "2"))}
	}
	r.push(t, children("v1"))
	w.create(t, parentOf(parent), v)
	w.pathOf(t, a, "v1")
	w.says(t, a, "v1", "Healthy")
	w.pathOf(t, b, "v1")
	w.says(t, b, "v1", "Healthy")
	w.awaitSynced(t, parent, "")

	second := r.push(t, children("v2"))
	w.pathOf(t, a, "v2")
	still := func(when string) {
		t.Helper()
		time.Sleep(1500 * time.Millisecond)
		if got := get(t, w.hub, controlNamespace, b, &v1alpha1.Application{}).Spec.Source.Path; got != "v1" {
			t.Fatalf("%s the second child is changed already", when)
		}
	}
	still("while the first still shows its old state")
	w.says(t, a, "v2", "Progressing")
	still("while the first progresses")
	w.says(t, a, "v2", "Healthy")
	w.pathOf(t, b, "v2")
	w.says(t, b, "v2", "Healthy")
	w.awaitSynced(t, parent, second)
}

// TestB39NoGreenBeforeTheChildHasAny: the parent of a child that has just been made is
// Progressing; in no event is it Healthy before the child is.
func TestB39NoGreenBeforeTheChildHasAny(t *testing.T) {
	t.Parallel()
	w := start(t)
	parent, child := unique("b39"), unique("b39-child")
	ns := w.alpha.namespace(t, "b39")
	r := w.repo(t, "b39", tree{"app/d.yaml": deployment("web", 1)})
	v := vars{"NS": ns, "REPO": r.url}
	r.push(t, tree{"root/child.yaml": v.expand(application(child, "app", ""))})
	events, err := w.hub.client.Watch(t.Context(), &v1alpha1.ApplicationList{}, &client.ListOptions{Namespace: controlNamespace,
		Raw: &metav1.ListOptions{ResourceVersion: listVersion(t, w)}})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	w.create(t, parentOf(parent), v)
	childGreen, parentGreen, shown := 0, 0, ""
	for deadline := time.After(patience); parentGreen == 0; {
		select {
		case ev := <-events.ResultChan():
			app, ok := ev.Object.(*v1alpha1.Application)
			if !ok || ev.Type == watch.Deleted || app.Status.Health.Status != "Healthy" {
				continue
			}
			n, err := strconv.Atoi(app.ResourceVersion)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case app.Name == child && childGreen == 0:
				childGreen = n
			case app.Name == parent:
				parentGreen, shown = n, describe(app)
			}
		case <-deadline:
			t.Fatal("the parent never became Healthy")
		}
	}
	if childGreen == 0 || childGreen > parentGreen {
		t.Errorf("the parent was Healthy at %d, the child at %d: %s", parentGreen, childGreen, shown)
	}
	w.awaitSynced(t, parent, "")
}

func listVersion(t *testing.T, w *world) string {
	t.Helper()
	var list v1alpha1.ApplicationList
	if err := w.hub.client.List(t.Context(), &list, client.InNamespace(controlNamespace), client.Limit(1)); err != nil {
		t.Fatal(err)
	}
	return list.ResourceVersion
}

// TestB40UnreachableSince: of a cluster that does not answer it is said since when;
// nothing is Healthy or Missing, and no sync is begun.
func TestB40UnreachableSince(t *testing.T) {
	t.Parallel()
	w := start(t)
	member := unique("b40")
	proxy := w.member(t, member, nil)
	ns := w.alpha.namespace(t, "b40")
	r := w.repo(t, "b40", tree{"app/d.yaml": deployment("web", 1)})
	w.create(t, strings.Replace(application(member, "app", ""), "name: alpha", "name: "+member, 1), vars{"REPO": r.url, "NS": ns})
	before := w.awaitSynced(t, member, "")
	proxy.Cut()
	away := w.awaitApp(t, member, func(app *v1alpha1.Application) error {
		if app.Status.Sync.Status != "Unknown" {
			return errors.New("is not Unknown")
		}
		return nil
	})
	if h := away.Status.Health; h.Status != "Unknown" || !strings.HasPrefix(h.Message, "Unreachable since 20") {
		t.Errorf("its health is %s: %s", h.Status, h.Message)
	}
	r.push(t, tree{"app/d.yaml": ""}) // something to prune
	time.Sleep(2 * time.Second)       // nothing is to happen
	later := get(t, w.hub, controlNamespace, member, &v1alpha1.Application{})
	if op := later.Status.OperationState; !op.StartedAt.Equal(&before.Status.OperationState.StartedAt) || later.Status.Health.Status != "Unknown" {
		t.Errorf("health %s, operation %s: %s", later.Status.Health.Status, op.Phase, op.Message)
	}
}

// TestB41HealthyThoughNothingEverComes: an Ingress whose controller never fills in an
// address, a CronJob that is suspended and a volume that waits for its first user are
// Healthy, and say why.
func TestB41HealthyThoughNothingEverComes(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("b41")
	ns := w.alpha.namespace(t, "b41")
	cron := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: cron}\nspec:\n  schedule: '0 3 * * *'\n  suspend: true\n  jobTemplate:\n    spec:\n      template:\n        spec:\n" +
		"          restartPolicy: Never\n          containers: [{name: c, image: registry.example/c:1, volumeMounts: [{name: d, mountPath: /d}]}]\n          volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n"
	r := w.repo(t, "b41", tree{
		"app/class.yaml": "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " + app + "}\nprovisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n",
		"app/pvc.yaml":   "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], storageClassName: " + app + ", resources: {requests: {storage: 1Gi}}}\n",
		"app/cron.yaml":  cron,
		"app/ic.yaml":    "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: " + app + "}\nspec: {controller: example.com/never}\n",
		"app/i.yaml":     "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\nspec: {ingressClassName: " + app + ", defaultBackend: {service: {name: web, port: {number: 80}}}}\n",
	})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	done := w.awaitSynced(t, app, "")
	for kind, want := range map[string]string{"PersistentVolumeClaim": "first pod", "CronJob": "uspend", "Ingress": ""} {
		found := false
		for _, res := range done.Status.Resources {
			if res.Kind == kind {
				found = true
				if res.Health == nil || res.Health.Status != "Healthy" || !strings.Contains(res.Health.Message, want) || res.Health.Message == "" {
					t.Errorf("%s: %+v, wanted Healthy with a reason that has %q", kind, res.Health, want)
				}
			}
		}
		if !found {
			t.Errorf("no %s is shown", kind)
		}
	}
}
