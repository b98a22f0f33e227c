package kustomize_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

const commit = "0123456789012345678901234567890123456789"

// world is what is elsewhere: repositories and files by URL@revision.
type world struct {
	repos map[string]map[string]string
	mu    sync.Mutex
	asked []rutter.Repo
}

func (w *world) fetch(_ context.Context, repo rutter.Repo) (rutter.Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, repo)
	if strings.Contains(repo.URL, "forbidden") {
		return nil, rutter.Errorf(rutter.CodeForbidden, "project %s does not allow %s", repo.Project, repo.URL)
	}
	key := repo.URL + "@" + repo.Revision
	if repo.File {
		key = "file " + repo.URL
	}
	files, ok := w.repos[key]
	if !ok {
		return nil, rutter.Errorf(rutter.CodeNotFound, "repository %s not found", repo.Key())
	}
	return rendertest.Snapshot(files), nil
}

func elsewhere() *world {
	return &world{repos: map[string]map[string]string{
		"https://github.com/org/repo@" + commit: {
			"base/kustomization.yaml":  "resources: [a.yaml, ../more]\nnamePrefix: far-\n",
			"base/a.yaml":              configMap("a"),
			"more/kustomization.yaml":  "resources: [b.yaml]\n",
			"more/b.yaml":              configMap("b"),
			"part/kustomization.yaml":  "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {part: \"1\"}\n",
			"nest/kustomization.yaml":  "resources: ['git@example.com:other/repo//deep?ref=v2', ../base]\n",
			"loop/kustomization.yaml":  "resources: ['https://github.com/org/repo//loop?ref=" + commit + "']\n",
			"leave/kustomization.yaml": "resources: [../../overlay]\n",
			"file/kustomization.yaml":  "configMapGenerator: [{name: x, files: [../../secret.txt]}]\n",
		},
		"https://github.com/org/repo@main":       {"kustomization.yaml": "resources: [m.yaml]\n", "m.yaml": configMap("main")},
		"https://github.com/org/repo@":           {"kustomization.yaml": "resources: [h.yaml]\n", "h.yaml": configMap("head")},
		"git@example.com:other/repo@v2":          {"deep/kustomization.yaml": "resources: [c.yaml]\n", "deep/c.yaml": configMap("c")},
		"https://git.example.com/team/app@":      {"kustomization.yaml": "resources: [t.yaml]\n", "t.yaml": configMap("team")},
		"file https://example.com/x.yaml":        {"x.yaml": configMap("web") + "---\n" + configMap("web2")},
		"file https://example.com/manifest":      {"manifest": configMap("noext")},
		"file https://example.com/a/b/c":         {"c": configMap("path")},
		"file https://example.com/settings.conf": {"settings.conf": "k=v\n"},
		"file https://example.com/patch.yaml":    {"patch.yaml": "- {op: add, path: /metadata/annotations, value: {patched: far}}\n"},
	}}
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
}

// TestElsewhere holds remote bases and files (threat K2): fetched only by the
// sources, recorded, and only what was asked for.
func TestElsewhere(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		names []string
		asked []string
		warn  string
		code  rutter.Code
		says  []string
	}{
		"a base at a commit": {files: kustomization("resources: ['https://github.com/org/repo//base?ref=" + commit + "']"),
			names: []string{"far-a", "far-b"}, asked: []string{"https://github.com/org/repo@" + commit}},
		"beside our own": {files: kustomization("resources:\n- ../base\n- github.com/org/repo/base?ref=" + commit),
			names: []string{"settings-4h2mbtbbt6", "far-a", "far-b", "web", "web"}, asked: []string{"https://github.com/org/repo@" + commit}},
		"a component": {files: kustomization("resources: [../base]\ncomponents: ['https://github.com/org/repo//part?ref=" + commit + "']"),
			names: []string{"settings-4h2mbtbbt6", "web", "web"}},
		"a branch warns": {files: kustomization("resources:\n- github.com/org/repo?ref=main"), names: []string{"main"},
			warn: "overlay/kustomization.yaml:2: resources: github.com/org/repo?ref=main follows main, which may move: pin it"},
		"no ref warns": {files: kustomization("resources:\n\n- github.com/org/repo"), names: []string{"head"},
			warn: "overlay/kustomization.yaml:3: resources: github.com/org/repo names no ref"},
		"a base in a base": {files: kustomization("resources: ['https://github.com/org/repo//nest?ref=" + commit + "']"), names: []string{"c", "far-a", "far-b"},
			asked: []string{"https://github.com/org/repo@" + commit, "git@example.com:other/repo@v2"}},
		"in a base of ours": {files: map[string]string{"base/kustomization.yaml": "resources: ['git@example.com:other/repo//deep?ref=v2']\n"}, names: []string{"c"}},
		"the same twice is fetched once": {files: map[string]string{"overlay/kustomization.yaml": "resources: [one, two]\n",
			"overlay/one/kustomization.yaml": "resources: ['git@example.com:other/repo//deep?ref=v2']\nnamePrefix: one-\n",
			"overlay/two/kustomization.yaml": "resources: ['git@example.com:other/repo//deep?ref=v2']\nnamePrefix: two-\n"},
			names: []string{"one-c", "two-c"}, asked: []string{"git@example.com:other/repo@v2"}},
		"a file":                      {files: kustomization("resources: ['https://example.com/x.yaml']"), names: []string{"web", "web2"}, asked: []string{"file https://example.com/x.yaml"}},
		"a file without an extension": {files: kustomization("resources: ['https://example.com/manifest']"), names: []string{"noext"}, asked: []string{"file https://example.com/manifest"}},
		"a repository first":          {files: kustomization("resources: ['https://git.example.com/team/app']"), names: []string{"team"}, asked: []string{"https://git.example.com/team/app@"}, warn: "names no ref"},
		"then a file": {files: kustomization("resources: ['https://example.com/a/b/c']"), names: []string{"path"},
			asked: []string{"https://example.com/a/b@", "file https://example.com/a/b/c"}},
		"a generator's files": {files: kustomization("configMapGenerator: [{name: x, files: ['https://example.com/settings.conf', 'k=https://example.com/settings.conf']}]\ngeneratorOptions: {disableNameSuffixHash: true}"), names: []string{"x"}},
		"an env file":         {files: kustomization("secretGenerator: [{name: x, envs: ['https://example.com/settings.conf']}]\ngeneratorOptions: {disableNameSuffixHash: true}"), names: []string{"x"}},
		"a patch":             {files: kustomization("resources: [../base]\npatches: [{path: 'https://example.com/patch.yaml', target: {kind: Service}}]"), names: []string{"settings-4h2mbtbbt6", "web", "web"}},

		"one that the project does not allow": {files: kustomization("resources:\n- ../base\n- https://forbidden.example.com/org/repo//x?ref=v1"), code: rutter.CodeForbidden,
			says: []string{"overlay/kustomization.yaml:3", "https://forbidden.example.com/org/repo//x?ref=v1", "project red does not allow"}},
		"one that is not there":       {files: kustomization("resources: ['https://github.com/org/gone?ref=v1']"), code: rutter.CodeNotFound, says: []string{"overlay/kustomization.yaml:1", "https://github.com/org/gone"}},
		"no such folder":              {files: kustomization("resources: ['https://github.com/org/repo//nope?ref=" + commit + "']"), code: rutter.CodeNotFound, says: []string{"no folder nope"}},
		"a password is not shown":     {files: kustomization("resources: ['https://me:hunter2@github.example.com/org/repo?ref=v1']"), code: rutter.CodeNotFound, says: []string{"github.example.com/org/repo", "!hunter2"}},
		"out of what was fetched":     {files: kustomization("resources: ['https://github.com/org/repo//leave?ref=" + commit + "']"), code: rutter.CodeInvalid, says: []string{"https://github.com/org/repo//leave/kustomization.yaml", "leaves the repository"}},
		"a file of ours from there":   {files: kustomization("resources: ['https://github.com/org/repo//file?ref=" + commit + "']"), code: rutter.CodeInvalid, says: []string{"leaves the repository"}},
		"one that goes round":         {files: kustomization("resources: ['https://github.com/org/repo//loop?ref=" + commit + "']"), code: rutter.CodeInvalid, says: []string{"cycle"}},
		"this machine's files":        {files: kustomization("resources: ['file:///srv/git/repo//x']"), code: rutter.CodeForbidden, says: []string{"file:///srv/git/repo"}},
		"an inline text that is none": {files: kustomization("resources: [../base]\ntransformers:\n- |\n  https://example.com/org/repo\n  x: y\n"), code: rutter.CodeInvalid},
	}
	r := kustomize.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := elsewhere()
			dir := "overlay"
			objs, warnings, err := render(t, r, rendertest.With(repository(), tt.files), kustomize.Input{Path: dir, Project: "red"}, record.Options{Fetch: w.fetch})
			if tt.code != "" || err != nil {
				if rutter.CodeOf(err) != tt.code {
					t.Fatalf("want %q, got %q: %v", tt.code, rutter.CodeOf(err), err)
				}
				for _, s := range tt.says {
					no, unwanted := strings.CutPrefix(s, "!")
					if strings.Contains(err.Error(), no) == unwanted {
						t.Errorf("%q: %v", s, err)
					}
				}
				if strings.Contains(err.Error(), "/repo") && strings.Contains(err.Error(), "-v1") {
					t.Errorf("shows where the library sees things: %v", err)
				}
				return
			}
			var names, asked []string
			for _, o := range objs {
				names = append(names, o.GetName())
			}
			slices.Sort(names)
			slices.Sort(tt.names)
			if diff := cmp.Diff(tt.names, names); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			for _, repo := range w.asked {
				if repo.Project != "red" {
					t.Errorf("%s was asked for without the project", repo.URL)
				}
				if repo.File {
					asked = append(asked, "file "+repo.URL)
				} else {
					asked = append(asked, repo.URL+"@"+repo.Revision)
				}
			}
			if diff := cmp.Diff(tt.asked, asked); tt.asked != nil && diff != "" {
				t.Errorf("fetched (-want +got):\n%s", diff)
			}
			if got := strings.Join(warnings, "\n"); (tt.warn == "") != (got == "") || !strings.Contains(got, tt.warn) {
				t.Errorf("warnings %q, want %q", got, tt.warn)
			}
		})
	}
}

// TestElsewhereIsRecorded: what was fetched is an input of the render, and our
// place that named it is the origin of its objects.
func TestElsewhereIsRecorded(t *testing.T) {
	w := elsewhere()
	files := rendertest.With(repository(), kustomization("resources:\n- ../base\n- https://github.com/org/repo//nest?ref="+commit+"\n- https://example.com/x.yaml\nbuildMetadata: [originAnnotations]"))
	snap := rendertest.Snapshot(files)
	repo := record.New(t.Context(), snap, record.Options{Fetch: w.fetch})
	objs, _, err := kustomize.New().Render(t.Context(), kustomize.Input{Repo: repo, Path: "overlay", Project: "red"})
	if err != nil {
		t.Fatal(err)
	}
	remotes := 0
	for _, in := range repo.Inputs() {
		if in.Kind == rutter.InputRemote && in.Hash != "" {
			remotes++
		}
	}
	if remotes != 3 {
		t.Errorf("%d remote inputs: %v", remotes, repo.Inputs())
	}
	got := map[string]string{}
	for _, o := range objs {
		if o.GetKind() == "ConfigMap" {
			got[o.GetName()] = fmt.Sprintf("%s:%d %s", o.Origin.File, o.Origin.Line, strings.ReplaceAll(o.GetAnnotations()["config.kubernetes.io/origin"], "\n", " "))
		}
	}
	want := map[string]string{
		"c":                   "overlay/kustomization.yaml:3 path: deep/c.yaml repo: git@example.com:other/repo ref: v2 ",
		"far-a":               "overlay/kustomization.yaml:3 path: base/a.yaml repo: https://github.com/org/repo ref: \"" + commit + "\" ",
		"far-b":               "overlay/kustomization.yaml:3 path: more/b.yaml repo: https://github.com/org/repo ref: \"" + commit + "\" ",
		"web":                 "overlay/kustomization.yaml:4 path: https:/example.com/x.yaml ",
		"web2":                "overlay/kustomization.yaml:4 path: https:/example.com/x.yaml ",
		"settings-4h2mbtbbt6": "base/kustomization.yaml:4 configuredIn: ../base/kustomization.yaml configuredBy:   apiVersion: builtin   kind: ConfigMapGenerator ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestBroughtInOnce: what has to be built twice to know its origins is fetched and
// inflated once.
func TestBroughtInOnce(t *testing.T) {
	w := elsewhere()
	inflations := 0
	files := map[string]string{
		"overlay/kustomization.yaml":     "resources: [one, two, 'git@example.com:other/repo//deep?ref=v2']\nhelmCharts: [{name: app}]\n",
		"overlay/charts/app/Chart.yaml":  "name: app\n",
		"overlay/one/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: one-\n", "overlay/one/a.yaml": configMap("a"),
		"overlay/two/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: two-\n", "overlay/two/a.yaml": "\n" + configMap("a"),
	}
	objs, _, err := render(t, kustomize.New(), files, kustomize.Input{Path: "overlay", Build: rutter.KustomizeBuild{EnableHelm: true},
		Inflate: func(ctx context.Context, c kustomize.Chart) ([]rutter.Object, error) {
			inflations++
			return inflated(ctx, c)
		}}, record.Options{Fetch: w.fetch})
	if err != nil || len(objs) != 5 || len(w.asked) != 1 || inflations != 1 {
		t.Errorf("%d objects, %d fetches, %d inflations, %v", len(objs), len(w.asked), inflations, err)
	}
	for _, o := range objs {
		if o.GetName() == "two-a" && (o.Origin != rutter.Origin{File: "overlay/two/a.yaml", Line: 2}) {
			t.Errorf("origin %v", o.Origin)
		}
	}
}

// TestThreatK2 (remote bases): whatever a kustomization names, nothing but the
// sources goes out: neither kustomize's own HTTP client nor its git is reached.
func TestThreatK2(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer server.Close()
	// A git in the path that tells when it is run.
	bin := t.TempDir()
	sentinel := filepath.Join(bin, "was-run")
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\ntouch "+sentinel+"\nexit 1\n"), 0o755); err != nil { // it must be runnable
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	host := strings.TrimPrefix(server.URL, "http://")
	entries := []string{server.URL + "/x.yaml", server.URL + "/org/repo", server.URL + "/org/repo.git//x?ref=v1", "HTTP://" + host + "/x", " " + server.URL + "/y",
		"git::" + server.URL + "/org/repo", "ssh://" + host + "/org/repo", "git@" + host + ":org/repo", "file://" + bin + "//x", "github.com/org/repo", "gh:org/repo", "http:x"}
	lists := map[string]string{
		"resources": "resources: [%q]", "bases": "bases: [%q]", "components": "resources: [../base]\ncomponents: [%q]",
		"generators": "generators: [%q]", "transformers": "resources: [../base]\ntransformers: [%q]", "validators": "resources: [../base]\nvalidators: [%q]",
		"crds": "resources: [../base]\ncrds: [%q]", "configurations": "resources: [../base]\nconfigurations: [%q]",
		"openapi": "resources: [../base]\nopenapi: {path: %q}", "patchesStrategicMerge": "resources: [../base]\npatchesStrategicMerge: [%q]",
		"patches": "resources: [../base]\npatches: [{path: %q, target: {kind: Service}}]", "patchesJson6902": "resources: [../base]\npatchesJson6902: [{path: %q, target: {kind: Service, version: v1, name: web}}]",
		"replacements": "resources: [../base]\nreplacements: [{path: %q}]", "files": "configMapGenerator: [{name: x, files: [%q]}]", "envs": "secretGenerator: [{name: x, envs: [%q]}]",
		"env":    "secretGenerator: [{name: x, env: %q}]",
		"inline": "resources: [../base]\ntransformers:\n- |\n  %s\n  x: y\n",
		"plugin": "resources: [../base]\ntransformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n  path: %q\n  target: {kind: Service}\n",
	}
	r := kustomize.New()
	for field, text := range lists {
		for _, entry := range entries {
			fetched := 0
			opts := record.Options{Fetch: func(context.Context, rutter.Repo) (rutter.Snapshot, error) {
				fetched++
				return nil, rutter.Errorf(rutter.CodeForbidden, "not allowed")
			}}
			_, _, err := render(t, r, rendertest.With(repository(), kustomization(fmt.Sprintf(text, entry))), kustomize.Input{Path: "overlay"}, opts)
			if err == nil {
				t.Errorf("%s: %s: rendered", field, entry)
			}
		}
	}
	if hits.Load() > 0 {
		t.Errorf("%d requests went out by themselves", hits.Load())
	}
	if _, err := os.Stat(sentinel); err == nil {
		t.Error("git was run")
	}
}
