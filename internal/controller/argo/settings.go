package argo

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/health"
)

// RenderSettings takes what the operator sets for all renders.
type RenderSettings interface {
	Set(s rutter.RenderSettings)
}

// DecryptionKeys takes the keys that open files sealed by SOPS, all at once. The
// error names those that cannot be used; the others serve.
type DecryptionKeys interface {
	SetKeys(keys []rutter.DecryptionKey) error
}

// setupSettings follows argocd-cm, argocd-cmd-params-cm and the Secrets with
// decryption keys.
func (c *Controllers) setupSettings(mgr ctrl.Manager) error {
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: c.opts.Namespace, Name: "settings"}}}
	})
	maps := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == c.opts.Namespace && (o.GetName() == argo.ConfigMapName || o.GetName() == argo.ParamsMapName)
	})
	return ctrl.NewControllerManagedBy(mgr).Named("settings").
		Watches(&corev1.ConfigMap{}, one, builder.WithPredicates(maps)).
		Watches(&corev1.Secret{}, one, builder.WithPredicates(c.secretsOf(argo.SecretTypeSOPSKeys))).
		Complete(reconcile.Func(c.reconcileSettings))
}

// reconcileSettings reads all of them anew, and wakes whom a change concerns.
func (c *Controllers) reconcileSettings(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var cm, params corev1.ConfigMap
	for name, into := range map[string]*corev1.ConfigMap{argo.ConfigMapName: &cm, argo.ParamsMapName: &params} {
		err := c.client.Get(ctx, types.NamespacedName{Namespace: c.opts.Namespace, Name: name}, into)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("read ConfigMap %s: %w", name, err)
		}
	}
	var secrets corev1.SecretList
	if err := c.client.List(ctx, &secrets, client.InNamespace(c.opts.Namespace), client.MatchingLabels{labelSecretType: argo.SecretTypeSOPSKeys}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Secrets with decryption keys: %w", err)
	}
	var keys []rutter.DecryptionKey
	for i := range secrets.Items {
		keys = append(keys, argo.ParseDecryptionKey(&secrets.Items[i]))
	}
	settings, problems := argo.ParseSettings(&cm, &params)
	for _, p := range problems {
		c.opts.Logger.Warn("a setting is not acted on", "problem", p)
	}
	comparing, problems := argo.ParseComparison(&cm)
	for _, p := range problems {
		c.opts.Logger.Warn("a setting is not acted on", "problem", p)
	}
	if err := c.applyComparing(comparing); err != nil {
		return reconcile.Result{}, err
	}
	scripts, problems := argo.ParseHealthScripts(&cm)
	exprs, more := argo.ParseHealthExprs(&cm)
	for _, p := range append(problems, more...) {
		c.opts.Logger.Warn("a setting is not acted on", "problem", p)
	}
	c.applyHealth(scripts, exprs)
	if err := c.applySyncing(ctx, &cm, &params); err != nil {
		return reconcile.Result{}, err
	}
	if err := c.applyRemoval(ctx, &cm); err != nil {
		return reconcile.Result{}, err
	}
	c.applySettings(settings, keys)
	globals, err := argo.GlobalProjects(&cm)
	if err != nil {
		c.opts.Logger.Warn("a setting is not acted on", "problem", err)
		return reconcile.Result{}, nil
	}
	changed, missing := c.projects.setGlobals(globals)
	return reconcile.Result{}, c.projectsChanged(ctx, changed, missing)
}

// applyComparing hands a change of what is set for all comparisons on.
func (c *Controllers) applyComparing(s rutter.CompareSettings) error {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	if reflect.DeepEqual(s, c.comparing) {
		return nil
	}
	if err := c.opts.Engine.SetComparing(s); err != nil {
		return fmt.Errorf("what argocd-cm sets for comparing: %w", err)
	}
	c.comparing = s
	return nil
}

// applyHealth hands a change of how the health of kinds is assessed on. What
// cannot be used makes its kinds Unknown.
func (c *Controllers) applyHealth(scripts []rutter.HealthScript, exprs []rutter.HealthExpr) {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	if reflect.DeepEqual(scripts, c.scripts) && reflect.DeepEqual(exprs, c.exprs) {
		return
	}
	assessor, errs := health.NewAssessor(scripts, exprs)
	for _, err := range errs {
		c.opts.Logger.Warn("an assessment of health cannot be used", "err", err)
	}
	c.opts.Engine.SetHealth(assessor)
	c.scripts, c.exprs = scripts, exprs
}

func (c *Controllers) applySettings(settings rutter.RenderSettings, keys []rutter.DecryptionKey) {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	refresh := c.settings != nil
	if !reflect.DeepEqual(keys, c.keys) {
		c.keys = keys
		if err := c.opts.Keys.SetKeys(keys); err != nil {
			c.opts.Logger.Warn("decryption keys cannot be used", "err", err)
		}
		if refresh { // who has a key no more must not go on with what it opened
			c.opts.Engine.RefreshAll(func(rutter.Unit) bool { return true })
		}
	}
	if c.settings == nil || !reflect.DeepEqual(settings, *c.settings) {
		c.settings = &settings
		c.opts.Settings.Set(settings)
		if refresh {
			c.opts.Engine.RefreshAll(func(rutter.Unit) bool { return true })
		}
	}
}
