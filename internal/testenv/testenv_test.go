package testenv_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/testenv"
)

// TestNamespace: each test has a namespace of its own on the shared cluster, and
// it goes with the test.
func TestNamespace(t *testing.T) {
	env := testenv.Hub(t)
	var mine string
	t.Run("inner", func(t *testing.T) {
		mine = env.Namespace(t)
		if other := env.Namespace(t); other == mine {
			t.Errorf("both are %s", other)
		}
	})
	c := testenv.Hub(t).Client(t) // the same cluster
	testenv.Eventually(t, 20*time.Second, func() error {
		got, err := c.CoreV1().Namespaces().Get(t.Context(), mine, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && got.DeletionTimestamp != nil {
			return nil
		}
		return fmt.Errorf("namespace %s is still there: %w", mine, err)
	})
}

const child = "RUTTER_TEST_CHILD_SAYS"

// TestSharedByARun: two test processes of one run, started at the same moment,
// share one cluster, and it outlives them.
func TestSharedByARun(t *testing.T) {
	if file := os.Getenv(child); file != "" {
		if err := os.WriteFile(file, []byte(testenv.Hub(t).RESTConfig().Host), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	root, said := t.TempDir(), t.TempDir()
	t.Cleanup(func() { _ = local.Delete(context.Background(), root, "shared-hub") })
	var processes []*exec.Cmd
	for i := range 2 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSharedByARun$")
		cmd.Env = append(os.Environ(), "RUTTER_TESTENV_DIR="+root, child+"="+filepath.Join(said, fmt.Sprint(i)))
		cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	var hosts []string
	for i, p := range processes {
		if err := p.Wait(); err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		host, err := os.ReadFile(filepath.Join(said, fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, string(host))
	}
	all, err := local.List(root)
	if err != nil || len(all) != 1 || !all[0].Running {
		t.Fatalf("clusters of the run: %+v, %v", all, err)
	}
	if hosts[0] != hosts[1] || hosts[0] != all[0].Server {
		t.Errorf("the processes used %s; the run has %s", strings.Join(hosts, " and "), all[0].Server)
	}
}
