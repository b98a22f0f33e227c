package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

var update = flag.Bool("update", false, "write the golden files")

// repository lays a chart out below charts/web; files may be outside of it.
func repository(t *testing.T, name string) (own, values map[string]string, opts rutter.HelmOptions) {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	own, values = map[string]string{}, map[string]string{}
	for _, f := range ar.Files {
		switch n, isRef := strings.CutPrefix(f.Name, "$values/"); {
		case f.Name == "options.yaml":
			if err := yaml.UnmarshalStrict(f.Data, &opts); err != nil {
				t.Fatal(err)
			}
		case isRef:
			values[n] = string(f.Data)
		case strings.HasPrefix(f.Name, "../"):
			own[strings.TrimPrefix(f.Name, "../")] = string(f.Data)
		default:
			own["chart/"+f.Name] = string(f.Data)
		}
	}
	return own, values, opts
}

func input(t *testing.T, files map[string]string, opts rutter.HelmOptions) helm.Input {
	t.Helper()
	snap := rendertest.Snapshot(files)
	req := rutter.RenderRequest{Snapshot: snap, Instance: "apps_web", Namespace: "default"}
	return helm.Input{Repo: record.New(t.Context(), snap, record.Options{}), Path: "chart", Options: opts, Env: buildenv.New(req),
		AppName: "web", Namespace: "default", KubeVersion: "v1.37.2-gke.100", APIVersions: []string{"cluster.example.com/v1"}}
}

func render(t *testing.T, in helm.Input) ([]rutter.Object, []string, error) {
	t.Helper()
	return helm.New(helm.Limits{}).Render(t.Context(), in)
}

func asYAML(t *testing.T, objs []rutter.Object) string {
	t.Helper()
	var b bytes.Buffer
	for _, o := range objs {
		out, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("--- # " + o.Origin.File + "\n")
		b.Write(out)
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"functions", "nulls", "layers"} {
		t.Run(name, func(t *testing.T) {
			own, values, opts := repository(t, name)
			in := input(t, own, opts)
			in.Refs = map[string]*record.FS{"values": in.Repo.Beside(rendertest.Snapshot(values), 1)}
			objs, warnings, err := render(t, in)
			if err != nil {
				t.Fatal(err)
			}
			if len(warnings) > 0 {
				t.Errorf("warnings: %q", warnings)
			}
			got := asYAML(t, objs)
			file := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func chart(files map[string]string) map[string]string {
	out := map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"}
	for k, v := range files {
		out["chart/"+k] = v
	}
	return out
}

// failing is an input that cannot be rendered, and what the error must say.
type failing struct {
	files map[string]string
	opts  rutter.HelmOptions
	code  rutter.Code // invalid, unless another is named
	says  []string
}

func failingCharts() map[string]failing {
	return map[string]failing{
		"a template that does not parse": {
			files: chart(map[string]string{"templates/x.yaml": "a: b\n{{ if }}\n"}),
			says:  []string{"chart/templates/x.yaml:2", "chart web", "missing value for if"},
		},
		"fail says what the chart says": {
			files: chart(map[string]string{"templates/_h.tpl": `{{ define "x" }}{{ fail "set color" }}{{ end }}`, "templates/x.yaml": "\n\n{{ include \"x\" . }}"}),
			says:  []string{"chart/templates/x.yaml:3: chart web: set color"},
		},
		"output that is no YAML": {
			files: chart(map[string]string{"templates/x.yaml": "a: b: c\n"}),
			says:  []string{"chart/templates/x.yaml", "not valid YAML"},
		},
		"an object without a name": {
			files: chart(map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Service\n"}),
			says:  []string{"chart/templates/x.yaml", "Service has no metadata.name"},
		},
		"missing dependency": {
			files: map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- name: redis\n  version: 1.x\n  repository: https://charts.example.com\n"},
			code:  rutter.CodeUnsupported,
			says:  []string{"chart/Chart.yaml:5", "chart web: dependency redis 1.x (https://charts.example.com)", "cannot be fetched here"},
		},
		"a chart's values that are a list": {
			files: chart(map[string]string{"values.yaml": "# list\n- a\n"}), says: []string{"chart/values.yaml:2", "no mapping, but of the kind array"},
		},
		"a sub-chart's values that are no YAML": {
			files: chart(map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "a: 1\nb: [\n"}), says: []string{"chart/charts/sub/values.yaml:"},
		},
		"Chart.yaml with a wrong kind of value": {
			files: map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies: text\n"}, says: []string{"chart/Chart.yaml", "wrong kind"},
		},
		"values that do not fit the schema": {
			files: chart(map[string]string{"values.schema.json": `{"properties":{"port":{"type":"integer"}}}`, "values.yaml": "port: secret-text\n"}),
			says:  []string{"chart/values.schema.json", "/port", "integer"},
		},
		"a schema that reads this machine": {
			files: chart(map[string]string{"values.schema.json": `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`}), code: rutter.CodeUnsupported,
			says: []string{"file:///etc/passwd"},
		},
		"a schema from the network": {
			files: chart(map[string]string{"values.schema.json": `{"$ref":"http://127.0.0.1:1/x.json"}`}), code: rutter.CodeUnsupported,
			says: []string{"http://127.0.0.1:1/x.json"},
		},
		"library chart": {
			files: map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n"},
			says:  []string{"library chart"},
		},
		"too old a cluster": {
			files: map[string]string{"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=2.0.0'\n"},
			says:  []string{"requires Kubernetes >=2.0.0"},
		},
		"environment of the process": {
			files: chart(map[string]string{"templates/x.yaml": `{{ env "HOME" }}`}), says: []string{`function "env" not defined`},
		},
	}
}

func failingOptions() map[string]failing {
	return map[string]failing{
		"value file that is not there": {
			files: chart(nil), opts: rutter.HelmOptions{ValueFiles: []string{"nope.yaml"}}, code: rutter.CodeNotFound,
			says: []string{"helm.valueFiles[0]", "chart/nope.yaml does not exist", "ignoreMissingValueFiles"},
		},
		"value file outside the repository": {
			files: chart(nil), opts: rutter.HelmOptions{ValueFiles: []string{"../../etc/passwd"}, IgnoreMissingValueFiles: true},
			says: []string{"leaves the repository"},
		},
		"remote value file": {
			files: chart(nil), opts: rutter.HelmOptions{ValueFiles: []string{"https://example.com/v.yaml"}}, code: rutter.CodeUnsupported,
			says: []string{"https://example.com/v.yaml"},
		},
		"a file of values with a tab": {
			files: chart(map[string]string{"v.yaml": "a: 1\n---\nb:\n\tc: 1\n"}), opts: rutter.HelmOptions{ValueFiles: []string{"v.yaml"}},
			says: []string{"chart/v.yaml:4", "document 2", "no YAML", "cannot start any token"},
		},
		"values that are a list": {
			files: chart(nil), opts: rutter.HelmOptions{Values: "- a\n"}, says: []string{"helm.values:1", "no mapping"},
		},
		"unknown ref": {
			files: chart(nil), opts: rutter.HelmOptions{ValueFiles: []string{"$other/v.yaml"}},
			says: []string{`no source has the ref "other"`},
		},
		"pattern without a match": {
			files: chart(nil), opts: rutter.HelmOptions{ValueFiles: []string{"/envs/**/*.yaml"}}, code: rutter.CodeNotFound,
			says: []string{"no file matches envs/**/*.yaml"},
		},
		"bad release name": {
			files: chart(nil), opts: rutter.HelmOptions{ReleaseName: "No_Good"}, says: []string{"helm.releaseName", "No_Good"},
		},
	}
}

func TestErrors(t *testing.T) {
	tests := failingCharts()
	maps.Copy(tests, failingOptions())
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := render(t, input(t, tt.files, tt.opts))
			if err == nil {
				t.Fatal("no error")
			}
			if tt.code == "" {
				tt.code = rutter.CodeInvalid
			}
			if got := rutter.CodeOf(err); got != tt.code {
				t.Errorf("code %q, want %q: %v", got, tt.code, err)
			}
			for _, s := range tt.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("the error does not say %q: %v", s, err)
				}
			}
			if strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "secret-text") {
				t.Errorf("the error has lines or values: %q", err)
			}
		})
	}
}

// TestRunawayTemplates holds threat C4: a chart is somebody else's program.
func TestRunawayTemplates(t *testing.T) {
	tests := map[string]string{
		"endless loop":                     `{{ range $i := 1000000000000 }}{{ end }}`,
		"endless loop in tpl":              `{{ tpl "{{ range $i := 1000000000000 }}{{ end }}" . }}`,
		"endless recursion":                `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
		"endless recursion of includes":    `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
		"recursion of tpl":                 `{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t "Template" .Template) }}`,
		"doubling recursion":               `{{ define "a" }}{{ if lt (len .) 60 }}{{ template "a" (append . 1) }}{{ template "a" (append . 1) }}{{ end }}{{ end }}{{ template "a" (list 1) }}`,
		"repeat":                           `{{ repeat 1000000000 "xxxxxxxxxx" }}`,
		"doubling text":                    `{{ $s := "xxxxxxxx" }}{{ range until 60 }}{{ $s = printf "%s%s" $s $s }}{{ end }}{{ $s }}`,
		"doubling with replace":            `{{ $s := "xxxxxxxx" }}{{ range until 60 }}{{ $s = replace "x" $s $s }}{{ end }}`,
		"until":                            `{{ until 2000000000 }}`,
		"indent":                           `{{ indent 2000000000 "x" }}`,
		"wide printf":                      `{{ printf "%1000000d" 1 }}`,
		"computed width":                   `{{ printf "%*d" 1000000000 1 }}`,
		"a map that holds itself, YAML":    `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYamlPretty $d }}`,
		"a map that holds itself, printed": `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`,
		"a map that holds itself, printf":  `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ printf "%v" $d }}`,
		"a map that holds itself, copied":  `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d }}`,
		"laughs":                           `{{ $d := dict "a" "ha" }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toJson $d }}`,
		"much output":                      `{{ range until 1000000 }}{{ range until 1000 }}xxxxxxxxxxxxxxxx{{ end }}{{ end }}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input(t, chart(map[string]string{"templates/x.yaml": text}), rutter.HelmOptions{})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			start := time.Now()
			_, _, err := helm.New(helm.Limits{MaxOutputBytes: 4 << 20}).Render(ctx, in)
			if err == nil {
				t.Fatal("no error")
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("stopped after %s", d)
			}
			if !strings.Contains(err.Error(), "chart web") || !strings.Contains(err.Error(), "chart/templates/x.yaml") {
				t.Errorf("the error does not name the chart and the file: %v", err)
			}
		})
	}
}

// packed is a chart as `helm package` makes it.
func packed(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	out := tar.NewWriter(zip)
	for f, data := range files {
		err := out.WriteHeader(&tar.Header{Name: name + "/" + f, Mode: 0o644, Size: int64(len(data))})
		if err == nil {
			_, err = out.Write([]byte(data))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func TestDependencies(t *testing.T) {
	sub := func(name string) map[string]string {
		return map[string]string{
			"Chart.yaml":        "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n",
			"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "-{{ .Values.x | default \"none\" }}}\n",
		}
	}
	files := map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: packed, version: 1.x, repository: 'https://charts.example.com'}\n" +
			"- {name: local, version: 1.x, repository: 'file://../lib/local'}\n- {name: folder, version: 1.x}\n",
		"chart/values.yaml":           "packed: {x: a}\nlocal: {x: b}\nfolder: {x: c}\n",
		"chart/charts/packed-1.0.tgz": packed(t, "packed", sub("packed")),
	}
	for f, data := range sub("local") {
		files["lib/local/"+f] = data
	}
	for f, data := range sub("folder") {
		files["chart/charts/folder/"+f] = data
	}
	objs, _, err := render(t, input(t, files, rutter.HelmOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objs {
		got = append(got, o.GetName())
	}
	if diff := cmp.Diff([]string{"folder-c", "local-b", "packed-a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValueFilePatterns(t *testing.T) {
	files := chart(map[string]string{"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {order: '{{ .Values.order }}'}\n"})
	for _, f := range []string{"envs/a.yaml", "envs/z.yaml", "envs/eu/b.yaml", "envs/eu/deep/c.yaml", "envs/readme.md"} {
		files[f] = "last: " + f + "\n"
	}
	tests := map[string]struct {
		entries []string
		last    string
	}{
		"one folder, in order":            {[]string{"/envs/*.yaml"}, "envs/z.yaml"},
		"files before folders":            {[]string{"/envs/**/*.yaml"}, "envs/eu/deep/c.yaml"},
		"a name outright keeps its place": {[]string{"/envs/eu/deep/c.yaml", "/envs/**/*.yaml"}, "envs/eu/b.yaml"},
		"relative to the chart":           {[]string{"../envs/[ab].yaml"}, "envs/a.yaml"},
		"with the environment":            {[]string{"/envs/a.yaml", "/envs/$UNKNOWN/eu/b.yaml"}, "envs/eu/b.yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			withLast := map[string]string{}
			maps.Copy(withLast, files)
			withLast["chart/templates/cm.yaml"] = strings.Replace(files["chart/templates/cm.yaml"], ".Values.order", ".Values.last", 1)
			objs, _, err := render(t, input(t, withLast, rutter.HelmOptions{ValueFiles: tt.entries}))
			if err != nil {
				t.Fatal(err)
			}
			data, _ := objs[0].Object["data"].(map[string]any)
			if data["order"] != tt.last {
				t.Errorf("%v was last, want %s", data["order"], tt.last)
			}
		})
	}
}

func TestRepeatedKeyIsWarnedOf(t *testing.T) {
	objs, warnings, err := render(t, input(t, chart(map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: one, a: two}\n"}), rutter.HelmOptions{}))
	if err != nil || len(objs) != 1 || len(warnings) != 1 || !strings.Contains(warnings[0], `"a"`) {
		t.Errorf("%d objects, warnings %q, %v", len(objs), warnings, err)
	}
}
