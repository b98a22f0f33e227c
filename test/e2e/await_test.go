package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

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
