package kustomizeparity

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// counts is what a set of trees came to.
type counts struct {
	mu              sync.Mutex
	equal, failBoth int
}

func (c *counts) add(n *int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*n++
}

// TestParity compares every tree. (Scenario: kustomize output equals kustomize build's.)
func TestParity(t *testing.T) {
	k := tool{bin: kustomizeBinary(t), helm: helmBinary(t)}
	r := kustomize.New()
	var ours, modules counts
	mined, skipped := minedTrees(t)
	t.Run("trees", func(t *testing.T) {
		for _, one := range ourTrees(t) {
			t.Run("ours/"+one.name, func(t *testing.T) { t.Parallel(); compare(t, k, r, one, &ours) })
		}
		for _, one := range mined {
			t.Run("kustomize/"+one.name, func(t *testing.T) { t.Parallel(); compare(t, k, r, one, &modules) })
		}
		for _, one := range moduleTrees(t) {
			t.Run("module/"+one.name, func(t *testing.T) { t.Parallel(); compareFolder(t, k, r, one, &modules) })
		}
	})
	fmt.Printf("kustomize parity: %d of ours, %d of the module cache, %d fail in both (%d of ours); %d tests of kustomize hold no tree that can be read\n",
		ours.equal, modules.equal, ours.failBoth+modules.failBoth, ours.failBoth, skipped)
	if ours.equal+ours.failBoth < 60 {
		t.Errorf("only %d trees of ours", ours.equal+ours.failBoth)
	}
}

// compare renders one tree by both.
func compare(t *testing.T, k tool, r *kustomize.Renderer, one tree, c *counts) {
	t.Helper()
	want, wantErr := objectsOf(k.build(write(t, one.files), one.build, one.opts))
	got, gotErr := render(t, k, r, rendertest.Snapshot(one.files), one)
	judge(t, one, want, wantErr, got, gotErr, c)
}

// compareFolder does so for a folder of a module.
func compareFolder(t *testing.T, k tool, r *kustomize.Renderer, one folder, c *counts) {
	t.Helper()
	snap, err := osdir.Open(one.root)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	want, wantErr := objectsOf(k.build(one.root, one.build, treeOptions{}))
	got, gotErr := render(t, k, r, snap, tree{build: one.build})
	judge(t, tree{name: one.name}, want, wantErr, got, gotErr, c)
}

func render(t *testing.T, k tool, r *kustomize.Renderer, snap rutter.Snapshot, one tree) ([]any, error) {
	t.Helper()
	objs, _, err := r.Render(t.Context(), kustomize.Input{
		Repo: record.New(t.Context(), snap, record.Options{}), Path: one.build, Options: one.opts.Options, Build: one.opts.Build,
		Inflate: inflate(t, k), Env: buildenv.New(rutter.RenderRequest{Snapshot: snap, Instance: "web", Project: "team"}),
	})
	return plain(objs), err
}

func plain(objs []rutter.Object) []any {
	out := []any{}
	for _, o := range objs {
		out = append(out, o.Object)
	}
	return out
}

// objectsOf reads what kustomize has printed.
func objectsOf(stdout []byte, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	objs, err := parse(stdout)
	return plain(objs), err
}

func judge(t *testing.T, one tree, want []any, wantErr error, got []any, gotErr error, c *counts) {
	t.Helper()
	if testing.Verbose() && os.Getenv("SHOW_ERRORS") != "" {
		t.Logf("kustomize: %v\nrutter: %v", wantErr, gotErr)
	}
	switch {
	case wantErr != nil && gotErr != nil:
		if one.strict && !one.opts.Fails && !strings.HasPrefix(one.name, "fail-") {
			t.Errorf("nobody renders it: %v", wantErr)
		}
		c.add(&c.failBoth)
	case wantErr != nil:
		t.Errorf("kustomize refuses it, Rutter renders %d objects: %v", len(got), wantErr)
	case gotErr != nil:
		t.Errorf("kustomize renders %d objects, Rutter refuses: %v", len(want), gotErr)
	default:
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("objects (-kustomize +rutter):\n%s", diff)
			return
		}
		c.add(&c.equal)
	}
}
