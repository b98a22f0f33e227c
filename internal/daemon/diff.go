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
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/source/git"
)

// DiffConfig is what Diff needs.
type DiffConfig struct {
	REST      *rest.Config
	Namespace string
	App       client.ObjectKey
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
	engine   *engine.Engine
	clusters *cluster.Registry
	sources  *git.Fetcher
	settled  chan struct{}
}

func newObserver(ctx context.Context, c client.Client, cfg DiffConfig, dir string) (*observer, error) {
	o := &observer{settled: make(chan struct{}, 1)}
	logger := slog.New(slog.DiscardHandler)
	var err error
	if o.sources, err = git.New(git.Options{Dir: dir}); err != nil {
		return nil, fmt.Errorf("open the mirror: %w", err)
	}
	r := render.New(render.Options{Logger: logger})
	sink := &lateSink{}
	o.clusters = cluster.New(cluster.Options{Logger: logger, Sink: sink})
	if err := errors.Join(o.clusters.SetLocal(cfg.REST), o.declare(ctx, c, cfg.Namespace)); err != nil {
		return nil, err
	}
	o.engine = engine.New(engine.Options{Sources: o.sources, Renderer: r, Clusters: o.clusters, Logger: logger, Now: time.Now, Workers: 1,
		Changed: func(rutter.UnitID, bool) {
			select {
			case o.settled <- struct{}{}:
			default:
			}
		},
		Permit: func(rutter.Unit, rutter.ClusterInfo, rutter.Ref, bool) error { return nil },
	})
	sink.engine = o.engine
	return o, nil
}

// declare reads members and credentials from the control plane.
func (o *observer) declare(ctx context.Context, c client.Client, namespace string) error {
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(namespace), client.HasLabels{"argocd.argoproj.io/secret-type"}); err != nil {
		return fmt.Errorf("list Secrets of clusters and repositories: %w", err)
	}
	var creds []rutter.RepoCredential
	for i := range secrets.Items {
		s := &secrets.Items[i]
		switch s.Labels["argocd.argoproj.io/secret-type"] {
		case "cluster":
			info, cred, err := argo.ParseCluster(s, nil)
			if err == nil {
				err = o.clusters.Set(info, cred)
			}
			if err != nil && info.Server != "" {
				o.clusters.SetBroken(info, err)
			}
		case "repository", "repo-creds":
			if cred, err := argo.ParseRepository(s); err == nil {
				creds = append(creds, cred)
			}
		}
	}
	o.sources.SetCredentials(creds, rutter.RepoTrust{})
	return nil
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
	_ = o.sources.Close() // temporary
}
