package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/testenv"
)

// doomedApp is an Application whose objects go with it.
func doomedApp(name, path, annotations string) string {
	return strings.Replace(application(name, path, ""), "metadata:\n", "metadata:\n  finalizers: ["+cascadeFinalizer+"]\n  annotations: {"+annotations+"}\n", 1)
}

// delete deletes an Application as kubectl does.
func (w *world) delete(t *testing.T, name string) {
	t.Helper()
	if err := w.hub.client.Delete(t.Context(), get(t, w.hub, controlNamespace, name, &v1alpha1.Application{})); err != nil {
		t.Fatal(err)
	}
}

// rutter runs a command line as a person at the control plane does.
func (w *world) rutter(t *testing.T, args ...string) (code int, out string) {
	t.Helper()
	var said bytes.Buffer
	args = append(args, "-n", controlNamespace, "--kubeconfig", writeKubeconfig(t, w.hub.rest))
	code = cli.Main(t.Context(), args, strings.NewReader(""), &said, &said, "test", cli.Deps{})
	return code, said.String()
}

// lock puts a finalizer on an object, as a controller of that name would.
func (c *cluster) lock(t *testing.T, obj client.Object, namespace, name, finalizer, controller string) {
	t.Helper()
	obj.SetNamespace(namespace)
	obj.SetName(name)
	raw := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, finalizer))
	if err := c.client.Patch(t.Context(), obj, raw, client.FieldOwner(controller)); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) unlock(t *testing.T, obj client.Object, namespace, name string) {
	t.Helper()
	c.patch(t, obj, namespace, name, `{"metadata":{"finalizers":null}}`)
}

// define serves a kind of custom resources at the member.
func (c *cluster) define(t *testing.T, group string) schema.GroupVersionKind {
	t.Helper()
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}}}},
	}}
	if err := c.client.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, patience, func() error {
		live := get(t, c, "", crd.Name, &apiextensionsv1.CustomResourceDefinition{})
		for _, cond := range live.Status.Conditions {
			if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		return errors.New("not established")
	})
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Widget"}
}

func some(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// TestDeleteInOrder deletes an operator, what it acts on and the namespace of
// both: each is there for as long as something that goes before it needs it, and
// what is waited for is named.
func TestDeleteInOrder(t *testing.T) {
	t.Parallel()
	w := start(t)
	name, ns := unique("order"), unique("order-ns")
	gvk := w.alpha.define(t, unique("widgets")+".acme.dev")
	r := w.repo(t, "order", tree{
		"app/namespace.yaml": annotated("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+ns+"\n", "sync-wave", "-1"),
		"app/operator.yaml":  deployment("widget-operator", 1),
		"app/account.yaml":   "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: operator\n",
		"app/widget.yaml":    "apiVersion: " + gvk.GroupVersion().String() + "\nkind: Widget\nmetadata:\n  name: w\n",
	})
	w.create(t, doomedApp(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, name, "")
	w.alpha.lock(t, some(gvk), ns, "w", "acme.dev/lock", "widget-operator")
	w.alpha.lock(t, &corev1.ServiceAccount{}, ns, "operator", "acme.dev/account", "kubectl-edit")

	w.delete(t, name)
	w.awaitCondition(t, name, "DeletionBlockedWarning", gvk.Group+"/Widget/"+ns+"/w is terminating since", "finalizer acme.dev/lock (set by widget-operator)",
		"its controller seems to be Deployment "+ns+"/widget-operator, which runs")
	for _, alive := range []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "widget-operator"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "operator"}}} {
		if get(t, w.alpha, ns, alive.GetName(), alive).GetDeletionTimestamp() != nil {
			t.Errorf("%T goes before the custom resource", alive)
		}
	}
	w.alpha.unlock(t, some(gvk), ns, "w")
	w.awaitCondition(t, name, "DeletionBlockedWarning", "ServiceAccount/"+ns+"/operator", "acme.dev/account")
	gone(t, w.alpha, ns, "widget-operator", &appsv1.Deployment{})
	if get(t, w.alpha, "", ns, &corev1.Namespace{}).DeletionTimestamp != nil {
		t.Error("the namespace goes before what is in it")
	}
	w.alpha.unlock(t, &corev1.ServiceAccount{}, ns, "operator")
	w.awaitGone(t, name)
	gone(t, w.alpha, "", ns, &corev1.Namespace{})
	get(t, w.alpha, "", "widgets."+gvk.Group, &apiextensionsv1.CustomResourceDefinition{})
}

// TestDeleteDecision blocks deletions for longer than their deadline: somebody
// has to decide, nothing is forced by itself, and each choice does what it says.
func TestDeleteDecision(t *testing.T) {
	t.Parallel()
	w := start(t)
	for _, choice := range []string{"force", "orphan"} {
		t.Run(choice, func(t *testing.T) {
			t.Parallel()
			name := unique("decide")
			ns := w.alpha.namespace(t, "decide")
			r := w.repo(t, name, tree{"app/a.yaml": configMap("a", "1"), "app/b.yaml": annotated(configMap("b", "1"), "sync-wave", "2")})
			w.create(t, doomedApp(name, "app", "rutter.dev/deletion-deadline: 4s"), vars{"REPO": r.url, "NS": ns})
			w.awaitSynced(t, name, "")
			w.alpha.lock(t, &corev1.ConfigMap{}, ns, "b", "lock.vanished.dev/x", "vanished-controller")
			if code, out := w.rutter(t, "app", "delete", name, "--force"); code != 2 || !strings.Contains(out, "is not being deleted") {
				t.Errorf("--force of one that is not being deleted: %d %s", code, out)
			}
			if code, out := w.rutter(t, "app", "delete", name); code != 3 || !containsAll(out, []string{"its 2 objects at cluster alpha are deleted", "ConfigMap", "nothing was done"}) {
				t.Errorf("a look: %d %s", code, out)
			}
			if code, out := w.rutter(t, "app", "delete", name, "-y", "--wait", "--timeout", "6s"); code != 1 || !strings.Contains(out, "lock.vanished.dev/x") {
				t.Errorf("--wait: %d %s", code, out)
			}
			w.awaitCondition(t, name, "DeletionBlockedWarning", "ConfigMap/"+ns+"/b", "finalizer lock.vanished.dev/x (set by vanished-controller)",
				"its controller is gone: no Deployment, StatefulSet or DaemonSet is named like")
			w.awaitCondition(t, name, "DeletionError", "a decision is needed, as 1 of its objects have been terminating for more than 4s", "--orphan", "--force")
			w.awaitEvent(t, name, "DeletionError")
			get(t, w.alpha, ns, "b", &corev1.ConfigMap{})
			get(t, w.alpha, ns, "a", &corev1.ConfigMap{})
			if choice == "orphan" {
				if code, out := w.rutter(t, "app", "delete", name, "--orphan", "-y", "--wait"); code != 0 {
					t.Fatalf("--orphan: %d %s", code, out)
				}
				a := get(t, w.alpha, ns, "a", &corev1.ConfigMap{})
				if b := get(t, w.alpha, ns, "b", &corev1.ConfigMap{}); len(b.Labels) > 0 { // what is terminating stays to others too
					t.Errorf("what is terminating is marked: %v", b.Labels)
				}
				if len(a.Labels) > 0 || len(a.Annotations) > 0 {
					t.Errorf("what stays is marked: %v %v", a.Labels, a.Annotations)
				}
				return
			}
			if code, out := w.rutter(t, "app", "delete", name, "--force"); code != 3 || !strings.Contains(out, "ConfigMap/"+ns+"/b") {
				t.Errorf("--force: %d %s", code, out)
			}
			get(t, w.alpha, ns, "b", &corev1.ConfigMap{})
			if code, out := w.rutter(t, "app", "delete", name, "--force", "-y", "--wait"); code != 0 {
				t.Fatalf("--force --yes: %d %s", code, out)
			}
			gone(t, w.alpha, ns, "b", &corev1.ConfigMap{})
			gone(t, w.alpha, ns, "a", &corev1.ConfigMap{})
		})
	}
}

// awaitEvent waits for an event about an Application.
func (w *world) awaitEvent(t *testing.T, name, reason string) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		var list corev1.EventList
		if err := w.hub.client.List(t.Context(), &list, client.InNamespace(controlNamespace)); err != nil {
			return fmt.Errorf("list events: %w", err)
		}
		for _, e := range list.Items {
			if e.InvolvedObject.Name == name && e.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("no event %s about %s", reason, name)
	})
}

// TestDeleteOptions deletes an Application of which some objects are to stay and
// one is to go only when somebody says so.
func TestDeleteOptions(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("options")
	ns := w.alpha.namespace(t, "options")
	r := w.repo(t, "options", tree{
		"app/keep.yaml": annotated(configMap("keep", "1"), "sync-options", "Delete=false"), "app/plain.yaml": configMap("plain", "1"),
		"app/ask.yaml":   annotated(configMap("ask", "1"), "sync-options", "Delete=confirm"),
		"app/chart.yaml": strings.Replace(configMap("chart", "1"), "metadata:\n", "metadata:\n  annotations: {helm.sh/resource-policy: keep}\n", 1),
	})
	w.create(t, doomedApp(name, "app", "argocd.argoproj.io/deletion-approved: '2020-01-01T00:00:00Z'"), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, name, "")
	w.delete(t, name)
	w.awaitCondition(t, name, "DeletionBlockedWarning", "waits for a confirmation of the deletion of ConfigMap/"+ns+"/ask:", "confirm-deletion")
	get(t, w.alpha, ns, "plain", &corev1.ConfigMap{})
	if code, out := w.rutter(t, "app", "confirm-deletion", name); code != 0 {
		t.Fatal(out)
	}
	w.awaitGone(t, name)
	gone(t, w.alpha, ns, "ask", &corev1.ConfigMap{})
	gone(t, w.alpha, ns, "plain", &corev1.ConfigMap{})
	get(t, w.alpha, ns, "keep", &corev1.ConfigMap{})
	get(t, w.alpha, ns, "chart", &corev1.ConfigMap{})
}

// TestDeleteHooks runs hooks before and after everything else goes. One that
// fails stops the deletion, is named, and is run again once it is mended in Git.
// The namespace that the last one runs in, which is the Application's own, goes
// after it.
func TestDeleteHooks(t *testing.T) {
	t.Parallel()
	w := start(t)
	name, ns := unique("delete-hooks"), unique("delete-hooks-ns")
	failing := strings.Replace(annotated(job("pre", "Never"), "hook", "PreDelete"), "backoffLimit: 0\n", "backoffLimit: 0\n  activeDeadlineSeconds: 1\n", 1)
	failing = strings.Replace(failing, "    spec:\n", "    spec:\n      nodeSelector: {nowhere: here}\n", 1)
	r := w.repo(t, "delete-hooks", tree{
		"app/namespace.yaml": annotated("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: "+ns+"\n", "sync-wave", "-1"),
		"app/c.yaml":         configMap("c", "1"), "app/pre.yaml": failing,
		"app/post.yaml": strings.Replace(job("post", "Never"), "metadata:\n", "metadata:\n  annotations: {helm.sh/hook: post-delete, helm.sh/hook-delete-policy: hook-failed}\n", 1),
	})
	w.create(t, doomedApp(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, name, "")
	app := w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if len(app.Finalizers) != 5 {
			return fmt.Errorf("has the finalizers %q", app.Finalizers)
		}
		return nil
	})
	for _, hook := range []string{"pre", "post"} {
		if err := w.alpha.client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: hook}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
			t.Errorf("hook %s has run in a sync: %v", hook, err)
		}
	}
	// The namespace is watched, to see that the last hook has run before it goes.
	ran := make(chan string, 1)
	go func() { ran <- w.alpha.whatRan(t, ns) }()
	if err := w.hub.client.Delete(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, name, "DeletionError", "PreDelete hook batch/Job/"+ns+"/pre: it has failed, and is run again")
	get(t, w.alpha, ns, "c", &corev1.ConfigMap{})
	r.push(t, tree{"app/pre.yaml": annotated(job("pre", "Never"), "hook", "PreDelete")})
	w.awaitGone(t, name)
	if got, want := <-ran, "pre complete, c deleted, post complete, namespace deleted"; got != want {
		t.Errorf("what happened is %q, wanted %q", got, want)
	}
}

// whatRan watches a namespace until it goes.
func (c *cluster) whatRan(t *testing.T, ns string) string {
	var seen []string
	note := func(what string) {
		if !slices.Contains(seen, what) {
			seen = append(seen, what)
		}
	}
	for end := time.Now().Add(patience); time.Now().Before(end) && t.Context().Err() == nil; time.Sleep(10 * time.Millisecond) {
		for _, name := range []string{"pre", "post"} {
			var j batchv1.Job
			if c.client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, &j) == nil && j.Status.Succeeded > 0 {
				note(name + " complete")
			}
		}
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "c"}, &corev1.ConfigMap{}); apierrors.IsNotFound(err) {
			note("c deleted")
		}
		var n corev1.Namespace
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: ns}, &n); apierrors.IsNotFound(err) || err == nil && n.DeletionTimestamp != nil {
			note("namespace deleted")
			break
		}
	}
	return strings.Join(seen, ", ")
}
