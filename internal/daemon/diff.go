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
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/engine"
	"github.com/rutterhq/rutter/internal/policy"
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
	unit, _ := argo.ToUnit(&app, argo.Config{Namespace: cfg.Namespace}, func(name string) (*v1alpha1.AppProject, bool) {
		var p v1alpha1.AppProject
		err := c.Get(ctx, client.ObjectKey{Namespace: cfg.Namespace, Name: name}, &p)
		return &p, err == nil
	})
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
	settled   chan struct{}
}

func newObserver(ctx context.Context, c client.Client, cfg DiffConfig, dir string) (*observer, error) {
	o := &observer{settled: make(chan struct{}, 1)}
	logger := slog.New(slog.DiscardHandler)
	var from rutter.Sources
	var err error
	if o.rendering, from, err = openRendering(renderingConfig{plugins: cfg.Plugins, sourceConfig: sourceConfig{dir: dir, submodules: true, logger: logger}}); err != nil {
		return nil, err
	}
	sink := &lateSink{}
	o.clusters = cluster.New(cluster.Options{Logger: logger, Sink: sink})
	if err := errors.Join(o.clusters.SetLocal(cfg.REST), declareClusters(ctx, c, cfg.Namespace, o.clusters),
		o.rendering.declare(ctx, c, cfg.Namespace, logger)); err != nil {
		return nil, err
	}
	o.engine = engine.New(engine.Options{Sources: from, Renderer: o.rendering.renderer, Clusters: o.clusters, Logger: logger, Now: time.Now, Workers: 1,
		Changed: func(rutter.UnitID, bool) {
			select {
			case o.settled <- struct{}{}:
			default:
			}
		},
		Permit:     func(rutter.Unit, rutter.ClusterInfo, rutter.Ref, bool) error { return nil },
		PermitRepo: permitRepo(ctx, c, cfg.Namespace),
	})
	sink.engine = o.engine
	return o, nil
}

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

// permitRepo asks the projects of a control plane.
func permitRepo(ctx context.Context, c client.Client, namespace string) func(string, rutter.Repo) error {
	return func(project string, repo rutter.Repo) error {
		var p v1alpha1.AppProject
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: project}, &p)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read project %q: %w", project, err)
		}
		if err != nil {
			return nil //nolint:nilerr // the unit itself says that its project is missing
		}
		return policy.CheckSource(&p, repo.URL) // it says which rule
	}
}

// observe returns the unit's report once everything has been compared.
func (o *observer) observe(ctx context.Context, unit rutter.Unit) (rutter.Report, error) {
	run, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	o.engine.Upsert(unit)
	go func() { o.engine.Run(run); close(done) }()
	defer func() { stop(); <-done }()
	for {
		select {
		case <-o.settled:
			report, ok := o.engine.Report(unit.ID)
			if ok && o.engine.Settled(unit.ID) {
				return report, nil
			}
		case <-ctx.Done():
			return rutter.Report{}, rutter.Errorf(rutter.CodeUnavailable, "the comparison did not end: %w", ctx.Err())
		}
	}
}

func (o *observer) close() {
	o.clusters.Close()
	_ = o.rendering.Close() // temporary
}
