package directory_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/directory"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

func cm(name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n", name)
}

func folder() map[string]string {
	return map[string]string{
		"app/b.yaml":           cm("b1") + "---\n# second\n" + cm("b2"),
		"app/a.json":           "{\n\t\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"a\"}\n}",
		"app/c.yml":            cm("c"),
		"app/values.yaml":      "replicas: 3\n",
		"app/broken.yaml":      "a: b: c\n",
		"app/skipped.yaml":     "# +argocd:skip-file-rendering\n" + cm("skipped"),
		"app/README.md":        "no manifest",
		"app/empty.yaml":       "# nothing\n",
		"app/sub/d.yaml":       cm("d"),
		"app/sub/deep/e.yaml":  cm("e"),
		"elsewhere/other.yaml": cm("other"),
	}
}

func render(t *testing.T, files map[string]string, in directory.Input) ([]string, error) {
	t.Helper()
	in.Repo, in.Path = record.New(t.Context(), rendertest.Snapshot(files), record.Options{}), "app"
	objs, _, err := directory.Render(in)
	var got []string
	for _, o := range objs {
		got = append(got, fmt.Sprintf("%s %s:%d", o.GetName(), o.Origin.File, o.Origin.Line))
	}
	return got, err
}

func TestSelection(t *testing.T) {
	top := []string{"a app/a.json:1", "b1 app/b.yaml:1", "b2 app/b.yaml:7", "c app/c.yml:1"}
	tests := map[string]struct {
		opts rutter.DirectoryOptions
		want []string
	}{
		"top only":           {want: top},
		"recurse":            {rutter.DirectoryOptions{Recurse: true}, append(slices.Clip(top), "d app/sub/d.yaml:1", "e app/sub/deep/e.yaml:1")},
		"include":            {rutter.DirectoryOptions{Include: "*.yml"}, top[3:]},
		"include, choices":   {rutter.DirectoryOptions{Include: "{a.json,c.yml}"}, []string{top[0], top[3]}},
		"star crosses":       {rutter.DirectoryOptions{Recurse: true, Include: "sub/*.yaml"}, []string{"d app/sub/d.yaml:1", "e app/sub/deep/e.yaml:1"}},
		"exclude before all": {rutter.DirectoryOptions{Include: "*.{yml,json}", Exclude: "c*"}, top[:1]},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, folder(), directory.Input{Options: tt.opts})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		in    directory.Input
		code  rutter.Code
		want  string
	}{
		"broken after a good document": {files: map[string]string{"app/z.yaml": cm("z") + "---\na: b: c\n"}, want: "app/z.yaml:6: is not valid YAML"},
		"broken, but meant as one":     {files: map[string]string{"app/z.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: a\n"}, want: "app/z.yaml:"},
		"repeated key":                 {files: map[string]string{"app/z.yaml": cm("z") + "data:\n  k: a\n  k: b\n"}, want: `app/z.yaml:7: the key "k" appears twice in one mapping`},
		"jsonnet":                      {files: map[string]string{"app/x.jsonnet": "{}"}, want: "app/x.jsonnet: an object has no apiVersion"},
		"two values in JSON":           {files: map[string]string{"app/z.json": "{}\n{}"}, want: "app/z.json:2: is not one valid JSON value"},
		"repeated key in JSON":         {files: map[string]string{"app/z.json": `{"a": 1, "a": 2}`}, want: `app/z.json:1: the key "a" appears twice`},
		"too large":                    {in: directory.Input{MaxBytes: 100}, want: "larger than 100 bytes"},
		"bad pattern":                  {in: directory.Input{Options: rutter.DirectoryOptions{Include: "[a"}}, want: "directory.include"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, rendertest.With(folder(), tt.files), tt.in)
			if tt.code == "" {
				tt.code = rutter.CodeInvalid
			}
			if rutter.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want %s %q, got %v", tt.code, tt.want, err)
			}
		})
	}
}

func TestJsonnetThatIsExcluded(t *testing.T) {
	files := rendertest.With(folder(), map[string]string{"app/x.jsonnet": "{}"})
	if _, err := render(t, files, directory.Input{Options: rutter.DirectoryOptions{Exclude: "*.jsonnet"}}); err != nil {
		t.Error(err)
	}
}
