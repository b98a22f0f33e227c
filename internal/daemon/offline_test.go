package daemon

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

func bareRepository(t *testing.T) string {
	t.Helper()
	work, bare := t.TempDir(), filepath.Join(t.TempDir(), "fleet.git")
	if err := os.WriteFile(filepath.Join(work, "cm.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-C", work, "init", "-q", "-b", "main"}, {"-C", work, "add", "."},
		{"-C", work, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "-m", "one"},
		{"clone", "-q", "--bare", work, bare},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	return bare
}

// left are the temporary files that are there.
func left(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestOfflineLeavesNothing(t *testing.T) {
	const url = "https://git.example.com/fleet.git"
	local := Local{rutter.NormalizeGitURL(url): bareRepository(t)}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	app := &v1alpha1.Application{}
	app.Name, app.Namespace = "web", "argocd"
	app.Spec.Source = &v1alpha1.ApplicationSource{RepoURL: url, Path: ".", TargetRevision: "main"}
	app.Spec.Destination = v1alpha1.ApplicationDestination{Name: "in-cluster", Namespace: "web"}
	m, _, err := RenderApp(t.Context(), RenderConfig{App: app, Local: local, Offline: true})
	if err != nil || len(m.Objects) != 1 {
		t.Fatalf("%d objects, %v", len(m.Objects), err)
	}
	if files := left(t, tmp); len(files) > 0 {
		t.Errorf("rendering left %v", files)
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := local.Snapshot(ctx, rutter.Repo{URL: url, Revision: "nowhere"}, rutter.ResolveOptions{}); err == nil {
		t.Error("a revision that is not there was found")
	}
	if files := left(t, tmp); len(files) > 0 {
		t.Errorf("a failure left %v", files)
	}
	if _, err := local.Snapshot(ctx, rutter.Repo{URL: url, Revision: "main"}, rutter.ResolveOptions{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	for start := time.Now(); len(left(t, tmp)) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > 5*time.Second {
			t.Fatalf("the end of the context left %v", left(t, tmp))
		}
	}
}
