package helmparity

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	render "github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/render/record"
)

// ours renders a case with Rutter, from the folder on disk.
func ours(t *testing.T, r *render.Renderer, c chartCase, more record.Options) ([]rutter.Object, error) {
	t.Helper()
	snap, err := osdir.Open(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	req := rutter.RenderRequest{Snapshot: snap, Instance: "web", Namespace: "default"}
	objs, _, err := r.Render(t.Context(), render.Input{
		Repo: record.New(t.Context(), snap, more), Path: filepath.Join(".", c.opts.Chart), Options: c.opts.HelmOptions, Env: buildenv.New(req),
		AppName: "web", Namespace: "default", KubeVersion: kubeVersion,
	})
	return objs, err
}

// theirs runs `helm template` on the same folder with the same options.
func theirs(t *testing.T, c chartCase) ([]map[string]any, error) {
	t.Helper()
	out, err := helm(t, arguments(t, c)...)
	if err != nil {
		return nil, err
	}
	return documents(t, out), nil
}

func arguments(t *testing.T, c chartCase) []string {
	t.Helper()
	o, chart := c.opts, filepath.Join(c.dir, c.opts.Chart)
	or := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	args := []string{"template", chart, "--name-template", or(o.ReleaseName, "web"), "--namespace", or(o.Namespace, "default"), "--kube-version", or(o.KubeVersion, kubeVersion)}
	for _, api := range o.APIVersions {
		args = append(args, "--api-versions", api)
	}
	for flag, on := range map[string]bool{"--include-crds": !o.SkipCrds, "--skip-tests": o.SkipTests, "--skip-schema-validation": o.SkipSchemaValidation} {
		if on {
			args = append(args, flag)
		}
	}
	place := func(p string) string {
		if strings.HasPrefix(p, "/") {
			return filepath.Join(c.dir, p)
		}
		return filepath.Join(chart, p)
	}
	for _, f := range o.ValueFiles {
		args = append(args, "--values", place(f))
	}
	if inline := or(string(o.ValuesObject), o.Values); inline != "" {
		file := filepath.Join(t.TempDir(), "inline.yaml")
		if err := os.WriteFile(file, []byte(inline), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--values", file)
	}
	for _, p := range o.Parameters {
		flag, value := "--set", p.Value
		if p.ForceString {
			flag = "--set-string"
		}
		if !strings.HasPrefix(value, "{") {
			const kept = "\x00"
			value = strings.ReplaceAll(value, `\,`, kept)
			value = strings.ReplaceAll(strings.ReplaceAll(value, ",", `\,`), kept, `\,`)
		}
		args = append(args, flag, p.Name+"="+value)
	}
	for _, p := range o.FileParameters {
		args = append(args, "--set-file", p.Name+"="+place(p.Path))
	}
	return args
}

// documents reads what helm prints. Lists are taken apart, empty documents left out.
func documents(t *testing.T, out string) []map[string]any {
	t.Helper()
	var objs []map[string]any
	for in := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(out))); ; {
		doc, err := in.Read()
		if errors.Is(err, io.EOF) {
			return objs
		}
		if err != nil {
			t.Fatal(err)
		}
		js, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatalf("helm prints what is no YAML: %v", err)
		}
		if js = bytes.TrimSpace(js); string(js) == "null" {
			continue
		}
		var v any
		if err := utiljson.Unmarshal(js, &v); err != nil {
			t.Fatal(err)
		}
		objs = append(objs, items(v)...)
	}
}

func items(v any) []map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		return []map[string]any{{"no object": v}}
	}
	kind, _ := m["kind"].(string)
	list, isList := m["items"].([]any)
	if !isList || !strings.HasSuffix(kind, "List") {
		return []map[string]any{m}
	}
	var out []map[string]any
	for _, each := range list {
		out = append(out, items(each)...)
	}
	return out
}

// isObject reports whether a document is one that an API server could read: it
// says what it is, and its labels and annotations are texts.
func isObject(m map[string]any) bool {
	meta, _ := m["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := meta[field].(map[string]any)
		for _, v := range texts {
			if _, ok := v.(string); !ok {
				return false
			}
		}
	}
	for _, v := range []any{m["apiVersion"], m["kind"], meta["name"]} {
		if s, ok := v.(string); !ok || s == "" {
			return false
		}
	}
	return true
}

// plain is an object as comparable text. A label or annotation without a value
// is an empty text, as it is for Kubernetes.
func plain(t *testing.T, m map[string]any) string {
	t.Helper()
	meta, _ := m["metadata"].(map[string]any)
	for _, field := range []string{"labels", "annotations"} {
		texts, _ := meta[field].(map[string]any)
		for k, v := range texts {
			if v == nil {
				texts[k] = ""
			}
		}
	}
	out, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
