package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/local"
)

func state(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, name, "cluster.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestState: what a crash or a restart of the machine left is not taken for a cluster.
func TestState(t *testing.T) {
	root := t.TempDir()
	state(t, root, "reused", `{"name":"reused","pid":1,"started":7,"shape":"hub","kubeconfig":"/none"}`)
	state(t, root, "damaged", `{"name":`)
	if err := os.MkdirAll(filepath.Join(root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	all, err := local.List(root)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(root, "damaged")) {
		t.Errorf("the damaged state must be named: %v", err)
	}
	if len(all) != 1 || all[0].Name != "reused" || all[0].Running {
		t.Errorf("the number of its process belongs to somebody else now: %+v", all)
	}
	if _, err := local.Kubeconfig(root, "reused"); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a kubeconfig that was never written: %v", err)
	}
	for _, name := range []string{"empty", "nothing"} {
		if err := local.Delete(t.Context(), root, name); rutter.CodeOf(err) != rutter.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := local.Delete(t.Context(), root, "reused"); err != nil {
		t.Errorf("a cluster that is gone can be deleted, and the process with its number lives: %v", err)
	}
	if none, err := local.List(filepath.Join(root, "nowhere")); err != nil || none != nil {
		t.Errorf("%v, %v", none, err)
	}
}

// TestRefused: what is wrong is said at once, and leaves nothing behind.
func TestRefused(t *testing.T) {
	root := t.TempDir()
	for _, tc := range []struct {
		opts local.Options
		code rutter.Code
		want string
	}{
		{local.Options{Shape: "round"}, rutter.CodeInvalid, "round"},
		{local.Options{Nodes: -1}, rutter.CodeInvalid, "-1"},
		{local.Options{KubeVersion: "latest", Shape: local.Hub}, rutter.CodeUnavailable, "--kube-version"},
	} {
		if _, err := local.Create(t.Context(), root, "c", tc.opts); rutter.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("create with %+v: %v", tc.opts, err)
		}
		// The folder of an ephemeral cluster goes with it; what it said must not.
		if _, err := local.Start(t.Context(), tc.opts); rutter.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("start with %+v: %v", tc.opts, err)
		}
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
