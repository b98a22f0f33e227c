package render_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/render/rendertest"
	"github.com/rutterhq/rutter/internal/render/store"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  key: %s\n"

// fleet is a base with two overlays, a chart and a folder.
func fleet() map[string]string {
	return map[string]string{
		"README.md":                     "hello\n",
		"base/kustomization.yaml":       "resources:\n- cm.yaml\n",
		"base/cm.yaml":                  fmt.Sprintf(configMap, "settings", "base"),
		"overlays/a/kustomization.yaml": "resources:\n- ../../base\nnamePrefix: a-\n",
		"overlays/b/kustomization.yaml": "resources:\n- ../../base\nnamePrefix: b-\n",
		"plain/one.yaml":                fmt.Sprintf(configMap, "one", "1"),
		"chart/Chart.yaml":              "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"chart/values.yaml":             "color: blue\n",
		"chart/templates/cm.yaml":       "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  color: {{ .Values.color }}\n  rev: {{ .Values.rev | default \"none\" | quote }}\n",
		"envs/dev.yaml":                 "color: red\n",
		"asking/Chart.yaml":             "apiVersion: v2\nname: asking\nversion: 1.0.0\n",
		"asking/templates/cm.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: asking}\ndata: {version: {{ .Capabilities.KubeVersion.Version }}}\n",
	}
}

func newRenderer(t testing.TB, dir string) *render.Renderer {
	t.Helper()
	s, err := store.Open(dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return render.New(render.Options{Store: s})
}

func request(path string, files map[string]string) rutter.RenderRequest {
	return rutter.RenderRequest{
		Source:   rutter.Source{RepoURL: "https://git.example.com/fleet.git", Path: path, TargetRevision: "main"},
		Snapshot: rendertest.Snapshot(files), AppName: "web", Instance: "web", Project: "default", Namespace: "apps",
		KubeVersion: "v1.37.2",
	}
}

func mustRender(t testing.TB, r *render.Renderer, req rutter.RenderRequest) rutter.RenderResult {
	t.Helper()
	res, err := r.Render(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func names(objs []rutter.Object) []string {
	var out []string
	for _, o := range objs {
		out = append(out, o.Ref().String()+" "+o.Origin.File)
	}
	return out
}

func TestToolDetection(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	for path, want := range map[string]struct {
		tool    string
		objects []string
	}{
		"overlays/a": {"Kustomize", []string{"ConfigMap/a-settings base/cm.yaml"}},
		"chart":      {"Helm", []string{"ConfigMap/web chart/templates/cm.yaml"}},
		"plain":      {"Directory", []string{"ConfigMap/one plain/one.yaml"}},
	} {
		res := mustRender(t, r, request(path, fleet()))
		if res.SourceType != want.tool {
			t.Errorf("%s is rendered by %s, want %s", path, res.SourceType, want.tool)
		}
		if diff := cmp.Diff(want.objects, names(res.Objects)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

func TestExplicitToolAndOverrides(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	t.Run("an explicit directory block reads a kustomization's folder as plain files", func(t *testing.T) {
		req := request("base", fleet())
		req.Source.Directory = &rutter.DirectoryOptions{Exclude: "kustomization.yaml"}
		if res := mustRender(t, r, req); res.SourceType != "Directory" {
			t.Errorf("rendered by %s", res.SourceType)
		}
	})
	t.Run("an empty block decides nothing", func(t *testing.T) {
		req := request("chart", fleet())
		req.Source.Kustomize = &rutter.KustomizeOptions{}
		if res := mustRender(t, r, req); res.SourceType != "Helm" {
			t.Errorf("rendered by %s", res.SourceType)
		}
	})
	t.Run("the repository's overrides change options, not the place", func(t *testing.T) {
		files := rendertest.With(fleet(), map[string]string{
			"overlays/a/.argocd-source.yaml":     "path: elsewhere\nkustomize:\n  nameSuffix: -x\n",
			"overlays/a/.argocd-source-web.yaml": "kustomize:\n  nameSuffix: -y\n",
		})
		res := mustRender(t, r, request("overlays/a", files))
		if diff := cmp.Diff([]string{"ConfigMap/a-settings-y base/cm.yaml"}, names(res.Objects)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestRefusals(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	tests := map[string]struct {
		change func(*rutter.RenderRequest)
		code   rutter.Code
		says   []string
	}{
		"no such path":   {func(q *rutter.RenderRequest) { q.Source.Path = "nowhere" }, rutter.CodeNotFound, []string{"nowhere", "app path does not exist"}},
		"a file as path": {func(q *rutter.RenderRequest) { q.Source.Path = "README.md" }, rutter.CodeInvalid, []string{"not a directory"}},
		"absolute path":  {func(q *rutter.RenderRequest) { q.Source.Path = "/etc" }, rutter.CodeInvalid, []string{"relative"}},
		"escaping path":  {func(q *rutter.RenderRequest) { q.Source.Path = "../other" }, rutter.CodeInvalid, []string{"leaves the repository"}},
		"not acted on":   {func(q *rutter.RenderRequest) { q.Source.Unsupported = []string{"spec.source.x"} }, rutter.CodeUnsupported, []string{"spec.source.x"}},
		"no such plugin": {func(q *rutter.RenderRequest) { q.Source.Plugin = &rutter.PluginOptions{Name: "kapitan"} }, rutter.CodeInvalid, []string{"kapitan"}},
		"two blocks": {func(q *rutter.RenderRequest) {
			q.Source.Helm = &rutter.HelmOptions{ReleaseName: "x"}
			q.Source.Kustomize = &rutter.KustomizeOptions{NamePrefix: "x"}
		}, rutter.CodeInvalid, []string{"Helm,Kustomize"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			req := request("plain", fleet())
			tt.change(&req)
			_, err := r.Render(t.Context(), req)
			if rutter.CodeOf(err) != tt.code {
				t.Fatalf("code %q, want %q: %v", rutter.CodeOf(err), tt.code, err)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error does not say %q: %v", s, err)
				}
			}
		})
	}
}

func TestWhatIsRenderedAgain(t *testing.T) {
	helm := func(q *rutter.RenderRequest) {
		q.Source.Path = "chart"
		q.Source.Helm = &rutter.HelmOptions{ValueFiles: []string{"/envs/*.yaml"}}
	}
	plain := func(q *rutter.RenderRequest) { q.Source.Path = "plain" }
	asks := func(q *rutter.RenderRequest) { q.Source.Path = "asking" }
	tests := map[string]struct {
		setup   func(*rutter.RenderRequest)
		change  map[string]string
		request func(*rutter.RenderRequest)
		cached  bool
	}{
		"nothing changed":                   {cached: true},
		"an unrelated file changed":         {change: map[string]string{"README.md": "x\n"}, cached: true},
		"another overlay changed":           {change: map[string]string{"overlays/b/kustomization.yaml": "resources:\n- ../../base\n"}, cached: true},
		"an unrelated file beside it":       {change: map[string]string{"overlays/a/notes.txt": "x\n"}, cached: true},
		"the base changed":                  {change: map[string]string{"base/cm.yaml": fmt.Sprintf(configMap, "settings", "new")}},
		"the overlay changed":               {change: map[string]string{"overlays/a/kustomization.yaml": "resources:\n- ../../base\n"}},
		"an override appeared":              {change: map[string]string{"overlays/a/.argocd-source.yaml": "kustomize:\n  nameSuffix: -x\n"}},
		"another branch, same content":      {request: func(q *rutter.RenderRequest) { q.Source.TargetRevision = "other" }, cached: true},
		"another name of the repository":    {request: func(q *rutter.RenderRequest) { q.Source.RepoURL = "git@git.example.com:fleet" }, cached: true},
		"another cluster, no Helm":          {request: func(q *rutter.RenderRequest) { q.KubeVersion = "v1.30.0" }, cached: true},
		"other options":                     {request: func(q *rutter.RenderRequest) { q.Source.Kustomize = &rutter.KustomizeOptions{NameSuffix: "-x"} }},
		"folder: a file changed":            {setup: plain, change: map[string]string{"plain/one.yaml": fmt.Sprintf(configMap, "one", "2")}},
		"folder: a file was added":          {setup: plain, change: map[string]string{"plain/two.yaml": fmt.Sprintf(configMap, "two", "2")}},
		"folder: a file was removed":        {setup: plain, change: map[string]string{"plain/one.yaml": "", "plain/two.yaml": fmt.Sprintf(configMap, "two", "2")}},
		"folder: it became a kustomization": {setup: plain, change: map[string]string{"plain/kustomization.yaml": "resources: [one.yaml]\n"}},
		"chart: nothing changed":            {setup: helm, cached: true},
		"chart: values changed":             {setup: helm, change: map[string]string{"chart/values.yaml": "color: green\n"}},
		"chart: a value file changed":       {setup: helm, change: map[string]string{"envs/dev.yaml": "color: green\n"}},
		"chart: a matching value file came": {setup: helm, change: map[string]string{"envs/eu.yaml": "color: green\n"}},
		"chart: a folder beside it changed": {setup: helm, change: map[string]string{"plain/one.yaml": "x: y\n"}, cached: true},
		"chart: another cluster":            {setup: helm, request: func(q *rutter.RenderRequest) { q.KubeVersion = "v1.30.0" }, cached: true},
		"chart that asks: another cluster":  {setup: asks, request: func(q *rutter.RenderRequest) { q.KubeVersion = "v1.30.0" }},
		"chart: another namespace":          {setup: helm, request: func(q *rutter.RenderRequest) { q.Namespace = "other" }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRenderer(t, t.TempDir())
			req := request("overlays/a", fleet())
			if tt.setup != nil {
				tt.setup(&req)
			}
			first := mustRender(t, r, req)
			req.Snapshot = rendertest.Snapshot(rendertest.With(fleet(), tt.change))
			if tt.request != nil {
				tt.request(&req)
			}
			second := mustRender(t, r, req)
			if first.Cached || second.Cached != tt.cached {
				t.Fatalf("cached: first %v, second %v, want %v", first.Cached, second.Cached, tt.cached)
			}
			if tt.cached {
				if diff := cmp.Diff(names(first.Objects), names(second.Objects)); diff != "" || first.Digest != second.Digest || len(second.Inputs) == 0 {
					t.Errorf("the stored render differs:\n%s", diff)
				}
			}
		})
	}
}

func TestRevisionCountsOnlyWhenItIsUsed(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	req := request("chart", fleet())
	for _, tt := range []struct {
		value  string
		cached bool
	}{{"fixed", true}, {"$ARGOCD_APP_REVISION", false}} {
		req.Source.Helm = &rutter.HelmOptions{Parameters: []rutter.HelmParameter{{Name: "rev", Value: tt.value}}}
		req.Snapshot = rendertest.Snapshot(fleet())
		mustRender(t, r, req)
		req.Snapshot = rendertest.Snapshot(rendertest.With(fleet(), map[string]string{"README.md": "new\n"}))
		res := mustRender(t, r, req)
		if res.Cached != tt.cached {
			t.Errorf("with the parameter %q: cached %v", tt.value, res.Cached)
		}
		if rev, _, _ := nested(res.Objects[0], "data", "rev"); !tt.cached && rev != req.Snapshot.Revision() {
			t.Errorf("rendered revision %v", rev)
		}
	}
}

func nested(o rutter.Object, path ...string) (any, bool, error) {
	var v any = o.Object
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false, nil
		}
		v = m[p]
	}
	return v, v != nil, nil
}

func TestStoreOutlivesTheProcess(t *testing.T) {
	dir := t.TempDir()
	first := mustRender(t, newRenderer(t, dir), request("overlays/a", fleet()))
	again := newRenderer(t, dir)
	loaded, err := again.Load(first.Digest)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.Objects, loaded.Objects); diff != "" {
		t.Errorf("loaded (-rendered +loaded):\n%s", diff)
	}
	if res := mustRender(t, again, request("overlays/a", fleet())); !res.Cached || again.Stats() != (render.Stats{Hits: 1}) {
		t.Errorf("cached %v, stats %+v", res.Cached, again.Stats())
	}
}

func TestLoadOfSomethingUnknown(t *testing.T) {
	r := newRenderer(t, filepath.Join(t.TempDir(), "store"))
	for digest, code := range map[string]rutter.Code{strings.Repeat("0", 64): rutter.CodeNotFound, "../../etc": rutter.CodeInvalid} {
		if _, err := r.Load(digest); rutter.CodeOf(err) != code {
			t.Errorf("%s: %v", digest, err)
		}
	}
}

func TestIdenticalRequestsRunOnce(t *testing.T) {
	r := newRenderer(t, t.TempDir())
	req := request("overlays/a", fleet())
	var wg sync.WaitGroup
	var mu sync.Mutex
	ran := 0
	for range 16 {
		wg.Go(func() {
			res, err := r.Render(t.Context(), req)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if !res.Cached {
				ran++
			}
		})
	}
	wg.Wait()
	if got := r.Stats().Runs; got != 1 || ran != 1 {
		t.Errorf("%d runs, %d answers that say so", got, ran)
	}
}

func TestRunawayChartIsStopped(t *testing.T) {
	r := render.New(render.Options{Timeout: 200 * time.Millisecond})
	files := rendertest.With(fleet(), map[string]string{"chart/templates/loop.yaml": "{{ range $i := 1000000000000 }}{{ end }}"})
	start := time.Now()
	_, err := r.Render(t.Context(), request("chart", files))
	if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "chart") || !strings.Contains(err.Error(), "stopped") || time.Since(start) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(start), err)
	}
}

func TestReadLimits(t *testing.T) {
	for name, opts := range map[string]render.Options{"looks": {MaxReads: 5}, "reads more than": {MaxReadBytes: 10}} {
		_, err := render.New(opts).Render(t.Context(), request("overlays/a", fleet()))
		if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDamagedStore: what cannot be read from the store is rendered again.
func TestDamagedStore(t *testing.T) {
	dir := t.TempDir()
	first := mustRender(t, newRenderer(t, dir), request("chart", fleet()))
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(name, "blobs") {
			return err
		}
		return os.Truncate(name, 3)
	})
	if err != nil {
		t.Fatal(err)
	}
	again := mustRender(t, newRenderer(t, dir), request("chart", fleet()))
	if again.Cached || again.Digest != first.Digest {
		t.Errorf("cached %v, digest %s, want %s", again.Cached, again.Digest, first.Digest)
	}
}

func TestCallerThatGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newRenderer(t, t.TempDir()).Render(ctx, request("overlays/a", fleet()))
	if err == nil {
		t.Error("a cancelled render succeeds")
	}
}

// overlays is n overlays of a base with three objects.
func overlays(n int) map[string]string {
	files := map[string]string{
		"base/kustomization.yaml": "resources:\n- deployment.yaml\n- service.yaml\n- configmap.yaml\n",
		"base/deployment.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 1\n  selector:\n    matchLabels:\n      app: web\n  template:\n" +
			"    metadata:\n      labels:\n        app: web\n    spec:\n      containers:\n      - name: web\n        image: nginx:1.29\n        envFrom:\n        - configMapRef:\n            name: web\n",
		"base/service.yaml":   "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  selector:\n    app: web\n  ports:\n  - port: 80\n",
		"base/configmap.yaml": fmt.Sprintf(configMap, "web", "base"),
	}
	for i := range n {
		files[fmt.Sprintf("overlays/o%04d/kustomization.yaml", i)] = fmt.Sprintf(
			"resources:\n- ../../base\nnamespace: n%04d\nlabels:\n- pairs:\n    overlay: o%04d\nreplicas:\n- name: web\n  count: 2\npatches:\n- target:\n    kind: ConfigMap\n  patch: |-\n    - op: replace\n      path: /data/key\n      value: v%d\n", i, i, i)
	}
	return files
}

// BenchmarkThousandOverlays renders 1,000 overlays of one base: cold, and again with nothing changed.
func BenchmarkThousandOverlays(b *testing.B) {
	const n = 1000
	snap := rendertest.Snapshot(overlays(n))
	reqs := make([]rutter.RenderRequest, n)
	for i := range reqs {
		reqs[i] = request(fmt.Sprintf("overlays/o%04d", i), nil)
		reqs[i].Snapshot = snap
	}
	all := func(b *testing.B, r *render.Renderer) {
		b.Helper()
		for _, req := range reqs {
			mustRender(b, r, req)
		}
	}
	all(b, newRenderer(b, b.TempDir())) // the library's schema is parsed once a process
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			all(b, newRenderer(b, b.TempDir()))
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/render")
	})
	b.Run("unchanged", func(b *testing.B) {
		r := newRenderer(b, b.TempDir())
		all(b, r)
		for b.Loop() {
			all(b, r)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/render")
	})
}
