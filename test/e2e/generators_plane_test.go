package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// plane is a control plane that one test at a time has for itself. Its
// controller is a process, so that it can be killed, and reaches it through a
// breaker, so that the control plane can be made to fail.
type plane struct {
	*world

	api     *breaker
	data    string
	process *process
}

// second is the hub of the planes; the first test that asks pays for it.
var second struct {
	sync.Mutex

	hub *cluster
}

// borrow waits until no other test has the second hub, and takes it. No
// controller runs yet.
func borrow(t *testing.T) *plane {
	t.Helper()
	w := start(t)
	second.Lock()
	t.Cleanup(second.Unlock)
	if second.hub == nil {
		hub, err := startCluster(context.WithoutCancel(t.Context()), "second", local.Hub)
		if err != nil {
			t.Fatal(err)
		}
		w.atEnd(func() { _ = hub.process.Stop(context.Background()) }) // it dies with this process at the latest
		if err := daemon.Install(t.Context(), hub.rest, controlNamespace); err != nil {
			t.Fatal(err)
		}
		second.hub = hub
	}
	p := &plane{world: &world{hub: second.hub, alpha: w.alpha, git: w.git, gitDir: w.gitDir}, api: breakAPI(t, second.hub.rest), data: t.TempDir()}
	t.Cleanup(func() { p.sweep(t) })
	return p
}

// atEnd has something called when all tests are done.
func (w *world) atEnd(f func()) {
	started.Lock()
	defer started.Unlock()
	w.ends = append(w.ends, f)
}

// start starts the controller and waits until it is ready.
func (p *plane) start(t *testing.T) {
	t.Helper()
	begun := time.Now()
	p.process = startProcess(t, p.api.rest(), p.data)
	p.addr = p.process.addr
	t.Logf("a controller is ready after %s", time.Since(begun).Round(time.Millisecond))
}

// kill ends the controller as a crash would. What was on its way is lost.
func (p *plane) kill(t *testing.T) {
	t.Helper()
	p.process.kill(t)
	p.api.drop(anything)
}

// sweep leaves nothing that the next test's controller would work for.
func (p *plane) sweep(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	// The members are the next test's to declare.
	clusters := client.MatchingLabels{"argocd.argoproj.io/secret-type": "cluster"}
	if err := p.hub.client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(controlNamespace), clusters); err != nil {
		t.Logf("sweep the second hub: %v", err)
	}
	for _, list := range []client.ObjectList{&v1alpha1.ApplicationSetList{}, &v1alpha1.ApplicationList{}} {
		if err := p.hub.client.List(ctx, list, client.InNamespace(controlNamespace)); err != nil {
			t.Logf("sweep the second hub: %v", err)
			return
		}
		p.remove(ctx, list)
	}
}

// remove deletes objects without what they manage.
func (p *plane) remove(ctx context.Context, list client.ObjectList) {
	var all []client.Object
	switch l := list.(type) {
	case *v1alpha1.ApplicationSetList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	case *v1alpha1.ApplicationList:
		for i := range l.Items {
			all = append(all, &l.Items[i])
		}
	}
	for _, obj := range all {
		_ = p.hub.client.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		_ = p.hub.client.Delete(ctx, obj) // best effort: the hub is thrown away
	}
}
