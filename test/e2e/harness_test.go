package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/testenv"
)

// patience is how long anything may take on a machine that is busy with other
// tests. What is usually the case is logged, not asserted.
const patience = 90 * time.Second

// cluster is a cluster and a client of its administrator.
type cluster struct {
	process *local.Cluster
	rest    *rest.Config
	client  client.WithWatch
}

func startCluster(ctx context.Context, name string, shape local.Shape) (*cluster, error) {
	process, err := local.Start(ctx, local.Options{Name: name, Shape: shape})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	rc, err := process.RESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	c, err := newClient(rc)
	return &cluster{process: process, rest: rc, client: c}, err
}

func newClient(rc *rest.Config) (client.WithWatch, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), apiextensionsv1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	c, err := client.NewWithWatch(rc, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// serial makes names unique when a test runs more than once.
var serial atomic.Int64

// unique returns a name of the test's own.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, serial.Add(1)) }

// namespace makes a namespace of the test's own on a cluster.
func (c *cluster) namespace(t *testing.T, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique(prefix)}}
	if err := c.client.Create(t.Context(), ns); err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	return ns.Name
}

// vars replaces names in manifests, such as REPO by a URL.
type vars map[string]string

func (v vars) expand(text string) string {
	pairs := make([]string, 0, 2*len(v))
	for name, value := range v {
		pairs = append(pairs, "${"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// create makes the objects of a YAML text in the control plane. The server
// refuses unknown fields. Applications and sets go when the test ends.
func (w *world) create(t *testing.T, text string, v vars) {
	t.Helper()
	for doc := range strings.SplitSeq(v.expand(text), "\n---\n") {
		obj := object(t, doc)
		if obj.GetNamespace() == "" {
			obj.SetNamespace(controlNamespace)
		}
		if err := w.hub.client.Create(t.Context(), obj, client.FieldValidation("Strict")); err != nil {
			t.Fatalf("create %s %s: %v\n%s", obj.GetKind(), obj.GetName(), err, doc)
		}
		t.Cleanup(func() { w.discard(obj) })
	}
}

// discard removes an object without what it manages, so that the controller
// does not go on working for a test that has ended.
func (w *world) discard(obj *unstructured.Unstructured) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	raw := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	_ = w.hub.client.Patch(ctx, obj, raw) // best effort: the hub is thrown away
	_ = w.hub.client.Delete(ctx, obj)
}

func object(t *testing.T, doc string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(doc), &obj.Object); err != nil {
		t.Fatalf("decode: %v\n%s", err, doc)
	}
	return obj
}

// await watches one object until ok returns nil, and returns it as it then was.
// ok is given nil while the object does not exist. The last thing that ok had
// to say is the failure.
func await[T client.Object](t *testing.T, c client.WithWatch, list client.ObjectList, namespace, name string, ok func(T) error) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	a := &awaited[T]{client: c, list: list, namespace: namespace, name: name, ok: ok}
	for ctx.Err() == nil {
		if err := a.round(ctx); err != nil {
			a.problem = err
			time.Sleep(100 * time.Millisecond) // the server may be busy
		}
		if a.problem == nil {
			return a.last
		}
	}
	t.Fatalf("%s/%s: not within %s: %v%s", namespace, name, patience, a.problem, describe(a.last))
	return a.last
}

// awaited is one object that is waited for.
type awaited[T client.Object] struct {
	client          client.WithWatch
	list            client.ObjectList
	namespace, name string
	ok              func(T) error
	last            T
	// problem is what ok had to say of last.
	problem error
}

// round looks at the object and then watches it, until ok is content or the
// watch ends.
func (a *awaited[T]) round(ctx context.Context) error {
	found, version, err := listOne[T](ctx, a.client, a.list, a.namespace, a.name)
	if err != nil {
		return err
	}
	if a.see(found) {
		return nil
	}
	list, is := a.list.DeepCopyObject().(client.ObjectList)
	if !is {
		return errors.New("not a list")
	}
	w, err := a.client.Watch(ctx, list, &client.ListOptions{Namespace: a.namespace, Raw: &metav1.ListOptions{
		ResourceVersion: version, FieldSelector: "metadata.name=" + a.name}})
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		obj, is := ev.Object.(T)
		if !is {
			return nil // an error event: look anew
		}
		if ev.Type == watch.Deleted {
			var none T
			obj = none
		}
		if a.see(obj) {
			return nil
		}
	}
	return nil
}

func (a *awaited[T]) see(obj T) bool {
	a.last = obj
	a.problem = a.ok(obj)
	return a.problem == nil
}

// listOne returns an object, or nil when there is none, and the version of the list.
func listOne[T client.Object](ctx context.Context, c client.Client, list client.ObjectList, namespace, name string) (T, string, error) {
	var none T
	l, is := list.DeepCopyObject().(client.ObjectList)
	if !is {
		return none, "", errors.New("not a list")
	}
	if err := c.List(ctx, l, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name}); err != nil {
		return none, "", fmt.Errorf("list: %w", err)
	}
	items, err := meta.ExtractList(l)
	if err != nil {
		return none, "", fmt.Errorf("read the list: %w", err)
	}
	if len(items) == 0 {
		return none, l.GetResourceVersion(), nil
	}
	obj, is := items[0].(T)
	if !is {
		return none, "", fmt.Errorf("the list holds %T", items[0])
	}
	return obj, l.GetResourceVersion(), nil
}

// describe shows an object's status, to explain a failure.
func describe(obj any) string {
	raw, err := json.Marshal(obj)
	if err != nil || string(raw) == "null" {
		return ""
	}
	var x struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(raw, &x); err != nil {
		return ""
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, x.Status, "", "  "); err != nil {
		return ""
	}
	return "\nstatus: " + pretty.String()
}

// awaitApp watches an Application of the control namespace.
func (w *world) awaitApp(t *testing.T, name string, ok func(*v1alpha1.Application) error) *v1alpha1.Application {
	t.Helper()
	return await(t, w.hub.client, &v1alpha1.ApplicationList{}, controlNamespace, name, func(app *v1alpha1.Application) error {
		if app == nil {
			return errors.New("does not exist")
		}
		return ok(app)
	})
}

// awaitState waits for a sync and a health status.
func (w *world) awaitState(t *testing.T, name, sync, health string) *v1alpha1.Application {
	t.Helper()
	return w.awaitApp(t, name, func(app *v1alpha1.Application) error { return inState(app, sync, health) })
}

func inState(app *v1alpha1.Application, sync, health string) error {
	if app.Status.Sync.Status != sync || app.Status.Health.Status != health {
		return fmt.Errorf("is %s and %s, wanted %s and %s", app.Status.Sync.Status, app.Status.Health.Status, sync, health)
	}
	return nil
}

// awaitSynced waits until an Application is Synced and Healthy at a commit, and
// no operation runs.
func (w *world) awaitSynced(t *testing.T, name, commit string) *v1alpha1.Application {
	t.Helper()
	return w.awaitApp(t, name, func(app *v1alpha1.Application) error { return syncedAt(app, commit) })
}

func syncedAt(app *v1alpha1.Application, commit string) error {
	if err := inState(app, "Synced", "Healthy"); err != nil {
		return err
	}
	if got := app.Status.Sync.Revision; commit != "" && got != commit {
		return fmt.Errorf("is at %q, wanted %q", got, commit)
	}
	if op := app.Status.OperationState; op != nil && op.Phase == "Running" {
		return errors.New("an operation runs")
	}
	return nil
}

// awaitGone waits until an Application does not exist.
func (w *world) awaitGone(t *testing.T, name string) {
	t.Helper()
	await(t, w.hub.client, &v1alpha1.ApplicationList{}, controlNamespace, name, func(app *v1alpha1.Application) error {
		if app != nil {
			return errors.New("still exists")
		}
		return nil
	})
}

// awaitCondition waits until an Application shows a condition of a type whose
// message has all of the texts.
func (w *world) awaitCondition(t *testing.T, name, conditionType string, texts ...string) *v1alpha1.Application {
	t.Helper()
	return w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		for _, c := range app.Status.Conditions {
			if c.Type == conditionType && containsAll(c.Message, texts) {
				return nil
			}
		}
		return fmt.Errorf("no condition %s with %q", conditionType, texts)
	})
}

// awaitNoConditions waits until an Application shows no condition.
func (w *world) awaitNoConditions(t *testing.T, name string) *v1alpha1.Application {
	t.Helper()
	return w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if len(app.Status.Conditions) > 0 {
			return fmt.Errorf("still shows %q", app.Status.Conditions[0].Message)
		}
		return nil
	})
}

func containsAll(s string, texts []string) bool {
	for _, x := range texts {
		if !strings.Contains(s, x) {
			return false
		}
	}
	return true
}

// get reads an object of a member and fails the test when it cannot be read.
func get[T client.Object](t *testing.T, c *cluster, namespace, name string, into T) T {
	t.Helper()
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatalf("read %T %s/%s: %v", into, namespace, name, err)
	}
	return into
}

// gone fails the test unless an object comes not to exist.
func gone(t *testing.T, c *cluster, namespace, name string, obj client.Object) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		err := c.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%T %s/%s still exists (%w)", obj, namespace, name, err)
	})
}

// patch changes an object as a person with kubectl would.
func (c *cluster) patch(t *testing.T, obj client.Object, namespace, name, merge string) {
	t.Helper()
	obj.SetNamespace(namespace)
	obj.SetName(name)
	raw := client.RawPatch("application/merge-patch+json", []byte(merge))
	if err := c.client.Patch(t.Context(), obj, raw, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatalf("patch %T %s/%s: %v", obj, namespace, name, err)
	}
}

// editApp changes an Application as a person with kubectl would.
func (w *world) editApp(t *testing.T, name, merge string) {
	t.Helper()
	w.hub.patch(t, &v1alpha1.Application{}, controlNamespace, name, merge)
}

// unitRow is one row of GET /api/v1/units.
type unitRow struct {
	ID      string `json:"id"`
	Sync    string `json:"sync"`
	Renders int64  `json:"renders"`
}

// renders returns how often a tool ran for each of some Applications.
func (w *world) renders(t *testing.T, apps ...string) map[string]int64 {
	t.Helper()
	var list struct {
		Units []unitRow `json:"units"`
	}
	if err := json.Unmarshal(fetch(t, w.addr, "/api/v1/units"), &list); err != nil {
		t.Fatalf("decode the units: %v", err)
	}
	out := map[string]int64{}
	for _, app := range apps {
		for _, u := range list.Units {
			if u.ID == "argo/"+controlNamespace+"/"+app {
				out[app] = u.Renders
			}
		}
	}
	if len(out) != len(apps) {
		t.Fatalf("units of %d Applications are listed, wanted %d", len(out), len(apps))
	}
	return out
}

// counter reads one counter of GET /metrics.
func counter(t *testing.T, addr, name string) float64 {
	t.Helper()
	for line := range strings.SplitSeq(string(fetch(t, addr, "/metrics")), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatalf("counter %s: %v", name, err)
			}
			return f
		}
	}
	t.Fatalf("there is no counter %s", name)
	return 0
}

func fetch(t *testing.T, addr, path string) []byte {
	t.Helper()
	body, err := request(t.Context(), http.MethodGet, "http://"+addr+path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// pushed tells a controller of a push as GitHub would.
func pushed(t *testing.T, addr, repoURL string) {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"ref": "refs/heads/main",
		"repository": map[string]any{"clone_url": repoURL, "default_branch": "main"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := request(t.Context(), http.MethodPost, "http://"+addr+"/api/webhook", payload, map[string]string{"X-GitHub-Event": "push"}); err != nil {
		t.Fatal(err)
	}
}

func request(ctx context.Context, method, url string, body []byte, header map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, answer)
	}
	return answer, nil
}

// awaitReady waits until a controller has started.
func awaitReady(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := request(ctx, http.MethodGet, "http://"+addr+"/readyz", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the controller is not ready: %w", err)
		}
	}
}
