package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// census sees every deletion of an Application whose name begins so.
type census struct {
	mu   sync.Mutex
	gone []string
	uids map[string]types.UID
}

// census begins to watch; it ends with the test.
func (w *world) census(t *testing.T, prefix string) *census {
	t.Helper()
	out := &census{uids: map[string]types.UID{}}
	var list v1alpha1.ApplicationList
	if err := w.hub.client.List(t.Context(), &list, client.InNamespace(controlNamespace), client.Limit(1)); err != nil {
		t.Fatal(err)
	}
	ctx, version := t.Context(), list.ResourceVersion
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			var err error
			if version, err = out.watch(ctx, w.hub.client, prefix, version); err != nil && ctx.Err() == nil {
				t.Errorf("the watch of Applications ended, so a deletion may be missed: %v", err)
				return
			}
		}
	}()
	t.Cleanup(func() { <-ended })
	return out
}

// watch tells of the events after a version until the server ends the watch.
func (x *census) watch(ctx context.Context, c client.WithWatch, prefix, version string) (string, error) {
	w, err := c.Watch(ctx, &v1alpha1.ApplicationList{}, &client.ListOptions{Namespace: controlNamespace,
		Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true}})
	if err != nil {
		return version, fmt.Errorf("watch: %w", err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		app, ok := ev.Object.(*v1alpha1.Application)
		if !ok {
			return version, fmt.Errorf("watch: %v", ev.Object)
		}
		version = app.ResourceVersion
		if name, ok := strings.CutPrefix(app.Name, prefix); ok {
			x.see(ev.Type, name, app)
		}
	}
	return version, nil
}

func (x *census) see(event watch.EventType, name string, app *v1alpha1.Application) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.uids[name]; !known {
		x.uids[name] = app.UID
	}
	if (event == watch.Deleted || app.DeletionTimestamp != nil) && !slices.Contains(x.gone, name) {
		x.gone = append(x.gone, name)
	}
}

// deleted are the names of those that were, in order.
func (x *census) deleted() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(slices.Values(x.gone))
}

// first is the UID that an Application had first.
func (x *census) first(name string) (types.UID, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	uid, ok := x.uids[name]
	return uid, ok
}
