package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cluster"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/controller/argo"
	"github.com/rutterhq/rutter/internal/engine"
	"github.com/rutterhq/rutter/internal/httpapi"
	"github.com/rutterhq/rutter/internal/signature"
)

// Run is the controller: it works until ctx ends, and then stops cleanly.
func Run(ctx context.Context, cfg Config) error {
	cfg.defaults()
	d, err := build(ctx, cfg)
	if err != nil {
		return err
	}
	defer d.close()
	if err := d.manager.Start(ctx); err != nil {
		return fmt.Errorf("run the controllers: %w", err)
	}
	return nil
}

// daemon is one process's parts.
type daemon struct {
	cfg         Config
	manager     manager.Manager
	clusters    *cluster.Registry
	rendering   *rendering
	engine      *engine.Engine
	controllers *argo.Controllers
	sets        argo.SetOptions
	started     atomic.Bool
}

func (d *daemon) close() {
	d.clusters.Close()
	if err := d.rendering.Close(); err != nil {
		d.cfg.Logger.Warn("cannot close the sources", "err", err)
	}
}

func build(ctx context.Context, cfg Config) (*daemon, error) {
	// Controller-runtime tells of its every step at the level at which we tell of ours.
	ctrl.SetLogger(logr.FromSlogHandler(warnings{cfg.Logger.Handler()}))
	d := &daemon{cfg: cfg}
	var err error
	rc := renderingConfig{keep: true, plugins: cfg.Plugins, pluginTools: cfg.PluginTools, pluginRequire: cfg.pluginRequire(), sourceConfig: sourceConfig{dir: cfg.DataDir, submodules: cfg.Submodules, logger: cfg.Logger,
		permit: func(project string, repo rutter.Repo) error { return d.controllers.PermitRepo(project, repo) }}}
	if cfg.RefuseFiles {
		rc.fetch = func(s rutter.Sources) rutter.Sources { return noFiles{s} }
	}
	var sources rutter.Sources
	if d.rendering, sources, err = openRendering(rc); err != nil {
		return nil, err
	}
	sink := &lateSink{}
	d.clusters = cluster.New(cluster.Options{Logger: cfg.Logger, Sink: sink, AllowExec: cfg.allowExec})
	if err := d.clusters.SetLocal(cfg.REST); err != nil {
		return nil, fmt.Errorf("use the control plane as a member: %w", err)
	}
	reader, err := NewClient(cfg.REST) // the manager's begins to read later, and from a cache of only some
	if err != nil {
		return nil, err
	}
	sets, err := setOptions(ctx, cfg.Sets, reader, cfg.Namespace, cfg.Logger)
	if err != nil {
		return nil, err
	}
	d.sets = sets
	d.controllers = argo.New(argo.Options{
		Namespace: cfg.Namespace, Namespaces: cfg.Namespaces, Clusters: d.clusters, Credentials: d.rendering.sources, Sources: sources,
		Settings: d.rendering.renderer, Keys: d.rendering, Signatures: &signature.Keyring{}, HelmLookup: cfg.HelmLookup, DeletionDeadline: cfg.DeletionDeadline,
		AllowExec: cfg.allowExec, Logger: cfg.Logger, Now: time.Now, Sets: sets, Params: cfg.Params,
	})
	types, err := compare.NewTypes(nil)
	if err != nil {
		return nil, err
	}
	d.engine = engine.New(engine.Options{
		Types:   types,
		Sources: sources, Renderer: d.rendering.renderer, Clusters: d.clusters, Changed: d.controllers.Changed,
		Permit: d.controllers.Permit, Identity: d.controllers.Identity, Verify: d.controllers.Verify, Orphan: d.controllers.Orphan, PermitRepo: d.controllers.PermitRepo, Lookup: d.controllers.Lookup, Logger: cfg.Logger, Now: time.Now, Workers: cfg.Workers,
		PollInterval: cfg.Poll, PollJitter: cfg.Jitter,
	})
	sink.engine = d.engine
	d.controllers.Bind(d.engine)
	if err := d.manage(); err != nil {
		return nil, err
	}
	return d, d.serve(ctx)
}

// manage builds the manager of the control plane's own objects.
func (d *daemon) manage() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register kinds: %w", err)
	}
	typed, err := labels.NewRequirement("argocd.argoproj.io/secret-type", selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("select Secrets: %w", err)
	}
	forgotten, err := labels.NewRequirement(argo.LabelMemory, selection.DoesNotExist, nil)
	if err != nil {
		return fmt.Errorf("select ConfigMaps: %w", err)
	}
	own := map[string]cache.Config{d.cfg.Namespace: {}}
	rc := rest.CopyConfig(d.cfg.REST)
	rc.WarningHandler = rest.NoWarnings{} // they concern how the reference named its finalizers
	rc.QPS = -1                           // the API server's own fairness decides; a client-side limit only adds latency
	d.manager, err = ctrl.NewManager(rc, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		LeaderElection: d.cfg.LeaderElect, LeaderElectionID: "rutter", LeaderElectionNamespace: d.cfg.Namespace,
		LeaderElectionReleaseOnCancel: true, Controller: config.Controller{SkipNameValidation: new(true)}, GracefulShutdownTimeout: new(5 * time.Second),
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Application{}: {Transform: argo.Compact},
			&corev1.Secret{}:        {Namespaces: own, Label: labels.NewSelector().Add(*typed)},
			&corev1.ConfigMap{}:     {Namespaces: own, Label: labels.NewSelector().Add(*forgotten)},
		}},
	})
	if err != nil {
		return fmt.Errorf("reach the control plane: %w", err)
	}
	if err := d.controllers.Setup(d.manager); err != nil {
		return fmt.Errorf("set up the controllers: %w", err)
	}
	return d.manager.Add(manager.RunnableFunc(d.runEngine))
}

// runEngine starts the engine once everything declared is known to it.
func (d *daemon) runEngine(ctx context.Context) error {
	if err := d.controllers.Prime(ctx); err != nil {
		return err
	}
	d.started.Store(true)
	d.cfg.Logger.Info("engine started", "units", len(d.engine.Reports()))
	d.engine.Run(ctx)
	return nil
}

// serve adds the HTTP side.
func (d *daemon) serve(ctx context.Context) error {
	own := prometheus.NewRegistry()
	own.MustRegister(d.collector())
	secrets := &webhookSecrets{reader: d.manager.GetAPIReader(), namespace: d.cfg.Namespace, ctx: ctx}
	server, err := httpapi.Listen(ctx, httpapi.Options{
		Addr: d.cfg.HTTPAddr, Logger: d.cfg.Logger, AllowUnsigned: d.cfg.AllowUnsigned, Profiling: d.cfg.Profiling,
		Metrics: promhttp.HandlerFor(prometheus.Gatherers{ctrlmetrics.Registry, own}, promhttp.HandlerOpts{}),
		Ready:   d.ready, Units: d.engine.Reports, Secrets: secrets.get,
		Pushed: d.pushed, Pulled: d.pulled,
	})
	if err != nil {
		return fmt.Errorf("open the HTTP side: %w", err)
	}
	if d.cfg.Listening != nil {
		d.cfg.Listening(server.Addr())
	}
	if d.cfg.Reports != nil {
		d.cfg.Reports(d.engine.Reports)
	}
	return d.manager.Add(everywhere{server.Start})
}

func (d *daemon) ready() error {
	if !d.started.Load() {
		return errors.New("the engine has not started: waiting for the control plane's objects, or not the leader")
	}
	return nil
}

// everywhere runs on every replica, leader or not.
type everywhere struct{ start func(context.Context) error }

// Start implements manager.Runnable.
func (e everywhere) Start(ctx context.Context) error { return e.start(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// warnings lets through what is a warning or worse.
type warnings struct{ slog.Handler }

// Enabled implements slog.Handler.
func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (w warnings) WithAttrs(a []slog.Attr) slog.Handler { return warnings{w.Handler.WithAttrs(a)} }

// WithGroup implements slog.Handler.
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
