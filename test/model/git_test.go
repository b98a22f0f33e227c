package model

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// thing is one declared object.
type thing struct {
	Kind  rutter.GVK
	Name  string
	Run   string // its content
	Wave  int
	Phase rutter.Phase // of a hook; Sync and not Hook for the rest
	Hook  bool
	Bad   bool
}

func (x thing) ref() rutter.Ref {
	return rutter.Ref{Group: x.Kind.Group, Kind: x.Kind.Kind, Namespace: "ns", Name: x.Name}
}

func (x thing) object() *unstructured.Unstructured {
	annotations := map[string]any{"argocd.argoproj.io/sync-wave": strconv.Itoa(x.Wave)}
	if x.Hook {
		annotations["argocd.argoproj.io/hook"] = string(x.Phase)
	}
	if x.Bad {
		annotations["bad"] = "true"
	}
	api := x.Kind.Version
	if x.Kind.Group != "" {
		api = x.Kind.Group + "/" + api
	}
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": api, "kind": x.Kind.Kind,
		"metadata": map[string]any{"name": x.Name, "annotations": annotations}, "spec": map[string]any{"run": x.Run}}}
	if x.Kind == deployments {
		_ = unstructured.SetNestedField(o.Object, int64(1), "spec", "replicas")
	}
	return o
}

// commit is one state of the repository.
type commit []thing

func (c commit) find(ref rutter.Ref) (thing, bool) {
	for _, x := range c {
		if x.ref() == ref {
			return x, true
		}
	}
	return thing{}, false
}

// git is a repository whose commits are numbered, and its renderer.
type git struct {
	mu      sync.Mutex
	commits []commit
	pushed  []time.Time
}

// since is how long ago a commit was pushed.
func (g *git) since(n int) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.pushed[n])
}

func (g *git) push(c commit) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commits, g.pushed = append(g.commits, c), append(g.pushed, time.Now())
	return len(g.commits) - 1
}

func (g *git) head() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.commits) - 1
}

func (g *git) at(n int) commit {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commits[n]
}

type snapshot struct {
	fs.FS
	n int
}

func (s snapshot) Revision() string                              { return fmt.Sprintf("%040d", s.n) }
func (s snapshot) Hash(rutter.InputKind, string) (string, error) { return s.Revision(), nil }
func (s snapshot) ReadFile(string) ([]byte, error)               { return nil, fs.ErrNotExist }
func (s snapshot) ReadDir(string) ([]fs.DirEntry, error)         { return nil, fs.ErrNotExist }
func (s snapshot) Stat(string) (fs.FileInfo, error)              { return nil, fs.ErrNotExist }

func (g *git) Snapshot(context.Context, rutter.Repo, rutter.ResolveOptions) (rutter.Snapshot, error) {
	return snapshot{n: g.head()}, nil
}

func (g *git) Render(_ context.Context, req rutter.RenderRequest) (rutter.RenderResult, error) {
	m, err := g.Load(req.Snapshot.Revision())
	return rutter.RenderResult{Manifests: m}, err
}

func (g *git) Load(digest string) (rutter.Manifests, error) {
	n, err := strconv.Atoi(digest)
	if err != nil {
		return rutter.Manifests{}, rutter.Errorf(rutter.CodeNotFound, "no such digest")
	}
	m := rutter.Manifests{Digest: digest, SourceType: "Directory"}
	for _, x := range g.at(n) {
		m.Objects = append(m.Objects, rutter.Object{Unstructured: x.object()})
	}
	return m, nil
}
