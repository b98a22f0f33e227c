package argo

import (
	"context"
	"fmt"
	"maps"

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
)

// setupRepositories gathers all repository Secrets and trust ConfigMaps into
// one set whenever one of them changes.
func (c *Controllers) setupRepositories(mgr ctrl.Manager) error {
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: c.opts.Namespace, Name: "repositories"}}}
	})
	trust := predicate.NewPredicateFuncs(func(o client.Object) bool {
		return o.GetNamespace() == c.opts.Namespace && (o.GetName() == argo.KnownHostsMapName || o.GetName() == argo.TLSCertsMapName || o.GetName() == argo.KeysMapName)
	})
	return ctrl.NewControllerManagedBy(mgr).Named("repository").
		Watches(&corev1.Secret{}, one, builder.WithPredicates(c.secretsOf("repository", "repo-creds"))).
		Watches(&corev1.ConfigMap{}, one, builder.WithPredicates(trust)).
		Complete(reconcile.Func(c.reconcileRepositories))
}

func (c *Controllers) reconcileRepositories(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var secrets corev1.SecretList
	if err := c.client.List(ctx, &secrets, client.InNamespace(c.opts.Namespace), client.HasLabels{labelSecretType}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list repository Secrets: %w", err)
	}
	var creds []rutter.RepoCredential
	for i := range secrets.Items {
		s := &secrets.Items[i]
		if t := s.Labels[labelSecretType]; t != "repository" && t != "repo-creds" {
			continue
		}
		cred, err := argo.ParseRepository(s)
		if err != nil {
			c.opts.Logger.Warn("repository Secret cannot be used", "secret", s.Name, "err", err)
			continue
		}
		if len(cred.Unsupported) > 0 {
			c.opts.Logger.Warn("repository Secret has fields that are not acted on yet", "secret", s.Name, "fields", cred.Unsupported)
		}
		creds = append(creds, cred)
	}
	var known, certs, keys corev1.ConfigMap
	for name, into := range map[string]*corev1.ConfigMap{argo.KnownHostsMapName: &known, argo.TLSCertsMapName: &certs, argo.KeysMapName: &keys} {
		err := c.client.Get(ctx, types.NamespacedName{Namespace: c.opts.Namespace, Name: name}, into)
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("read ConfigMap %s: %w", name, err)
		}
	}
	c.opts.Credentials.SetCredentials(creds, argo.ParseTrust(&known, &certs))
	c.applySignatureKeys(keys.Data)
	c.opts.Engine.RetryFailed()
	c.sets.wakeFailed()
	changed, problems := c.projects.setRepositories(argo.ScopedRepositories(secrets.Items))
	return reconcile.Result{}, c.projectsChanged(ctx, changed, problems)
}

// applySignatureKeys hands the keys for commits on; who has lost one must not go
// on with what it signed.
func (c *Controllers) applySignatureKeys(keys map[string]string) {
	c.settingsMu.Lock()
	defer c.settingsMu.Unlock()
	if c.opts.Signatures == nil || c.signers != nil && maps.Equal(c.signers, keys) {
		return
	}
	first := c.signers == nil
	if c.signers = maps.Clone(keys); c.signers == nil {
		c.signers = map[string]string{}
	}
	if err := c.opts.Signatures.SetKeys(keys); err != nil {
		c.opts.Logger.Warn("a key for the signatures of commits cannot be used", "configmap", argo.KeysMapName, "err", err)
	}
	if !first {
		c.opts.Engine.RefreshAll(func(rutter.Unit) bool { return true })
	}
}

// Verify is the engine's question whether a source is signed as its project demands.
func (c *Controllers) Verify(unit rutter.Unit, source rutter.Source, snap rutter.Snapshot) error {
	return argo.Verify(unit, source, snap, c.projects.get, c.opts.Signatures, c.opts.Now())
}

// PermitRepo is the engine's question whether a project may read a repository
// that a source names: a chart's dependency, a remote base, a values file. A
// name in place of the URL is resolved by who asks.
func (c *Controllers) PermitRepo(name string, repo rutter.Repo) error {
	project, ok := c.projects.get(name)
	if !ok {
		if name == "default" || name == "" {
			return nil
		}
		return rutter.Errorf(rutter.CodeForbidden, "project %q does not exist", name)
	}
	return project.CheckSource(repo.URL)
}
