// Package testenv gives tests real API servers. A test asks for a shared
// cluster of a shape and gets a namespace of its own on it, or for a cluster
// of its own.
//
// Shared clusters are started once for a whole test run where the environment
// names a folder in RUTTER_TESTENV_DIR (make test does, and deletes the
// clusters in it at the end; a cluster whose folder is removed ends too);
// otherwise once for each test process, which they die with.
package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rutterhq/rutter/internal/local"
)

// Env is one cluster as a test sees it.
type Env struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	// Cluster is set for a cluster of the test's own.
	Cluster *local.Cluster
	rest    *rest.Config
}

// Hub returns the shared cluster that is an API server without workloads.
func Hub(t testing.TB) *Env { t.Helper(); return shared(t, local.Hub) }

// Full returns the shared cluster with controllers, scheduler and a node.
func Full(t testing.TB) *Env { t.Helper(); return shared(t, local.Full) }

// Own starts a cluster for this test alone; it ends with the test.
func Own(t testing.TB, opts local.Options) *Env {
	t.Helper()
	if opts.Name == "" {
		opts.Name = "own"
	}
	c, err := local.Start(t.Context(), opts)
	if err != nil {
		t.Fatalf("start a cluster for the test: %v", err)
	}
	t.Cleanup(func() { _ = c.Stop(context.Background()) }) // the test's context has ended by then
	return open(t, c.Kubeconfig, c)
}

// RESTConfig reaches the cluster as its administrator.
func (e *Env) RESTConfig() *rest.Config { return rest.CopyConfig(e.rest) }

// Client is a typed client.
func (e *Env) Client(t testing.TB) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(e.rest)
	if err != nil {
		t.Fatalf("build a client: %v", err)
	}
	return c
}

// Namespace makes a namespace for this test; its removal is not waited for.
func (e *Env) Namespace(t testing.TB) string {
	t.Helper()
	c := e.Client(t)
	ns, err := c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "t-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	t.Cleanup(func() {
		_ = c.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{}) // best effort: the cluster is thrown away
	})
	return ns.Name
}

// Eventually calls ok until it returns nil, and fails the test with its last
// error when that takes longer than timeout.
func Eventually(t testing.TB, timeout time.Duration, ok func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %v", timeout, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func open(t testing.TB, kubeconfig string, c *local.Cluster) *Env {
	t.Helper()
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatalf("read the kubeconfig: %v", err)
	}
	rc.QPS = -1
	return &Env{Kubeconfig: kubeconfig, Cluster: c, rest: rc}
}

var (
	mu      sync.Mutex
	started = map[local.Shape]string{} // kubeconfigs of this process's shared clusters
)

func shared(t testing.TB, shape local.Shape) *Env {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	kubeconfig, ok := started[shape]
	if !ok {
		var err error
		if root := os.Getenv("RUTTER_TESTENV_DIR"); root != "" {
			kubeconfig, err = sharedByRun(root, shape)
		} else {
			var c *local.Cluster
			c, err = local.Start(context.Background(), local.Options{Name: "shared-" + string(shape), Shape: shape}) // lives as long as the process
			if err == nil {
				kubeconfig = c.Kubeconfig
			}
		}
		if err != nil {
			t.Fatalf("start the shared %s cluster: %v", shape, err)
		}
		started[shape] = kubeconfig
	}
	return open(t, kubeconfig, nil)
}

// sharedByRun starts the cluster of a shape once for all processes of a run;
// a lock on a file makes the others wait for the one that starts it.
func sharedByRun(root string, shape local.Shape) (string, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", fmt.Errorf("make the run's folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(root, string(shape)+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the lock: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock: %w", err)
	}
	name := "shared-" + string(shape)
	running, err := local.List(root)
	if err != nil {
		return "", fmt.Errorf("list the run's clusters: %w", err)
	}
	for _, m := range running {
		switch {
		case m.Name != name || !m.Running:
		case m.Server != "":
			return m.Kubeconfig, nil
		default: // the test process that waited for it was killed
			if err := local.Delete(context.Background(), root, name); err != nil {
				return "", fmt.Errorf("remove a cluster that nobody waited for: %w", err)
			}
		}
	}
	m, err := local.Create(context.Background(), root, name, local.Options{Shape: shape})
	if err != nil {
		return "", fmt.Errorf("start it: %w", err)
	}
	return m.Kubeconfig, nil
}
