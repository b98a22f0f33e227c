package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/gitserver"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files")

// controlNamespace is where the control plane's own objects are.
const controlNamespace = "argocd"

// TestMain runs the tests, or, where the environment says so, is the
// controller that a test kills.
func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	render.MaybeChild()
	if os.Getenv(envKubeconfig) != "" {
		os.Exit(controllerProcess())
	}
	code := m.Run()
	if started.world != nil {
		started.world.close()
	}
	os.Exit(code)
}

// world is what all tests share: one hub with the controller, one full member
// and one Git server. Everything that a test makes in it has the test's name.
type world struct {
	dir    string
	hub    *cluster
	alpha  *cluster
	git    *gitserver.Server
	gitDir string
	// addr is the HTTP side of the controller.
	addr string

	// ends are called at the end, the last one first.
	ends []func()
	stop context.CancelFunc
	done chan error
}

var started struct {
	sync.Mutex

	world *world
	err   error
}

// start returns the shared world; the first test that asks pays for it.
func start(t *testing.T) *world {
	t.Helper()
	started.Lock()
	defer started.Unlock()
	if started.world == nil && started.err == nil {
		begun := time.Now()
		started.world, started.err = newWorld()
		t.Logf("hub, member, Git server and controller are ready after %s", time.Since(begun).Round(time.Millisecond))
	}
	if started.err != nil {
		t.Fatalf("start the clusters and the controller: %v", started.err)
	}
	return started.world
}

// newWorld starts everything; it lives until the process ends.
func newWorld() (*world, error) {
	ctx, stop := context.WithCancel(context.Background())
	w := &world{stop: stop, done: make(chan error, 1)}
	if err := w.build(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) build(ctx context.Context) error {
	var err error
	if w.dir, err = os.MkdirTemp("", "rutter-e2e-"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	w.gitDir = filepath.Join(w.dir, "git")
	if w.git, err = gitserver.Start(ctx, gitserver.Options{Dir: w.gitDir}); err != nil {
		return fmt.Errorf("start the Git server: %w", err)
	}
	if err := w.startClusters(ctx); err != nil {
		return err
	}
	if err := daemon.Install(ctx, w.hub.rest, controlNamespace); err != nil {
		return fmt.Errorf("install into the hub: %w", err)
	}
	secret, err := cli.ClusterSecret(controlNamespace, "alpha", w.alpha.rest)
	if err != nil {
		return fmt.Errorf("describe the member: %w", err)
	}
	if err := w.hub.client.Create(ctx, secret); err != nil {
		return fmt.Errorf("register the member: %w", err)
	}
	return w.startController(ctx)
}

// startClusters starts the hub and the member at the same time.
func (w *world) startClusters(ctx context.Context) error {
	var wg sync.WaitGroup
	var errHub, errAlpha error
	wg.Go(func() { w.hub, errHub = startCluster(ctx, "hub", local.Hub) })
	wg.Go(func() { w.alpha, errAlpha = startCluster(ctx, "alpha", local.Full) })
	wg.Wait()
	return errors.Join(errHub, errAlpha)
}

// startController runs the controller in this process and waits until it is ready.
func (w *world) startController(ctx context.Context) error {
	logs, err := logOutput()
	if err != nil {
		return err
	}
	bound := make(chan string, 1)
	cfg := daemon.Config{
		REST: w.hub.rest, Namespace: controlNamespace, Namespaces: []string{"tenant-apps*"}, DataDir: filepath.Join(w.dir, "data"),
		Poll: pollEvery, Jitter: time.Second, AllowUnsigned: true, Submodules: true, Plugins: filepath.Join("testdata", "plugins"),
		Logger:    slog.New(slog.NewTextHandler(logs, nil)),
		Listening: func(addr string) { bound <- addr },
	}
	go func() { w.done <- daemon.Run(ctx, cfg) }()
	select {
	case w.addr = <-bound:
	case err := <-w.done:
		return fmt.Errorf("the controller ended: %w", err)
	}
	return awaitReady(ctx, w.addr)
}

// pollEvery is how often Git is asked without a webhook: short enough for a
// test to wait for it, long enough not to do the webhook's work.
const pollEvery = 10 * time.Second

// logOutput is where the controller's log goes: RUTTER_E2E_LOG, or nowhere.
func logOutput() (io.Writer, error) {
	name := os.Getenv("RUTTER_E2E_LOG")
	if name == "" {
		return io.Discard, nil
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return f, nil
}

func (w *world) close() {
	for _, end := range slices.Backward(w.ends) {
		end()
	}
	w.stop()
	if w.addr != "" {
		<-w.done
	}
	for _, c := range []*cluster{w.hub, w.alpha} {
		if c != nil {
			_ = c.process.Stop(context.Background()) // it dies with this process at the latest
		}
	}
	if w.git != nil {
		w.git.Close()
	}
	_ = os.RemoveAll(w.dir)
}

const (
	envKubeconfig = "RUTTER_E2E_KUBECONFIG"
	envData       = "RUTTER_E2E_DATA"
)

// controllerProcess is the controller as a process of its own. It says its
// HTTP address on standard output.
func controllerProcess() int {
	rc, err := clientcmd.BuildConfigFromFlags("", os.Getenv(envKubeconfig))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	rc.QPS = -1
	if err := runController(rc); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runController(rc *rest.Config) error {
	return daemon.Run(context.Background(), daemon.Config{
		REST: rc, Namespace: controlNamespace, DataDir: os.Getenv(envData), Poll: pollEvery, AllowUnsigned: true, HelmLookup: true,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Listening: func(addr string) { fmt.Println(addr) },
	})
}
