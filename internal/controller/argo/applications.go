package argo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const (
	annRefresh = "argocd.argoproj.io/refresh"
	annSkip    = "argocd.argoproj.io/skip-reconcile"
)

// applications hands Applications to the engine.
type applications struct {
	*Controllers

	events eventSink

	mu sync.Mutex
	// asked remembers requests that were handed over and are not answered yet.
	asked map[rutter.UnitID]*asked
	// conditions are what the translation had to say, shown beside the engine's report.
	conditions map[rutter.UnitID][]rutter.Condition
}

type asked struct {
	uid       types.UID           // of the object that asked
	operation *v1alpha1.Operation // the operation field as it was handed over; nil when none waits
	id        string              // by which the engine knows it
	answered  uint64              // version of the object from which the answered operation was removed
	refresh   time.Time
	refreshAs string
}

func (a *applications) setup(mgr ctrl.Manager) error {
	a.asked, a.conditions = map[rutter.UnitID]*asked{}, map[rutter.UnitID][]rutter.Condition{}
	a.events = eventSink{mgr.GetEventRecorder("rutter-application")}
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}, nextStage, terminating)
	return ctrl.NewControllerManagedBy(mgr).Named("application").
		For(&v1alpha1.Application{}, builder.WithPredicates(changed)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(a)
}

// Reconcile implements reconcile.Reconciler.
func (a *applications) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	id := unitID(req.NamespacedName)
	var app v1alpha1.Application
	if err := a.client.Get(ctx, req.NamespacedName, &app); err != nil {
		if apierrors.IsNotFound(err) {
			a.forget(id)
			return reconcile.Result{}, a.releaseProjects(ctx)
		}
		return reconcile.Result{}, fmt.Errorf("read Application %s: %w", req, err)
	}
	if app.Annotations[annSkip] == "true" {
		a.opts.Engine.Remove(id)
		return reconcile.Result{}, nil
	}
	unit, conditions := argo.ToUnit(&app, a.config(), a.projects.get)
	if !a.opts.manages(app.Namespace) {
		unit.Problem = rutter.Errorf(rutter.CodeForbidden, "applications in namespace %q are not enabled: start the controller with --application-namespaces", app.Namespace)
	}
	switch {
	case app.DeletionTimestamp == nil:
	case a.opts.manages(app.Namespace):
		return a.delete(ctx, &app, unit, conditions)
	default: // another controller's, which deletes its objects and takes the finalizer off
		a.opts.Engine.Remove(id)
		return reconcile.Result{}, nil
	}
	conditions, held := applyHold(&app, &unit, conditions, a.opts.Now())
	a.mu.Lock()
	a.conditions[id] = conditions
	a.mu.Unlock()
	a.opts.Engine.Upsert(unit)
	if a.opts.manages(app.Namespace) {
		a.retainProject(ctx, unit.Project)
	}
	a.request(id, &app)
	a.terminate(id, &app)
	return reconcile.Result{RequeueAfter: held}, nil
}

// config is what translating needs to know of the control plane.
func (c *Controllers) config() argo.Config {
	return argo.Config{Namespace: c.opts.Namespace, PruneBudget: c.pruneBudget(), Tracking: c.trackingNow(), Impersonation: c.identitiesNow(), Cluster: func(t rutter.Target) (rutter.ClusterInfo, bool) {
		cluster, err := c.opts.Clusters.Lookup(t)
		if err != nil {
			return rutter.ClusterInfo{}, false
		}
		return cluster.Info(), true
	}}
}

// forget drops an Application that no longer exists.
func (a *applications) forget(id rutter.UnitID) {
	a.opts.Engine.Remove(id)
	a.status.forget(id)
	a.sets.forgetApplication(keyOf(id))
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, id)
	delete(a.conditions, id)
}

// request hands the operation field and the refresh annotation over, once each.
func (a *applications) request(id rutter.UnitID, app *v1alpha1.Application) {
	refresh := app.Annotations[annRefresh]
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.asked[id]
	if x != nil && x.uid != app.UID {
		x = nil
		a.status.add(id, false) // made again before anybody saw it go: to the engine nothing has changed
	}
	if x == nil {
		x = &asked{uid: app.UID}
		a.asked[id] = x
	}
	a.requestOperation(id, app, x)
	if refresh == "" {
		x.refresh = time.Time{}
	} else if x.refresh.IsZero() {
		x.refresh, x.refreshAs = a.opts.Now(), refresh
		a.opts.Engine.Refresh(id, true)
	}
}

// answer removes what the report has answered from the Application: the
// operation field of a completed manual sync, the refresh annotation after a
// comparison, the finalizers after a complete deletion.
func (a *applications) answer(ctx context.Context, app *v1alpha1.Application, report rutter.Report) error {
	a.mu.Lock()
	var x asked
	if p := a.asked[report.ID]; p != nil {
		x = *p
	}
	a.mu.Unlock()
	var patch []string
	op := report.Operation
	if app.Operation != nil && x.operation != nil && op != nil && op.Phase.Completed() && op.Request.ID == x.id {
		patch = append(patch, `{"op":"remove","path":"/operation"}`)
	}
	if !x.refresh.IsZero() && report.ComparedAt.After(x.refresh) && app.Annotations[annRefresh] == x.refreshAs {
		const path = "/metadata/annotations/argocd.argoproj.io~1refresh"
		patch = append(patch, fmt.Sprintf(`{"op":"test","path":%q,"value":%q},{"op":"remove","path":%q}`, path, x.refreshAs, path))
	}
	if len(patch) > 0 {
		raw := client.RawPatch("application/json-patch+json", []byte("["+strings.Join(patch, ",")+"]"))
		target := &v1alpha1.Application{ObjectMeta: ctrlMeta(app)}
		if err := a.client.Patch(ctx, target, raw, FieldOwner); client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) {
			return fmt.Errorf("take back the answered request of Application %s/%s: %w", app.Namespace, app.Name, err)
		}
		a.mu.Lock()
		if p := a.asked[report.ID]; p != nil && strings.Contains(patch[0], "/operation") {
			p.operation, p.answered = nil, version(target.ResourceVersion)
		}
		a.mu.Unlock()
	}
	return a.answerDeletion(ctx, app, report)
}

func (a *applications) conditionsOf(id rutter.UnitID) []rutter.Condition {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.conditions[id]
}
