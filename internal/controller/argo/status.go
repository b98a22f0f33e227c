package argo

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const (
	statusWorkers = 8
	// minorRate bounds the writes, per second, that move nothing but the recorded
	// revision: a push to a shared repository must not cost a write for every
	// application that it does not touch all at once.
	minorRate = 50
)

// statusWriter is the only writer of Application statuses. It fetches the
// report when it is ready to write, so a burst of changes costs one write.
type statusWriter struct {
	*Controllers

	queue workqueue.TypedRateLimitingInterface[rutter.UnitID]
	minor *rate.Limiter

	mu sync.Mutex
	// written holds statuses that the cache does not show yet.
	written map[rutter.UnitID]written
	// pending holds minor changes that wait for their turn.
	pending map[rutter.UnitID]bool
}

type written struct {
	version uint64
	status  v1alpha1.ApplicationStatus
}

func newStatusWriter(c *Controllers) *statusWriter {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[rutter.UnitID](50*time.Millisecond, time.Minute)
	return &statusWriter{Controllers: c, queue: workqueue.NewTypedRateLimitingQueue(limiter),
		minor: rate.NewLimiter(minorRate, 1), written: map[rutter.UnitID]written{},
		pending: map[rutter.UnitID]bool{}}
}

func (w *statusWriter) add(id rutter.UnitID, minor bool) {
	if !minor {
		w.queue.Add(id)
		return
	}
	w.mu.Lock()
	pending := w.pending[id]
	w.pending[id] = true
	w.mu.Unlock()
	if !pending {
		w.queue.AddAfter(id, w.minor.Reserve().Delay())
	}
}

// Start implements manager.Runnable.
func (w *statusWriter) Start(ctx context.Context) error {
	if err := w.followCache(ctx); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for range statusWorkers {
		wg.Go(func() { w.work(ctx) })
	}
	<-ctx.Done()
	w.queue.ShutDown()
	wg.Wait()
	return nil
}

func (w *statusWriter) work(ctx context.Context) {
	for {
		id, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		switch err := w.write(ctx, id); {
		case err == nil || ctx.Err() != nil:
			w.queue.Forget(id)
		case apierrors.IsConflict(err): // it was changed in this moment, which is no fault
			w.queue.AddRateLimited(id)
		default:
			w.opts.Logger.Warn("cannot write the status", "unit", id.String(), "err", err)
			w.queue.AddRateLimited(id)
		}
		w.queue.Done(id)
	}
}

func (w *statusWriter) write(ctx context.Context, id rutter.UnitID) error {
	w.mu.Lock()
	delete(w.pending, id)
	w.mu.Unlock()
	var app v1alpha1.Application
	if err := w.client.Get(ctx, keyOf(id), &app); err != nil {
		return client.IgnoreNotFound(err)
	}
	w.apps.terminate(id, &app) // before its phase is written over
	report, ok := w.opts.Engine.Report(id)
	if !ok {
		return nil
	}
	w.latest(id, &app)
	report.Conditions = append(report.Conditions, w.apps.conditionsOf(id)...)
	status := argo.Status(report, &app, w.opts.Now())
	status.ControllerNamespace = w.opts.Namespace
	if !reflect.DeepEqual(status, app.Status) {
		if err := w.patch(ctx, id, &app, status); err != nil {
			return err
		}
		w.apps.announce(&app, status.Conditions)
	}
	w.opts.Engine.Recorded(report)
	return w.apps.answer(ctx, &app, report)
}

// latest puts the status that was written last into app while the cache is behind.
func (w *statusWriter) latest(id rutter.UnitID, app *v1alpha1.Application) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.written[id]
	if !ok {
		return
	}
	if version(app.ResourceVersion) >= last.version {
		delete(w.written, id)
		return
	}
	app.Status = *last.status.DeepCopy()
}

func (w *statusWriter) patch(ctx context.Context, id rutter.UnitID, app *v1alpha1.Application, status v1alpha1.ApplicationStatus) error {
	next := app.DeepCopy()
	next.Status = *status.DeepCopy()
	err := w.client.Status().Patch(ctx, next, client.MergeFrom(app), FieldOwner)
	if apierrors.IsRequestEntityTooLargeError(err) {
		err = w.patchTooLarge(ctx, app, status)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("patch the status of Application %s/%s: %w", app.Namespace, app.Name, err)
	}
	w.mu.Lock()
	w.written[id] = written{version: version(next.ResourceVersion), status: status}
	w.mu.Unlock()
	// The cache may have been quicker than the answer.
	var now v1alpha1.Application
	if err := w.client.Get(ctx, keyOf(id), &now); err == nil {
		w.shown(id, version(now.ResourceVersion))
	}
	return nil
}

// patchTooLarge writes a status without the list of resources when the whole
// does not fit into an object (reference 1.13 gives up; the sums still fit).
func (w *statusWriter) patchTooLarge(ctx context.Context, app *v1alpha1.Application, status v1alpha1.ApplicationStatus) error {
	n := len(status.Resources)
	status.Resources = onePerKind(status.Resources)
	if status.OperationState != nil && status.OperationState.SyncResult != nil {
		status.OperationState = status.OperationState.DeepCopy()
		status.OperationState.SyncResult.Resources = nil
	}
	status.Conditions = append(status.Conditions, v1alpha1.ApplicationCondition{Type: rutter.CondUnknown,
		Message: fmt.Sprintf("the status of %d resources does not fit into the object and is left out", n), LastTransitionTime: ptrTime(w.opts.Now())})
	next := app.DeepCopy()
	next.Status = status
	if err := w.client.Status().Patch(ctx, next, client.MergeFrom(app), FieldOwner); err != nil {
		return fmt.Errorf("patch the shortened status: %w", err)
	}
	return nil
}

// onePerKind keeps one resource of each kind, so that a restart still knows
// which kinds the application manages.
func onePerKind(all []v1alpha1.ResourceStatus) []v1alpha1.ResourceStatus {
	seen := map[rutter.GVK]bool{}
	var kept []v1alpha1.ResourceStatus
	for _, r := range all {
		k := rutter.GVK{Group: r.Group, Version: r.Version, Kind: r.Kind}
		if !seen[k] {
			seen[k] = true
			kept = append(kept, r)
		}
	}
	return kept
}

// followCache lets go of what was written once the cache shows it.
func (w *statusWriter) followCache(ctx context.Context) error {
	informer, err := w.cache.GetInformer(ctx, &v1alpha1.Application{})
	if err != nil {
		return fmt.Errorf("follow the cache of Applications: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(_, now any) {
		if app, ok := now.(*v1alpha1.Application); ok {
			w.shown(unitID(client.ObjectKeyFromObject(app)), version(app.ResourceVersion))
		}
	}})
	if err != nil {
		return fmt.Errorf("follow the cache of Applications: %w", err)
	}
	return nil
}

// shown notes that the cache is at a version of an Application.
func (w *statusWriter) shown(id rutter.UnitID, at uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.written[id]; ok && at >= last.version {
		delete(w.written, id)
	}
}

func (w *statusWriter) forget(id rutter.UnitID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.written, id)
}

func version(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func ptrTime(t time.Time) *metav1.Time {
	m := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &m
}

func ctrlMeta(app *v1alpha1.Application) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}
}
