package argo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/engine"
	"github.com/rutterhq/rutter/internal/policy"
)

// FieldOwner is the field manager of what the controllers write in the control plane.
const FieldOwner = client.FieldOwner("rutter-controller")

// Clusters is what the controllers need of the registry of members.
type Clusters interface {
	rutter.Clusters
	Set(info rutter.ClusterInfo, cred rutter.ClusterCredential) error
	// SetBroken registers a member whose declaration cannot be used, and why.
	SetBroken(info rutter.ClusterInfo, err error)
	Remove(server string)
}

// Credentials is what the controllers need of the Git sources.
type Credentials interface {
	SetCredentials(creds []rutter.RepoCredential, trust rutter.RepoTrust)
}

// SignatureKeys verifies commits with the public keys that it is given, all at
// once. The error names those that cannot be used; the others serve.
type SignatureKeys interface {
	argo.Verifier
	SetKeys(armored map[string]string) error
}

// Options configure the controllers.
type Options struct {
	// Namespace is the control plane's own, for Secrets and ConfigMaps.
	Namespace   string
	Engine      *engine.Engine
	Clusters    Clusters
	Credentials Credentials
	Sources     rutter.Sources
	Settings    RenderSettings
	// HelmLookup lets charts look objects of their cluster up, as the tenant.
	HelmLookup bool
	Keys       DecryptionKeys
	// Signatures verifies commits.
	Signatures SignatureKeys
	// AllowExec lists the credential plugins that the operator allows.
	AllowExec func(command string) bool
	Logger    *slog.Logger
	Now       func() time.Time
	// Params are settings that count before those of argocd-cmd-params-cm.
	Params map[string]string
	// Namespaces are patterns of other namespaces whose Applications and
	// ApplicationSets are acted on (reference 6.9); none by default, so that nobody
	// who may write to some namespace may deploy anywhere.
	Namespaces []string
	// Sets are the decisions about ApplicationSets.
	Sets SetOptions
	// DeletionDeadline is how long an object may be terminating before somebody has
	// to decide; 0 is the engine's default.
	DeletionDeadline time.Duration
}

// manages reports whether objects of a namespace are acted on.
func (o Options) manages(namespace string) bool {
	return namespace == o.Namespace || policy.MatchesNamespace(o.Namespaces, namespace)
}

// Controllers are the parts, wired with each other.
type Controllers struct {
	opts     Options
	client   client.Client
	reader   client.Reader // not from the cache
	cache    cache.Cache
	mapper   meta.RESTMapper
	projects *projectIndex
	clusters *clusterIndex
	status   *statusWriter
	apps     *applications
	sets     *applicationSets

	// primed is set when Applications begin to be translated: what changes before
	// concerns none.
	primed atomic.Bool

	// retained are the versions of the projects whose finalizers were asked for, by UID.
	retained sync.Map

	settingsMu sync.Mutex
	scripts    []rutter.HealthScript
	exprs      []rutter.HealthExpr
	settings   *rutter.RenderSettings
	keys       []rutter.DecryptionKey
	signers    map[string]string
	comparing  rutter.CompareSettings
	tracking   rutter.Tracking
	identities policy.Impersonation
	removal    argo.RemovalSettings
}

// New wires the controllers into a manager. The engine must be built with
// Controllers.Changed and Controllers.Permit; Bind gives it to the controllers.
func New(opts Options) *Controllers {
	c := &Controllers{opts: opts, projects: newProjectIndex(), clusters: newClusterIndex()}
	c.status = newStatusWriter(c)
	c.apps = &applications{Controllers: c}
	c.sets = newApplicationSets(c)
	return c
}

// Bind sets the engine, which is built after the controllers because it calls them.
func (c *Controllers) Bind(e *engine.Engine) { c.opts.Engine = e }

// Setup adds everything to the manager.
func (c *Controllers) Setup(mgr ctrl.Manager) error {
	c.client, c.reader, c.cache, c.mapper = mgr.GetClient(), mgr.GetAPIReader(), mgr.GetCache(), mgr.GetRESTMapper()
	for name, setup := range map[string]func(ctrl.Manager) error{
		"applications": c.apps.setup, "applicationsets": c.sets.setup, "projects": c.setupProjects,
		"clusters": c.setupClusters, "repositories": c.setupRepositories, "settings": c.setupSettings,
	} {
		if err := setup(mgr); err != nil {
			return fmt.Errorf("set up the controller of %s: %w", name, err)
		}
	}
	return errors.Join(c.setupPlacements(mgr), mgr.Add(c.status))
}

// Changed is the engine's callback: the report of a unit may have changed.
func (c *Controllers) Changed(id rutter.UnitID, minor bool) {
	c.status.add(id, minor)
	c.sets.handedOver(id)
}

// unitID is the engine's name for an Application.
func unitID(key types.NamespacedName) rutter.UnitID {
	return rutter.UnitID{Dialect: "argo", Namespace: key.Namespace, Name: key.Name}
}

func keyOf(id rutter.UnitID) types.NamespacedName {
	return types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
}

// Prime hands everything that is declared to the engine, members and
// credentials first, before the engine starts: so the first comparison after a
// start sees the whole picture, and no status flickers.
func (c *Controllers) Prime(ctx context.Context) error {
	if _, err := c.reconcileRepositories(ctx, reconcile.Request{}); err != nil {
		return err
	}
	if _, err := c.reconcileSettings(ctx, reconcile.Request{}); err != nil {
		return err
	}
	var projects v1alpha1.AppProjectList
	if err := c.client.List(ctx, &projects, client.InNamespace(c.opts.Namespace)); err != nil {
		return fmt.Errorf("list AppProjects: %w", err)
	}
	c.projects.load(projects.Items)
	for _, list := range []struct {
		into client.ObjectList
		opts []client.ListOption
		each func(context.Context, reconcile.Request) (reconcile.Result, error)
	}{
		{&corev1.SecretList{}, []client.ListOption{client.InNamespace(c.opts.Namespace), client.MatchingLabels{labelSecretType: "cluster"}}, c.reconcileCluster},
		{&v1alpha1.AppProjectList{}, []client.ListOption{client.InNamespace(c.opts.Namespace)}, c.reconcileProject},
		{&v1alpha1.ApplicationList{}, nil, c.apps.Reconcile},
	} {
		if err := c.client.List(ctx, list.into, list.opts...); err != nil {
			return fmt.Errorf("list %T: %w", list.into, err)
		}
		if _, ok := list.into.(*v1alpha1.ApplicationList); ok {
			c.primed.Store(true)
		}
		err := meta.EachListItem(list.into, func(o runtime.Object) error {
			obj, ok := o.(client.Object)
			if !ok {
				return nil
			}
			_, err := list.each(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
			return err
		})
		if err != nil {
			return fmt.Errorf("take in what is declared: %w", err)
		}
	}
	c.sets.prime()
	return nil
}
