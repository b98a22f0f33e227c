package argo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

// projectIndex holds the AppProjects of the control plane's namespace by name.
type projectIndex struct {
	mu     sync.RWMutex
	byName map[string]*v1alpha1.AppProject
}

func newProjectIndex() *projectIndex {
	return &projectIndex{byName: map[string]*v1alpha1.AppProject{}}
}

func (x *projectIndex) get(name string) (*v1alpha1.AppProject, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	p, ok := x.byName[name]
	return p, ok
}

// names are those of all projects; never nil.
func (x *projectIndex) names() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(x.byName)), maps.Keys(x.byName))
}

func (x *projectIndex) set(name string, p *v1alpha1.AppProject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p == nil {
		delete(x.byName, name)
	} else {
		x.byName[name] = p
	}
}

func (c *Controllers) setupProjects(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("appproject").
		For(&v1alpha1.AppProject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.Func(c.reconcileProject))
}

// reconcileProject takes a project into force and translates its Applications anew.
func (c *Controllers) reconcileProject(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.Namespace != c.opts.Namespace {
		return reconcile.Result{}, nil
	}
	var project v1alpha1.AppProject
	err := c.client.Get(ctx, req.NamespacedName, &project)
	switch {
	case apierrors.IsNotFound(err):
		c.projects.set(req.Name, nil)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read AppProject %s: %w", req, err)
	default:
		c.projects.set(req.Name, &project)
	}
	c.sets.wakeRefused()
	return reconcile.Result{}, c.retranslate(ctx, req.Name)
}

// retranslate gives the engine the units of a project again, since what the
// project allows is a part of their translation.
func (c *Controllers) retranslate(ctx context.Context, project string) error {
	var list v1alpha1.ApplicationList
	if err := c.client.List(ctx, &list); err != nil {
		return fmt.Errorf("list Applications of project %s: %w", project, err)
	}
	for i := range list.Items {
		app := &list.Items[i]
		if app.Spec.Project != project && (app.Spec.Project != "" || project != "default") {
			continue
		}
		if _, err := c.apps.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(app)}); err != nil {
			return err
		}
	}
	c.opts.Engine.RefreshAll(func(u rutter.Unit) bool { return u.Project == project })
	return nil
}

// Permit is the engine's question whether a unit may manage an object there.
func (c *Controllers) Permit(unit rutter.Unit, cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) error {
	project, ok := c.projects.get(unit.Project)
	if !ok {
		if unit.Project == "default" || unit.Project == "" {
			return nil
		}
		return rutter.Errorf(rutter.CodeForbidden, "project %q does not exist", unit.Project)
	}
	return policy.CheckResource(project, cluster, ref, namespaced)
}

// Lookup gives a unit's charts a view of its cluster, with the rights of the
// service account that its project names for the destination; nil where the
// operator does not allow lookup or no account is named: never with our own.
func (c *Controllers) Lookup(unit rutter.Unit, cluster rutter.Cluster) rutter.Lookup {
	if !c.opts.HelmLookup {
		return nil
	}
	project, ok := c.projects.get(unit.Project)
	if !ok {
		return nil
	}
	user, ok := policy.ServiceAccount(project, cluster.Info(), unit.Target.Namespace, unit.ID.Namespace)
	if !ok {
		return nil
	}
	return cluster.LookupAs(user)
}
