package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// runs waits until the operation of an Application runs and says all of the texts.
func (w *world) runs(t *testing.T, app string, texts ...string) *v1alpha1.Application {
	t.Helper()
	return w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		op := app.Status.OperationState
		if op == nil || op.Phase != "Running" || !containsAll(op.Message, texts) {
			return fmt.Errorf("no operation runs that says %q", texts)
		}
		return nil
	})
}

// result is what the last operation says of an object.
func result(app *v1alpha1.Application, name string) *v1alpha1.ResourceResult {
	if op := app.Status.OperationState; op != nil && op.SyncResult != nil {
		for i := range op.SyncResult.Resources {
			if op.SyncResult.Resources[i].Name == name {
				return &op.SyncResult.Resources[i]
			}
		}
	}
	return nil
}

// suspended is a Job that runs once somebody starts it.
func suspended(manifest string) string {
	return strings.Replace(manifest, "spec:\n", "spec:\n  suspend: true\n", 1)
}

func (c *cluster) resume(t *testing.T, ns, name string) {
	t.Helper()
	c.patch(t, &batchv1.Job{}, ns, name, `{"spec":{"suspend":false}}`)
}

// TestNothingIsAppliedWhenAPartIsInvalid: the server would refuse one of four
// objects, in the last wave; none of them is written, and no hook runs.
func TestNothingIsAppliedWhenAPartIsInvalid(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("invalid")
	ns := w.alpha.namespace(t, "invalid")
	wrong := strings.Replace(service("wrong"), "port: 80\n", "port: 80000\n", 1)
	r := w.repo(t, "invalid", tree{
		"app/before.yaml": annotated(job("before", "Never"), "hook", "PreSync"),
		"app/a.yaml":      configMap("a", "1"), "app/b.yaml": configMap("b", "1"),
		"app/wrong.yaml": annotated(wrong, "sync-wave", "3"),
	})
	w.create(t, application(app, "app", "    retry: {limit: 0}\n"), vars{"REPO": r.url, "NS": ns})
	failed := w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		if op := app.Status.OperationState; op == nil || op.Phase != "Failed" {
			return errors.New("has not failed")
		}
		return nil
	})
	if m := failed.Status.OperationState.Message; !containsAll(m, []string{"(dry run)", "nothing was applied", "wrong", "80000"}) {
		t.Errorf("it says: %s", m)
	}
	gone(t, w.alpha, ns, "before", &batchv1.Job{})
	gone(t, w.alpha, ns, "a", &corev1.ConfigMap{})
	if n := len(failed.Status.OperationState.SyncResult.Resources); n != 1 {
		t.Errorf("%d results, wanted that of the invalid object", n)
	}
	w.awaitSynced(t, app, r.push(t, tree{"app/wrong.yaml": annotated(service("wrong"), "sync-wave", "3")}))
}

// TestInvalidBesideANewNamespace: what lives in a namespace of the same sync is
// checked too; of all that is sent only the namespace itself is made.
func TestInvalidBesideANewNamespace(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("fresh")
	ns := unique("fresh-ns")
	wrong := strings.Replace(service("wrong"), "port: 80\n", "port: 80000\n", 1)
	r := w.repo(t, "fresh", tree{
		"app/ns.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + ns + "\n",
		"app/a.yaml":  configMap("a", "1"), "app/wrong.yaml": wrong,
	})
	w.create(t, application(app, "app", "    retry: {limit: 0}\n"), vars{"REPO": r.url, "NS": ns})
	w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		if op := app.Status.OperationState; op == nil || op.Phase != "Failed" || !strings.Contains(op.Message, "80000") {
			return errors.New("has not failed")
		}
		return nil
	})
	get(t, w.alpha, "", ns, &corev1.Namespace{})
	gone(t, w.alpha, ns, "a", &corev1.ConfigMap{})
	w.awaitSynced(t, app, r.push(t, tree{"app/wrong.yaml": service("wrong")}))
}

// TestB29NewerCommitReplacesARetry: a sync that fails and is tried again without
// end makes way for the commit that mends it.
func TestB29NewerCommitReplacesARetry(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("b29")
	ns := w.alpha.namespace(t, "b29")
	r := w.repo(t, "b29", tree{"app/a.yaml": configMap("a", "1"), "app/s.yaml": strings.Replace(service("s"), "port: 80\n", "port: 80000\n", 1)})
	w.create(t, application(app, "app", "    retry: {limit: -1, backoff: {duration: 10m}}\n"), vars{"REPO": r.url, "NS": ns})
	waits := w.runs(t, app, "Retrying attempt #1")
	first := waits.Status.OperationState.SyncResult.Revision
	second := r.push(t, tree{"app/s.yaml": service("s")})
	done := w.awaitSynced(t, app, second)
	op := done.Status.OperationState
	if op.SyncResult.Revision != second || op.RetryCount != 0 || !containsAll(op.Message, []string{"took the place", first}) {
		t.Errorf("the sync of %s, after %d retries, says: %s", op.SyncResult.Revision, op.RetryCount, op.Message)
	}
	if n := len(done.Status.History); n != 1 {
		t.Errorf("%d entries of history", n)
	}
}

// TestB30HookThatIsCollectedAtOnce: a Job with a time to live of zero ends and is
// collected; how it ended is known all the same, and the next phase begins.
func TestB30HookThatIsCollectedAtOnce(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("b30")
	ns := w.alpha.namespace(t, "b30")
	short := strings.Replace(job("before", "Never"), "backoffLimit: 0\n", "backoffLimit: 0\n  ttlSecondsAfterFinished: 0\n", 1)
	r := w.repo(t, "b30", tree{"app/before.yaml": annotated(short, "hook", "PreSync"), "app/c.yaml": configMap("c", "1")})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	done := w.awaitSynced(t, app, "")
	if res := result(done, "before"); res == nil || res.HookPhase != "Succeeded" {
		t.Errorf("the hook's result is %+v", res)
	}
	gone(t, w.alpha, ns, "before", &batchv1.Job{}) // nothing of ours keeps it
}

// TestHookRemovedByHand: a hook that somebody removes, finalizers and all, before
// it ended fails the sync; it is not waited for without end.
func TestHookRemovedByHand(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("removed")
	ns := w.alpha.namespace(t, "removed")
	r := w.repo(t, "removed", tree{"app/before.yaml": annotated(suspended(job("before", "Never")), "hook", "PreSync"), "app/c.yaml": configMap("c", "1")})
	w.create(t, application(app, "app", "    retry: {limit: 0}\n"), vars{"REPO": r.url, "NS": ns})
	w.runs(t, app, "waiting for")
	w.alpha.patch(t, &batchv1.Job{}, ns, "before", `{"metadata":{"finalizers":null}}`)
	if err := w.alpha.client.Delete(t.Context(), get(t, w.alpha, ns, "before", &batchv1.Job{})); err != nil {
		t.Fatal(err)
	}
	failed := w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		if op := app.Status.OperationState; op == nil || op.Phase != "Failed" {
			return errors.New("has not failed")
		}
		return nil
	})
	if m := failed.Status.OperationState.Message; !containsAll(m, []string{"before", "removed before it ended"}) {
		t.Errorf("it says: %s", m)
	}
	gone(t, w.alpha, ns, "c", &corev1.ConfigMap{})
}

// TestB32EachCommitRunsItsOwnHook: the migration of the commit before is still
// there and has succeeded; that of the new commit runs before its objects change.
func TestB32EachCommitRunsItsOwnHook(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("b32")
	ns := w.alpha.namespace(t, "b32")
	migrate := func(image string) string {
		return strings.Replace(annotated(suspended(job("migrate", "Never")), "hook", "PreSync"), "job:1.0.0", image, 1)
	}
	r := w.repo(t, "b32", tree{"app/migrate.yaml": migrate("job:1.0.0"), "app/c.yaml": configMap("c", "1")})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.runs(t, app, "waiting for")
	w.alpha.resume(t, ns, "migrate")
	w.awaitSynced(t, app, "")
	first := get(t, w.alpha, ns, "migrate", &batchv1.Job{}).UID

	second := r.push(t, tree{"app/migrate.yaml": migrate("job:2.0.0"), "app/c.yaml": configMap("c", "2")})
	await(t, w.alpha.client, &batchv1.JobList{}, ns, "migrate", func(j *batchv1.Job) error {
		if j == nil || j.UID == first || j.Spec.Template.Spec.Containers[0].Image != "registry.example/job:2.0.0" {
			return errors.New("the migration of the second commit is not there")
		}
		return nil
	})
	w.runs(t, app, "waiting for")
	if err := holds("1")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})); err != nil {
		t.Errorf("it changed before the migration ended: %v", err)
	}
	w.alpha.resume(t, ns, "migrate")
	w.awaitSynced(t, app, second)
	if err := holds("2")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})); err != nil {
		t.Error(err)
	}
}

// TestB33KindThatAnOperatorMakes: an object of a kind that is defined at run time
// waits for it, by name, while all before it is applied; the sync ends when the kind
// appears, without a retry, and the next wave comes after.
func TestB33KindThatAnOperatorMakes(t *testing.T) {
	t.Parallel()
	for name, scope := range map[string]string{"namespaced": "Namespaced", "cluster scoped": "Cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t)
			app := unique("b33")
			group := app + ".example.com"
			ns := w.alpha.namespace(t, "b33")
			r := w.repo(t, "b33", tree{
				"app/operator.yaml": configMap("operator", "1"),
				"app/boat.yaml":     "apiVersion: " + group + "/v1\nkind: Boat\nmetadata:\n  name: ketch\nspec: {masts: 2}\n",
				"app/after.yaml":    annotated(configMap("after", "1"), "sync-wave", "1"),
			})
			w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
			w.runs(t, app, "WaitingForKind", "Boat."+group, "ketch")
			get(t, w.alpha, ns, "operator", &corev1.ConfigMap{})
			gone(t, w.alpha, ns, "after", &corev1.ConfigMap{})
			define(t, w.alpha, group, scope)
			done := w.awaitSynced(t, app, "")
			if op := done.Status.OperationState; op.RetryCount != 0 {
				t.Errorf("%d retries", op.RetryCount)
			}
			get(t, w.alpha, ns, "after", &corev1.ConfigMap{})
		})
	}
}

// define makes a CRD for boats.
func define(t *testing.T, c *cluster, group, scope string) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	text := `metadata: {name: boats.` + group + `}
spec:
  group: ` + group + `
  scope: ` + scope + `
  names: {kind: Boat, plural: boats, singular: boat, listKind: BoatList}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`
	if err := yaml.Unmarshal([]byte(text), &crd); err != nil {
		t.Fatal(err)
	}
	if err := c.client.Create(t.Context(), &crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.client.Delete(t.Context(), &crd) })
}

// TestB34VolumeThatWaitsForItsPod: a volume that is bound at its first use is no
// reason to hold the wave back in which its user comes; it is bound then.
func TestB34VolumeThatWaitsForItsPod(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("b34")
	ns := w.alpha.namespace(t, "b34")
	r := w.repo(t, "b34", tree{
		"app/class.yaml": "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: " + app + "\nprovisioner: kubernetes.io/no-provisioner\nvolumeBindingMode: WaitForFirstConsumer\n",
		"app/pv.yaml": "apiVersion: v1\nkind: PersistentVolume\nmetadata:\n  name: " + app + "\nspec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  storageClassName: " + app +
			"\n  hostPath: {path: /nowhere}\n",
		"app/pvc.yaml": annotated("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: data\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: "+app+
			"\n  resources: {requests: {storage: 1Gi}}\n", "sync-wave", "1"),
		"app/pod.yaml": annotated("apiVersion: v1\nkind: Pod\nmetadata:\n  name: user\nspec:\n  containers: [{name: c, image: registry.example/c:1}]\n  volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]\n", "sync-wave", "2"),
	})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	if phase := get(t, w.alpha, ns, "data", &corev1.PersistentVolumeClaim{}).Status.Phase; phase != corev1.ClaimBound {
		t.Errorf("the claim is %s in the end", phase)
	}
}

// TestHookRunsOnceInAnOperation: within one operation a hook that succeeded is not
// run again when the sync is tried again; one that failed is.
func TestHookRunsOnceInAnOperation(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("once")
	ns := w.alpha.namespace(t, "once")
	r := w.repo(t, "once", tree{"app/before.yaml": annotated(job("before", "Never"), "hook", "PreSync"), "app/c.yaml": configMap("c", "1"),
		"app/after.yaml": annotated(suspended(job("after", "Never")), "hook", "PostSync")})
	w.create(t, application(app, "app", "    retry: {limit: 1, backoff: {duration: 1s}}\n"), vars{"REPO": r.url, "NS": ns})
	w.runs(t, app, "waiting for", "PostSync")
	before, after := get(t, w.alpha, ns, "before", &batchv1.Job{}), get(t, w.alpha, ns, "after", &batchv1.Job{})
	w.alpha.patch(t, &batchv1.Job{}, ns, "after", `{"metadata":{"finalizers":null}}`)
	if err := w.alpha.client.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	await(t, w.alpha.client, &batchv1.JobList{}, ns, "after", func(j *batchv1.Job) error {
		if j == nil || j.UID == after.UID {
			return errors.New("the hook that failed was not run again")
		}
		return nil
	})
	w.alpha.resume(t, ns, "after")
	if op := w.awaitSynced(t, app, "").Status.OperationState; op.RetryCount != 1 || op.Phase != "Succeeded" {
		t.Errorf("%s after %d retries: %s", op.Phase, op.RetryCount, op.Message)
	}
	if get(t, w.alpha, ns, "before", &batchv1.Job{}).UID != before.UID {
		t.Error("the hook that had succeeded was run again")
	}
	time.Sleep(100 * time.Millisecond)
	if f := get(t, w.alpha, ns, "before", &batchv1.Job{}).Finalizers; len(f) > 0 {
		t.Errorf("after the end the hook still has the finalizers %v", f)
	}
}
