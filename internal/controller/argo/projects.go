package argo

import (
	"cmp"
	"context"
	"errors"
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

// projectIndex holds the AppProjects of the control plane's namespace by name, as
// they are in force: with what they inherit and what is registered for them.
type projectIndex struct {
	mu           sync.RWMutex
	declared     map[string]*v1alpha1.AppProject
	globals      []policy.GlobalProject
	repositories map[string][]string
	inForce      map[string]ruled
}

// ruled is a project in force, and what it was made of.
type ruled struct {
	project  *policy.Project
	declared *v1alpha1.AppProject
	around   policy.Around
}

func newProjectIndex() *projectIndex {
	return &projectIndex{declared: map[string]*v1alpha1.AppProject{}, inForce: map[string]ruled{}}
}

func (x *projectIndex) get(name string) (*policy.Project, bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	r, ok := x.inForce[name]
	return r.project, ok
}

// names are those of all projects; never nil.
func (x *projectIndex) names() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(x.declared)), maps.Keys(x.declared))
}

// load takes all projects in at once, before any of them is asked, so that none
// misses one that it inherits from.
func (x *projectIndex) load(all []v1alpha1.AppProject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range all {
		x.declared[all[i].Name] = &all[i]
	}
	x.renew()
}

// set takes a project in, nil takes it back. Like the other two it returns the
// projects whose rules are others by that, and what is wrong with the settings.
func (x *projectIndex) set(name string, p *v1alpha1.AppProject) (changed []string, problems []error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if p == nil {
		delete(x.declared, name)
	} else {
		x.declared[name] = p
	}
	return x.renew()
}

func (x *projectIndex) setGlobals(globals []policy.GlobalProject) (changed []string, problems []error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.globals = globals
	return x.renew()
}

func (x *projectIndex) setRepositories(byProject map[string][]string) (changed []string, problems []error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.repositories = byProject
	return x.renew()
}

// renew makes the projects anew whose rules, or whose surroundings, are others.
func (x *projectIndex) renew() (changed []string, problems []error) {
	find := func(name string) (*v1alpha1.AppProject, bool) { p, ok := x.declared[name]; return p, ok }
	for name, p := range x.declared {
		globals, errs := policy.Globals(p, x.globals, find)
		problems = append(problems, errs...)
		now := ruled{declared: p, around: policy.Around{Global: globals, Repositories: x.repositories[name]}}
		if was := x.inForce[name]; was.declared == p && slices.Equal(was.around.Global, globals) && slices.Equal(was.around.Repositories, now.around.Repositories) {
			continue
		}
		now.project = policy.New(p, now.around)
		x.inForce[name] = now
		changed = append(changed, name)
	}
	for name := range x.inForce {
		if x.declared[name] == nil {
			delete(x.inForce, name)
			changed = append(changed, name)
		}
	}
	return changed, problems
}

func (c *Controllers) setupProjects(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("appproject"). // labels choose what is inherited
									For(&v1alpha1.AppProject{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
									Complete(reconcile.Func(c.reconcileProject))
}

// reconcileProject takes a project into force and translates its Applications anew.
func (c *Controllers) reconcileProject(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.Namespace != c.opts.Namespace {
		return reconcile.Result{}, nil
	}
	var project v1alpha1.AppProject
	err := c.client.Get(ctx, req.NamespacedName, &project)
	var changed []string
	var problems []error
	switch {
	case apierrors.IsNotFound(err):
		changed, problems = c.projects.set(req.Name, nil)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read AppProject %s: %w", req, err)
	default:
		if project.DeletionTimestamp != nil {
			if err := c.releaseProjects(ctx); err != nil {
				return reconcile.Result{}, err
			}
		}
		changed, problems = c.projects.set(req.Name, &project)
		problems = append(problems, policy.Validate(&project)...)
		if w := policy.Warnings(&project); len(w) > 0 {
			c.opts.Logger.Info("an AppProject allows more than it may seem: see rutter proj get", "project", req.Name, "warnings", len(w), "first", w[0].Field+": "+w[0].Message)
		}
	}
	c.sets.wakeRefused()
	return reconcile.Result{}, c.projectsChanged(ctx, changed, problems)
}

// projectsChanged translates the Applications anew whose projects have other rules.
func (c *Controllers) projectsChanged(ctx context.Context, changed []string, problems []error) error {
	if err := errors.Join(problems...); err != nil {
		c.opts.Logger.Warn("a rule of a project cannot be used as it is written", "projects", changed, "err", err)
	}
	if len(changed) == 0 {
		return nil
	}
	return c.retranslate(ctx, func(app *v1alpha1.Application) bool {
		return slices.Contains(changed, cmp.Or(app.Spec.Project, "default"))
	})
}

// retranslate gives the engine units again whose surroundings have changed: what
// a project allows at a cluster is a part of their translation.
func (c *Controllers) retranslate(ctx context.Context, concerns func(*v1alpha1.Application) bool) error {
	if !c.primed.Load() {
		return nil
	}
	var list v1alpha1.ApplicationList
	if err := c.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil { // they are read only
		return fmt.Errorf("list Applications: %w", err)
	}
	again := map[rutter.UnitID]bool{}
	for i := range list.Items {
		key := client.ObjectKeyFromObject(&list.Items[i])
		if !concerns(&list.Items[i]) {
			continue
		}
		if _, err := c.apps.Reconcile(ctx, reconcile.Request{NamespacedName: key}); err != nil {
			return err
		}
		again[unitID(key)] = true
	}
	c.opts.Engine.RefreshAll(func(u rutter.Unit) bool { return again[u.ID] })
	return nil
}

// Permit is the engine's question whether a unit may manage an object there.
func (c *Controllers) Permit(unit rutter.Unit, cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) error {
	project, ok := c.projects.get(unit.Project)
	if !ok {
		if unit.Project == "default" || unit.Project == "" {
			return nil
		}
		return rutter.Errorf(rutter.CodeNotFound, "project %q does not exist", unit.Project)
	}
	return project.CheckResource(cluster, ref, namespaced)
}

// Orphan is the engine's question whether an object that nobody declares counts as one.
func (c *Controllers) Orphan(unit rutter.Unit, cluster rutter.ClusterInfo, ref rutter.Ref) bool {
	project, ok := c.projects.get(unit.Project)
	return ok && project.Orphan(cluster, ref)
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
	user, ok := project.ServiceAccount(cluster.Info(), unit.Target.Namespace, unit.ID.Namespace)
	if !ok {
		return nil
	}
	return cluster.LookupAs(user)
}
