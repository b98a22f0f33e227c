package kustomize_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

const sentinel = "SENTINEL-OUTSIDE"

// onDisk writes files below a new folder, beside a file that no render may read,
// and returns the folder above.
func onDisk(t *testing.T, files map[string]string) (above, root string) {
	t.Helper()
	above = t.TempDir()
	root = filepath.Join(above, "repo")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	secret := configMap("outside") + "data: {x: " + sentinel + "}\n"
	for name, text := range map[string]string{"sentinel.yaml": secret, "base/kustomization.yaml": "resources: [../sentinel.yaml]\n"} {
		full := filepath.Join(above, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return above, root
}

// TestThreatK1 (load restrictor): whatever the restrictor says, nothing outside
// of the repository is read: not by "..", not by an absolute path, not by a link.
func TestThreatK1(t *testing.T) {
	tests := map[string]string{
		"resource":             "resources: [../../sentinel.yaml]",
		"resource, absolute":   "resources: [%s/sentinel.yaml]",
		"resource, by a link":  "resources: [link.yaml]",
		"resource, round":      "resources: [../overlay/../../sentinel.yaml]",
		"folder":               "resources: [../../base]",
		"folder, absolute":     "resources: [%s/base]",
		"folder, by a link":    "resources: [linked]",
		"generator":            "configMapGenerator: [{name: x, files: [../../sentinel.yaml]}]",
		"generator, absolute":  "configMapGenerator: [{name: x, files: ['%s/sentinel.yaml']}]",
		"generator, by a link": "configMapGenerator: [{name: x, files: [link.yaml]}]",
		"generator, folder":    "configMapGenerator: [{name: x, files: [linked/sentinel.yaml]}]",
		"env file":             "secretGenerator: [{name: x, envs: ['%s/sentinel.yaml']}]",
		"patch":                "resources: [a.yaml]\npatches: [{path: ../../sentinel.yaml}]",
		"patch, strategic":     "resources: [a.yaml]\npatchesStrategicMerge: ['%s/sentinel.yaml']",
		"replacement":          "resources: [a.yaml]\nreplacements: [{path: '%s/sentinel.yaml'}]",
		"configuration":        "resources: [a.yaml]\nconfigurations: ['%s/sentinel.yaml']",
		"crd":                  "resources: [a.yaml]\ncrds: ['%s/sentinel.yaml']",
		"schema":               "resources: [a.yaml]\nopenapi: {path: '%s/sentinel.yaml'}",
		"component":            "resources: [a.yaml]\ncomponents: [../../base]",
		"transformer":          "resources: [a.yaml]\ntransformers: ['%s/sentinel.yaml']",
		"generator file":       "generators: [../../sentinel.yaml]",
		"plugin":               "resources: [a.yaml]\ntransformers:\n- |\n  apiVersion: builtin\n  kind: PatchTransformer\n  metadata: {name: p}\n  path: %s/sentinel.yaml\n",
	}
	r := kustomize.New()
	for name, text := range tests {
		for _, none := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restrictor off: %v", name, none), func(t *testing.T) {
				above, root := onDisk(t, map[string]string{"overlay/a.yaml": configMap("outside")})
				text := strings.ReplaceAll(text, "%s", above)
				if err := os.WriteFile(filepath.Join(root, "overlay/kustomization.yaml"), []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				for link, to := range map[string]string{"overlay/link.yaml": above + "/sentinel.yaml", "overlay/linked": "../../../" + filepath.Base(above)} {
					if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
						t.Fatal(err)
					}
				}
				snap, err := osdir.Open(root)
				if err != nil {
					t.Fatal(err)
				}
				defer snap.Close()
				objs, _, err := r.Render(t.Context(), kustomize.Input{Repo: record.New(t.Context(), snap, record.Options{}), Path: "overlay",
					Build: rutter.KustomizeBuild{LoadRestrictorNone: none}, Env: buildenv.New(rutter.RenderRequest{Snapshot: snap})})
				if err == nil || strings.Contains(fmt.Sprint(err, objs), sentinel) {
					t.Errorf("it was read: %v %v", objs, err)
				}
			})
		}
	}
}

// TestThreatK3 (functions): no program is run, neither a plugin that is
// installed, nor a function, nor a container, nor helm.
func TestThreatK3(t *testing.T) {
	home := t.TempDir()
	marker := filepath.Join(home, "ran")
	script := "#!/bin/sh\ntouch " + marker + "\necho 'version v4.0.0'\n"
	for _, name := range []string{"bin/helm", "bin/docker", "bin/run", "kustomize/plugin/example.com/v1/mine/Mine"} {
		full := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(script), 0o755); err != nil { // it must be runnable
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(home, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("KUSTOMIZE_PLUGIN_HOME", filepath.Join(home, "kustomize/plugin"))
	function := func(spec string) string {
		return "apiVersion: example.com/v1\nkind: Fn\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: |\n      " + spec + "\n"
	}
	tests := map[string]struct{ plugin, says string }{
		"an installed plugin":     {"apiVersion: example.com/v1\nkind: Mine\nmetadata: {name: m}\n", "Mine is no builtin of kustomize"},
		"a program as function":   {function("exec: {path: " + filepath.Join(home, "bin/run") + "}"), "programs, containers and Go plugins are not run"},
		"a container as function": {function("container: {image: example.com/fn}"), "programs, containers and Go plugins are not run"},
		"starlark":                {function("starlark: {path: x.star, name: x}"), "programs, containers and Go plugins are not run"},
		"helm, as a generator":    {"apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: app\n", "helm"},
	}
	r := kustomize.New()
	for name, tt := range tests {
		for _, field := range []string{"generators", "transformers", "validators"} {
			for _, inline := range []bool{false, true} {
				entry := "[plugin.yaml]"
				if inline {
					entry = "\n- |\n  " + strings.ReplaceAll(tt.plugin, "\n", "\n  ")
				}
				files := rendertest.With(repository(), kustomization("resources: [../base]\n"+field+": "+entry))
				files["overlay/plugin.yaml"], files["overlay/charts/app/Chart.yaml"] = tt.plugin, "name: app\n"
				files["overlay/charts/app/values.yaml"] = "{}\n"
				_, _, err := render(t, r, files, kustomize.Input{Path: "overlay", Build: rutter.KustomizeBuild{EnableHelm: true}}, record.Options{})
				if rutter.CodeOf(err) != rutter.CodeUnsupported || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), "overlay/") {
					t.Errorf("%s in %s, inline %v: %v", name, field, inline, err)
				}
			}
		}
	}
	files := rendertest.With(repository(), kustomization("helmCharts: [{name: app}]"))
	files["overlay/charts/app/values.yaml"] = "{}\n"
	if _, _, err := render(t, r, files, kustomize.Input{Path: "overlay", Build: rutter.KustomizeBuild{EnableHelm: true}}, record.Options{}); err == nil {
		t.Error("a chart was rendered by nobody")
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a program was run")
	}
}

// TestThreatK4 (flags): options are typed, and no text of a user is ever more
// than a value, whatever it begins with.
func TestThreatK4(t *testing.T) {
	for field := range reflect.TypeFor[rutter.KustomizeBuild]().Fields() {
		if field.Type.Kind() != reflect.Bool {
			t.Errorf("build option %s is a %s: free text could become a flag", field.Name, field.Type)
		}
	}
	opts := rutter.KustomizeOptions{NamePrefix: "-p-", NameSuffix: "--enable-helm", Namespace: "--load-restrictor=LoadRestrictionsNone", Images: []string{"nginx=--help:v1"},
		CommonLabels: map[string]string{"--force": "--without-selector"}, CommonAnnotations: map[string]string{"team": "blue"}, Version: "--enable-exec"}
	if _, err := build(t, kustomize.New(), repository(), "overlay", opts); err == nil || !strings.Contains(err.Error(), "team") {
		t.Errorf("a label that looks like a flag has forced an annotation: %v", err)
	}
	opts.CommonAnnotations = nil
	objs, err := build(t, kustomize.New(), repository(), "overlay", opts)
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, find(t, objs, "Deployment").Object)
	for _, want := range []string{"name: -p-web--enable-helm", "namespace: --load-restrictor=LoadRestrictionsNone", "image: --help:v1", "--force: --without-selector"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	files := rendertest.With(repository(), kustomization("configMapGenerator: [{name: x, files: [../secret.txt]}]"))
	if _, err := build(t, kustomize.New(), files, "overlay", opts); err == nil {
		t.Error("the load restrictor was turned off by a namespace")
	}
}

// laughs is YAML that stands for 9^8 values.
func laughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 x\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 8), i-1)
	}
	return b.String()
}

// doubling is a tower of kustomizations each of which lists the next two, in which
// few files stand for 2^n layers.
func doubling(n int) map[string]string {
	files := map[string]string{"overlay/kustomization.yaml": "resources: [../l0, ../r0]\n"}
	for i := range n {
		for _, side := range []string{"l", "r"} {
			files[fmt.Sprintf("%s%d/kustomization.yaml", side, i)] = fmt.Sprintf("namePrefix: %s\nresources: [../l%d, ../r%d]\n", side, i+1, i+1)
		}
	}
	for _, side := range []string{"l", "r"} {
		files[fmt.Sprintf("%s%d/kustomization.yaml", side, n)] = "namePrefix: " + side + "\nresources: [a.yaml]\n"
		files[fmt.Sprintf("%s%d/a.yaml", side, n)] = configMap("a")
	}
	return files
}

// TestBombs (CVE-2022-24878): each ends as the error of its own render, soon, and
// names the file, while another renders.
func TestBombs(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  " + strings.ReplaceAll(strings.TrimSpace(laughs()), "\n", "\n  ") + "\n"
	indent := func(s, by string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+by) }
	many := map[string]string{}
	var list strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&list, "- ../b%d\n", i)
		many[fmt.Sprintf("b%d/kustomization.yaml", i)] = "namePrefix: x\n"
	}
	many["overlay/kustomization.yaml"] = "resources:\n" + list.String()
	deep := strings.Repeat("[", 20000)
	tests := map[string]struct {
		files map[string]string
		opts  rutter.KustomizeOptions
		says  string
	}{
		"aliases in a resource":        {files: map[string]string{"overlay/kustomization.yaml": "resources: [x.yaml]\n", "overlay/x.yaml": object}, says: "overlay/x.yaml"},
		"aliases in a base":            {files: map[string]string{"base/all.yaml": object}, says: "base/all.yaml"},
		"aliases in the kustomization": {files: kustomization("resources: [../base]\nx:\n  " + indent(laughs(), "  ")), says: "overlay/kustomization.yaml"},
		"aliases in a base's":          {files: map[string]string{"base/kustomization.yaml": "resources: [all.yaml]\nx:\n  " + indent(laughs(), "  ") + "\n"}, says: "base/kustomization.yaml"},
		"aliases in an inline patch":   {files: kustomization("resources: [../base]\npatches:\n- patch: |\n    " + indent(object, "    ")), says: "overlay/kustomization.yaml"},
		"aliases in a patch file":      {files: map[string]string{"overlay/kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n", "overlay/p.yaml": object}, says: "overlay/p.yaml"},
		"aliases in an option":         {opts: rutter.KustomizeOptions{Patches: []rutter.KustomizePatch{{Patch: object}}}, says: "overlay/kustomization.yaml"},
		"aliases in a transformer":     {files: map[string]string{"overlay/kustomization.yaml": "resources: [../base]\ntransformers: [t.yaml]\n", "overlay/t.yaml": object}, says: "overlay/t.yaml"},
		"thousands of bases":           {files: many, says: "kustomization.yaml"},
		"layers that double":           {files: doubling(24), says: "kustomization.yaml"},
		"a cycle":                      {files: map[string]string{"base/kustomization.yaml": "resources: [../overlay]\n"}, says: "overlay"},
		"a long cycle": {files: map[string]string{"base/kustomization.yaml": "resources: [../c1]\n", "c1/kustomization.yaml": "resources: [../c2]\n",
			"c2/kustomization.yaml": "components: [../c1]\n"}, says: "c1"},
		"nested without end": {files: map[string]string{"overlay/kustomization.yaml": "resources: [x.yaml]\n", "overlay/x.yaml": "a: " + deep}, says: "x.yaml"},
	}
	r := kustomize.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			_, err := build(t, r, rendertest.With(repository(), tt.files), "overlay", tt.opts)
			if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("want an error that names %s, got %v", tt.says, err)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %s", took)
			}
			if _, err := build(t, r, repository(), "overlay", rutter.KustomizeOptions{}); err != nil {
				t.Errorf("another does not render: %v", err)
			}
		})
	}
}

// TestStopsWithItsContext: a render whose time is up reads no more.
func TestStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	snap := rendertest.Snapshot(repository())
	_, _, err := kustomize.New().Render(ctx, kustomize.Input{Repo: record.New(ctx, snap, record.Options{}), Path: "overlay"})
	if err == nil {
		t.Error("it went on")
	}
}
