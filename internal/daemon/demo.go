package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/gitserver"
	"github.com/rutterhq/rutter/internal/local"
)

// FleetURL stands in examples/fleet for the repository's own URL.
const FleetURL = "https://example.com/fleet.git"

// members are the demo's clusters with the labels that its generators select by.
var members = []struct {
	name   string
	labels map[string]string
}{
	{"dev", map[string]string{"env": "dev", "tier": "nonprod", "region": "eu-west-1"}},
	{"staging", map[string]string{"env": "staging", "tier": "nonprod", "region": "eu-west-1"}},
	{"production", map[string]string{"env": "production", "tier": "prod", "region": "eu-central-1"}},
}

// DemoConfig is what Demo needs.
type DemoConfig struct {
	Dir            string
	Fleet          fs.FS
	ExitWhenSynced bool
	Timeout        time.Duration
	// Names translates an Application into its row; Show draws the rows.
	Show   func(apps []v1alpha1.Application, servers map[string]string, started time.Time)
	Final  func(apps []v1alpha1.Application, servers map[string]string) error
	Say    func(format string, args ...any)
	Logger *slog.Logger
	// SecretOf makes the Secret that declares a member.
	SecretOf func(namespace, name string, c *local.Cluster) (*corev1.Secret, error)
}

// demo is one running demo.
type demo struct {
	cfg     DemoConfig
	dir     string
	hub     *local.Cluster
	members map[string]*local.Cluster
	git     *gitserver.Server
	secret  string // of the webhook
	// temporary says that the clusters remove their data themselves, even when this
	// process is killed.
	temporary bool
	client    client.WithWatch
	servers   map[string]string // API server → cluster name
	webhook   chan string       // address, once known
}

// Demo runs a fleet on this machine until ctx ends or all is Synced.
func Demo(ctx context.Context, cfg DemoConfig) (err error) {
	d := &demo{cfg: cfg, dir: cfg.Dir, members: map[string]*local.Cluster{}, servers: map[string]string{"https://kubernetes.default.svc": "in-cluster"},
		webhook: make(chan string, 1)}
	if d.dir == "" {
		if d.dir, err = os.MkdirTemp("", "rutter-demo-"); err != nil {
			return fmt.Errorf("make the demo's folder: %w", err)
		}
		d.temporary = true
		defer os.RemoveAll(d.dir)
	}
	if cfg.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, cfg.Timeout, fmt.Errorf("not every application was Synced and Healthy within %s", cfg.Timeout))
		defer cancel()
	}
	started := time.Now()
	defer d.stop(context.WithoutCancel(ctx))
	if err := d.start(ctx); err != nil {
		return d.why(ctx, err)
	}
	if err := d.populate(ctx); err != nil {
		return d.why(ctx, err)
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	g, run := errgroup.WithContext(run)
	g.Go(func() error { return d.controller(run) })
	g.Go(func() error {
		defer stop()
		return d.follow(run, started)
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// why prefers the reason for which everything was stopped to what was stopped by it.
func (d *demo) why(ctx context.Context, err error) error {
	if cause := d.ended(ctx); cause != nil {
		return cause
	}
	return err
}

// start starts the control plane, the members and the Git server side by side.
func (d *demo) start(ctx context.Context) error {
	d.cfg.Say("starting a control plane, %d clusters and a Git server …", len(members))
	g, ctx := errgroup.WithContext(ctx)
	clusters := make([]*local.Cluster, len(members)+1)
	g.Go(func() (err error) {
		clusters[0], err = local.Start(context.WithoutCancel(ctx), local.Options{Name: "controlplane", Dir: filepath.Join(d.dir, "controlplane"), Shape: local.Hub, Ephemeral: d.temporary})
		return err
	})
	for i, m := range members {
		g.Go(func() (err error) {
			clusters[i+1], err = local.Start(context.WithoutCancel(ctx), local.Options{Name: m.name, Dir: filepath.Join(d.dir, m.name), Shape: local.Full, Ephemeral: d.temporary})
			return err
		})
	}
	g.Go(func() error { return d.startGit(ctx) })
	err := g.Wait()
	d.hub = clusters[0]
	for i, m := range members {
		if c := clusters[i+1]; c != nil {
			d.members[m.name] = c
			d.servers[c.Server] = m.name
		}
	}
	if err != nil {
		return fmt.Errorf("start the demo: %w", err)
	}
	return nil
}

// startGit serves the example repository, with its placeholder replaced by the
// URL under which it is served.
func (d *demo) startGit(ctx context.Context) error {
	var token [16]byte
	if _, err := rand.Read(token[:]); err != nil {
		return fmt.Errorf("make the webhook's secret: %w", err)
	}
	d.secret = hex.EncodeToString(token[:])
	root := filepath.Join(d.dir, "git")
	var err error
	d.git, err = gitserver.Start(context.WithoutCancel(ctx), gitserver.Options{Dir: root, Addr: "127.0.0.1:0", Logger: d.cfg.Logger, OnPush: d.pushed})
	if err != nil {
		return fmt.Errorf("start the Git server: %w", err)
	}
	src := filepath.Join(d.dir, "fleet-source")
	if err := copyFleet(d.cfg.Fleet, src, d.cloneURL()); err != nil {
		return err
	}
	defer os.RemoveAll(src)
	bare := filepath.Join(root, "fleet.git")
	if _, err := os.Stat(bare); err == nil {
		return nil // kept from an earlier run
	}
	if err := gitserver.Init(ctx, bare); err != nil {
		return fmt.Errorf("make the repository: %w", err)
	}
	if err := gitserver.ImportDir(ctx, bare, src, "main", "the fleet as it begins"); err != nil {
		return fmt.Errorf("make the first commit: %w", err)
	}
	return nil
}

func (d *demo) cloneURL() string { return d.git.URL() + "/fleet.git" }

// copyFleet writes the example to a folder.
func copyFleet(fleet fs.FS, dir, url string) error {
	return fs.WalkDir(fleet, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fleet, p)
		if err != nil {
			return fmt.Errorf("read %s: %w", p, err)
		}
		to := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return fmt.Errorf("make a folder: %w", err)
		}
		if err := os.WriteFile(to, []byte(strings.ReplaceAll(string(data), FleetURL, url)), 0o600); err != nil {
			return fmt.Errorf("write %s: %w", to, err)
		}
		return nil
	})
}

// populate installs the CRDs, declares the members, and creates the root Application.
func (d *demo) populate(ctx context.Context) error {
	rc, err := d.hub.RESTConfig()
	if err != nil {
		return err
	}
	const namespace = "argocd"
	if err := Install(ctx, rc, namespace); err != nil {
		return err
	}
	if d.client, err = NewClient(rc); err != nil {
		return err
	}
	objects := []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "argocd-secret"},
		StringData: map[string]string{"webhook.github.secret": d.secret}}}
	for _, m := range members {
		secret, err := d.cfg.SecretOf(namespace, m.name, d.members[m.name])
		if err != nil {
			return fmt.Errorf("declare cluster %s: %w", m.name, err)
		}
		maps.Copy(secret.Labels, m.labels)
		objects = append(objects, secret)
	}
	objects = append(objects, rootApplication(namespace, d.cloneURL()))
	for _, o := range objects {
		if err := d.client.Create(ctx, o, fieldOwner); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("create %s: %w", o.GetName(), err)
		}
	}
	return nil
}

// rootApplication is the one Application that a person creates: everything else
// is declared in the repository.
func rootApplication(namespace, url string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "fleet"},
		Spec: v1alpha1.ApplicationSpec{
			Source:      &v1alpha1.ApplicationSource{RepoURL: url, Path: "root", TargetRevision: "main", Directory: &v1alpha1.ApplicationSourceDirectory{Recurse: true}},
			Destination: v1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: namespace},
			SyncPolicy:  &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true}},
		},
	}
}

func (d *demo) controller(ctx context.Context) error {
	rc, err := d.hub.RESTConfig()
	if err != nil {
		return err
	}
	return Run(ctx, Config{REST: rc, DataDir: filepath.Join(d.dir, "data"), Poll: 3 * time.Minute, Jitter: time.Minute, Logger: d.cfg.Logger,
		Listening: func(addr string) { d.webhook <- addr }})
}

// stop ends everything that was started, clusters side by side.
func (d *demo) stop(ctx context.Context) {
	if d.git != nil {
		d.git.Close()
	}
	var g errgroup.Group
	for _, c := range d.members {
		g.Go(func() error { return c.Stop(ctx) })
	}
	if d.hub != nil {
		g.Go(func() error { return d.hub.Stop(ctx) })
	}
	if err := g.Wait(); err != nil {
		d.cfg.Say("cannot stop everything: %v", err)
	}
}
