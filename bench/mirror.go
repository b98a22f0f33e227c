package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// mirror is the bare loop of the edits: it watches its own few objects, knows what
// each must be, and sends one prepared patch for what it sees, and no more. That is
// the least that anything can do which a user is to see through the API server.
type mirror struct {
	client client.WithWatch
	child  *child

	mu     sync.Mutex
	heals  bool
	failed error
}

// mirrorNamespace is nobody's.
const (
	mirrorNamespace = "mirror"
	mirrorApp       = "mirror"
)

func (b *editBench) newMirror(ctx context.Context) (*mirror, error) {
	m := &mirror{client: b.client, child: b.child}
	if err := m.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: mirrorNamespace}}); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", mirrorNamespace, err)
	}
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: mirrorNamespace, Name: mirrorApp}}
	app.Spec.Project = "default"
	app.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: b.fleet.url(), Path: "apps/none", TargetRevision: "main"}
	app.Annotations = map[string]string{"argocd.argoproj.io/skip-reconcile": "true"}
	if err := m.client.Create(ctx, app); err != nil {
		return nil, fmt.Errorf("create the Application of the bare loop: %w", err)
	}
	objects, err := documents(mixed(mirrorApp, perApp)[len("---\n"):])
	if err != nil {
		return nil, err
	}
	kinds := map[string]*unstructured.UnstructuredList{}
	for _, o := range objects {
		o.SetNamespace(mirrorNamespace)
		if err := m.apply(ctx, o); err != nil {
			return nil, err
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind(o.GetKind() + "List"))
		kinds[o.GetKind()] = list
	}
	for _, list := range kinds {
		w, err := m.client.Watch(ctx, list, client.InNamespace(mirrorNamespace))
		if err != nil {
			return nil, fmt.Errorf("watch: %w", err)
		}
		go m.follow(ctx, w, objects)
	}
	return m, nil
}

func (m *mirror) apply(ctx context.Context, o *unstructured.Unstructured) error {
	if err := m.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("mirror"), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s: %w", o.GetName(), err)
	}
	return nil
}

// follow answers each event that shows an edit.
func (m *mirror) follow(ctx context.Context, w watch.Interface, objects []*unstructured.Unstructured) {
	defer w.Stop()
	for ev := range w.ResultChan() {
		u, ok := ev.Object.(*unstructured.Unstructured)
		if !ok {
			m.fail(fmt.Errorf("the watch of the bare loop answers %v", ev.Object))
			return
		}
		for n, o := range objects {
			if o.GetName() != u.GetName() || o.GetKind() != u.GetKind() {
				continue
			}
			m.fail(m.answer(ctx, mirrored(n), o, u))
		}
	}
}

func mirrored(n int) edited {
	o := editOf(mirrorApp, n)
	o.namespace = mirrorNamespace
	return o
}

func (m *mirror) answer(ctx context.Context, e edited, want, live *unstructured.Unstructured) error {
	m.mu.Lock()
	heals := m.heals
	m.mu.Unlock()
	if heals {
		if e.shows(live, e.edited) {
			return m.apply(ctx, want)
		}
		return nil
	}
	status := `{"status":{"sync":{"status":"Synced"}}}`
	if e.shows(live, e.edited) {
		status = `{"status":{"sync":{"status":"OutOfSync"}}}`
	}
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: mirrorNamespace, Name: mirrorApp}}
	if err := m.client.Status().Patch(ctx, app, client.RawPatch(types.MergePatchType, []byte(status))); err != nil {
		return fmt.Errorf("write the status of the bare loop: %w", err)
	}
	return nil
}

func (m *mirror) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = errors.Join(m.failed, err)
}

// mode says what the loop answers with, and whether it has failed.
func (m *mirror) mode(heals bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.heals = heals
	return m.failed
}

// verdict times until the loop's Application says that an object is edited.
func (m *mirror) verdict(ctx context.Context, i int) (time.Duration, error) {
	if err := m.mode(false); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, mostRepair)
	defer cancel()
	w, err := m.client.Watch(ctx, &v1alpha1.ApplicationList{}, client.InNamespace(mirrorNamespace))
	if err != nil {
		return 0, fmt.Errorf("watch Applications: %w", err)
	}
	defer w.Stop()
	e := mirrored(i % perApp)
	began := time.Now()
	if err := e.patch(ctx, m.client, e.edited); err != nil {
		return 0, err
	}
	if err := m.says(w, "OutOfSync"); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := e.patch(ctx, m.client, e.declared); err != nil {
		return 0, err
	}
	return took, m.says(w, "Synced")
}

func (m *mirror) says(w watch.Interface, want string) error {
	for ev := range w.ResultChan() {
		if app, ok := ev.Object.(*v1alpha1.Application); ok && app.Status.Sync.Status == want {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("the bare loop does not say %s", want), m.mode(false))
}

// repair times until the loop has put an object back.
func (m *mirror) repair(ctx context.Context, i int) (time.Duration, error) {
	if err := m.mode(true); err != nil {
		return 0, err
	}
	return mirrored(i%perApp).repaired(ctx, m.client)
}
