package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cluster"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/engine"
	"github.com/rutterhq/rutter/internal/health"
)

// DiffConfig is what Diff needs.
type DiffConfig struct {
	REST      *rest.Config
	Namespace string
	App       client.ObjectKey
	// Plugins is a folder of ConfigManagementPlugin files.
	Plugins string
}

// diffTimeout bounds a comparison that never settles, as with a cluster that hangs.
const diffTimeout = 2 * time.Minute

// Diff compares one Application with its cluster, by the engine itself in this
// process, with every automated action off: it renders, watches, and asks the
// server what a sync would change, and sends nothing.
func Diff(ctx context.Context, cfg DiffConfig) (rutter.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	c, err := NewClient(cfg.REST)
	if err != nil {
		return rutter.Report{}, err
	}
	var app v1alpha1.Application
	if err := c.Get(ctx, cfg.App, &app); err != nil {
		return rutter.Report{}, fmt.Errorf("read application %q in namespace %q: %w", cfg.App.Name, cfg.App.Namespace, err)
	}
	app.Spec.SyncPolicy = withoutAutomation(app.Spec.SyncPolicy)
	projects, err := readProjects(ctx, c, cfg.Namespace)
	if err != nil {
		return rutter.Report{}, err
	}
	tracking, err := readTracking(ctx, c, cfg.Namespace)
	if err != nil {
		return rutter.Report{}, err
	}
	unit, _ := argo.ToUnit(&app, argo.Config{Namespace: cfg.Namespace, Tracking: tracking}, projects)
	tmp, err := os.MkdirTemp("", "rutter-diff-")
	if err != nil {
		return rutter.Report{}, fmt.Errorf("make a folder for the mirror: %w", err)
	}
	defer os.RemoveAll(tmp)
	o, err := newObserver(ctx, c, cfg, tmp)
	if err != nil {
		return rutter.Report{}, err
	}
	defer o.close()
	return o.observe(ctx, unit)
}

func withoutAutomation(p *v1alpha1.SyncPolicy) *v1alpha1.SyncPolicy {
	if p == nil {
		return nil
	}
	q := p.DeepCopy()
	q.Automated = nil
	return q
}

// observer is an engine that only looks.
type observer struct {
	engine    *engine.Engine
	clusters  *cluster.Registry
	rendering *rendering
	sources   rutter.Sources
	// identity is the user with whose rights a unit's cluster is asked.
	identity func(rutter.Unit, rutter.ClusterInfo) (string, error)
	settled  chan struct{}
}

func newObserver(ctx context.Context, c client.Client, cfg DiffConfig, dir string) (*observer, error) {
	o := &observer{settled: make(chan struct{}, 1)}
	logger := slog.New(slog.DiscardHandler)
	var from rutter.Sources
	var err error
	if o.rendering, from, err = openRendering(renderingConfig{plugins: cfg.Plugins, sourceConfig: sourceConfig{dir: dir, submodules: true, logger: logger}}); err != nil {
		return nil, err
	}
	if err := o.rendering.declare(ctx, c, cfg.Namespace, logger); err != nil {
		return nil, err
	}
	return o, o.open(ctx, c, cfg.REST, cfg.Namespace, from, o.rendering.renderer)
}

// open builds the engine, with the members of a control plane.
func (o *observer) open(ctx context.Context, c client.Client, rc *rest.Config, namespace string, from rutter.Sources, renderer rutter.Renderer) error {
	logger := slog.New(slog.DiscardHandler)
	o.sources = from
	sink := &lateSink{}
	o.clusters = cluster.New(cluster.Options{Logger: logger, Sink: sink})
	if err := errors.Join(o.clusters.SetLocal(rc), declareClusters(ctx, c, namespace, o.clusters)); err != nil {
		return err
	}
	projects, err := readProjects(ctx, c, namespace)
	if err != nil {
		return err
	}
	identities, err := readIdentities(ctx, c, namespace)
	if err != nil {
		return err
	}
	o.identity = func(unit rutter.Unit, cluster rutter.ClusterInfo) (string, error) {
		return argo.Identity(unit, cluster, projects, identities)
	}
	signers, err := readSigners(ctx, c, namespace)
	if err != nil {
		return err
	}
	types, err := compare.NewTypes(nil)
	if err != nil {
		return err
	}
	o.engine = engine.New(engine.Options{Types: types, Sources: from, Renderer: renderer, Clusters: o.clusters, Logger: logger, Now: time.Now, Workers: observerWorkers,
		Changed: func(rutter.UnitID, bool) {
			select {
			case o.settled <- struct{}{}:
			default:
			}
		},
		Permit: permitObject(projects), Identity: o.identity, PermitRepo: permitRepo(projects),
		Verify: func(unit rutter.Unit, source rutter.Source, snap rutter.Snapshot) error {
			return argo.Verify(unit, source, snap, projects, signers, time.Now())
		},
	})
	sink.engine = o.engine
	return declareComparing(ctx, c, namespace, o.engine)
}

// declareComparing reads what argocd-cm sets for all comparisons.
func declareComparing(ctx context.Context, c client.Client, namespace string, e *engine.Engine) error {
	var cm corev1.ConfigMap
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argo.ConfigMapName}, &cm)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", argo.ConfigMapName, err)
	}
	settings, _ := argo.ParseComparison(&cm) // the controller warns of what cannot be read
	scripts, _ := argo.ParseHealthScripts(&cm)
	exprs, _ := argo.ParseHealthExprs(&cm)
	assessor, _ := health.NewAssessor(scripts, exprs)
	e.SetHealth(assessor)
	return e.SetComparing(settings)
}

// observerWorkers are the units that are looked at in parallel.
const observerWorkers = 4

// declareClusters reads the members from the control plane.
func declareClusters(ctx context.Context, c client.Client, namespace string, members *cluster.Registry) error {
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(namespace), client.MatchingLabels{argo.LabelSecretType: argo.SecretTypeCluster}); err != nil {
		return fmt.Errorf("list Secrets of clusters: %w", err)
	}
	for i := range secrets.Items {
		info, cred, err := argo.ParseCluster(&secrets.Items[i], nil)
		if err == nil {
			err = members.Set(info, cred)
		}
		if err != nil && info.Server != "" {
			members.SetBroken(info, err)
		}
	}
	return nil
}

// member is a unit's cluster, asked with the rights that the unit has there.
func (o *observer) member(unit rutter.Unit) (rutter.Cluster, error) {
	member, err := o.clusters.Lookup(unit.Target)
	if err != nil {
		return nil, err
	}
	user, err := o.identity(unit, member.Info())
	if err != nil {
		return nil, err
	}
	return member.As(user), nil
}

// observe returns the unit's report once everything has been compared.
func (o *observer) observe(ctx context.Context, unit rutter.Unit) (rutter.Report, error) {
	report, ok := o.observeAll(ctx, []rutter.Unit{unit})[unit.ID]
	if !ok {
		return report, rutter.Errorf(rutter.CodeUnavailable, "the comparison did not end: %w", context.Cause(ctx))
	}
	return report, nil
}

// observeAll returns the reports of those units that have been compared in full
// before ctx ends.
func (o *observer) observeAll(ctx context.Context, units []rutter.Unit) map[rutter.UnitID]rutter.Report {
	run, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	for _, u := range units {
		o.engine.Upsert(u)
	}
	go func() { o.engine.Run(run); close(done) }()
	defer func() { stop(); <-done }()
	out := make(map[rutter.UnitID]rutter.Report, len(units))
	for {
		for _, u := range units {
			if _, known := out[u.ID]; known || !o.engine.Settled(u.ID) {
				continue
			}
			if report, ok := o.engine.Report(u.ID); ok {
				out[u.ID] = report
			}
		}
		if len(out) == len(units) {
			return out
		}
		select {
		case <-o.settled:
		case <-ctx.Done():
			return out
		}
	}
}

func (o *observer) close() {
	o.clusters.Close()
	_ = o.rendering.Close() // temporary
}
