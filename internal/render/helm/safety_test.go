package helm_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/render/record"
)

// refused renders and expects an error, soon, that names what it is about.
func refused(t *testing.T, in helm.Input, says ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	start := time.Now()
	_, _, err := helm.New(helm.Limits{MaxOutputBytes: 4 << 20}).Render(ctx, in)
	if err == nil {
		t.Fatal("no error")
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("refused after %s", d)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error does not say %q: %v", s, err)
		}
	}
	if strings.Contains(err.Error(), "\n") || len(err.Error()) > 4000 {
		t.Errorf("the error has lines, or is too long: %.200q", err)
	}
}

// TestC4HostileNames: a chart's name and version are checked before anything
// is done with them (threat C4).
func TestC4HostileNames(t *testing.T) {
	for _, yaml := range []string{
		"name: ../../escape\nversion: 1.0.0\n", "name: ..\nversion: 1.0.0\n", "name: .\nversion: 1.0.0\n", "name: a/b\nversion: 1.0.0\n", "name: /etc\nversion: 1.0.0\n",
		"name: web\nversion: ../1\n", "name: web\nversion: 1.0.0/../../x\n", "name: ''\nversion: 1.0.0\n", "name: web\nversion: ''\n", "name: [web]\nversion: 1.0.0\n",
		"name: web\nversion: 1.0.0\ndependencies: [null]\n", "name: web\nversion: 1.0.0\ndependencies: [{name: x, alias: ../x}]\n", "name: web\nversion: 1.0.0\ndependencies: {a: b}\n",
		"name: web\nversion: 1.0.0\nmaintainers: [null]\n", "name: web\nversion: 1.0.0\ntype: evil\n", "null\n", "[]\n", "&a [*a]\n", "name: web\nversion: 1.0.0\nkubeVersion: '>>nonsense'\n",
	} {
		t.Run(yaml, func(t *testing.T) {
			text := yaml
			if strings.HasPrefix(yaml, "n") && yaml != "null\n" {
				text = "apiVersion: v2\n" + yaml
			}
			refused(t, input(t, map[string]string{"chart/Chart.yaml": text}, rutter.HelmOptions{}), "chart/Chart.yaml")
		})
	}
}

// TestC4SymbolicLinks: a link in a chart that leads out of the tree is an
// error, Chart.lock above all, and what it leads to is neither read nor written.
func TestC4SymbolicLinks(t *testing.T) {
	const secret = "sentinel: do-not-read\n"
	for _, name := range []string{"Chart.lock", "values.yaml", "templates/x.yaml", "templates", "charts/sub", "charts/sub.tgz", "crds", "extra.txt", "values.schema.json"} {
		t.Run(name, func(t *testing.T) {
			outside, root := t.TempDir(), t.TempDir()
			sentinel := filepath.Join(outside, "sentinel")
			link := filepath.Join(root, "chart", name)
			if err := errors.Join(os.WriteFile(sentinel, []byte(secret), 0o600), os.MkdirAll(filepath.Dir(link), 0o750),
				os.WriteFile(filepath.Join(root, "chart", "Chart.yaml"), []byte(head+"- {name: db, version: 1.x, repository: 'https://charts.example.com'}\n"), 0o600),
				os.Symlink(sentinel, link)); err != nil {
				t.Fatal(err)
			}
			snap, err := osdir.Open(root)
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			in := inputFrom(t, nil, rutter.HelmOptions{}, &elsewhere{have: map[string]map[string]string{"https://charts.example.com/db": subchart("db", "1.0.0")}})
			in.Repo = record.New(t.Context(), snap, record.Options{})
			refused(t, in, "chart/"+name, "symbolic link")
			if data, err := os.ReadFile(sentinel); err != nil || string(data) != secret {
				t.Errorf("the sentinel is %q, %v", data, err)
			}
		})
	}
}

// TestC4LinkedValueFiles: a values file that is a link out of the tree is an
// error, also where a missing one would not be.
func TestC4LinkedValueFiles(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "v.yaml"), []byte("secret: hunter2\n"), 0o600), os.MkdirAll(filepath.Join(root, "chart", "envs"), 0o750),
		os.WriteFile(filepath.Join(root, "chart", "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), 0o600),
		os.WriteFile(filepath.Join(root, "chart", ".helmignore"), []byte("envs\n"), 0o600),
		os.Symlink(filepath.Join(outside, "v.yaml"), filepath.Join(root, "chart", "envs", "v.yaml"))); err != nil {
		t.Fatal(err)
	}
	snap, err := osdir.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for _, entry := range []string{"envs/v.yaml", "envs/*.yaml"} {
		in := input(t, nil, rutter.HelmOptions{ValueFiles: []string{entry}, IgnoreMissingValueFiles: true})
		in.Repo = record.New(t.Context(), snap, record.Options{})
		refused(t, in, "helm.valueFiles[0]", "chart/envs/v.yaml: the symbolic link")
	}
}

// member is a file of an archive.
type member struct {
	tar.Header

	data string
}

func archived(t *testing.T, members ...member) string {
	t.Helper()
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	out := tar.NewWriter(zip)
	for _, m := range members {
		m.Mode, m.Size = 0o644, int64(len(m.data))
		if err := out.WriteHeader(&m.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(m.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

func file(name, data string) member { return member{Header: tar.Header{Name: name}, data: data} }

// TestC4Archives: a chart's archive goes nowhere, and a bomb ends soon.
func TestC4Archives(t *testing.T) {
	ok := file("sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n")
	zeros := strings.Repeat("\x00", 12<<20)
	tests := map[string]struct{ data, says string }{
		"a name with dots":           {archived(t, ok, file("sub/../../escape", "x")), "leads out of the chart"},
		"an absolute name":           {archived(t, ok, file("sub//etc/passwd", "x")), "leads out of the chart"},
		"a name of another system":   {archived(t, ok, file(`sub\..\..\escape`, "x")), "leads out of the chart"},
		"a drive":                    {archived(t, ok, file("sub/c:/x", "x")), "leads out of the chart"},
		"no folder":                  {archived(t, file("Chart.yaml", "x")), "one folder"},
		"nothing":                    {archived(t), "holds no files"},
		"no gzip":                    {"PK\x03\x04", "no gzip"},
		"cut off":                    {archived(t, ok)[:60], "damaged"},
		"a bomb":                     {archived(t, ok, file("sub/big", zeros)), "100 times its size"},
		"a bomb in a bomb":           {archived(t, ok, file("sub/charts/in.tgz", archived(t, file("in/big", zeros)))), "100 times its size"},
		"archives within each other": {nestedArchive(t, 12), "nested too deeply"},
		"no chart in it":             {archived(t, file("sub/readme", "x")), "Chart.yaml file is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			refused(t, input(t, chart(map[string]string{"charts/sub-1.0.0.tgz": tt.data}), rutter.HelmOptions{}), "chart/charts/sub-1.0.0.tgz", tt.says)
		})
	}
	t.Run("links are empty files", func(t *testing.T) {
		link := func(name, to string, kind byte) member {
			return member{Header: tar.Header{Name: name, Linkname: to, Typeflag: kind}}
		}
		data := archived(t, ok, link("sub/values.yaml", "/etc/passwd", tar.TypeSymlink), link("sub/Chart.lock", "../../../etc/passwd", tar.TypeLink),
			file("sub/templates/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sub}\ndata: {v: '{{ .Values | toJson }}'}\n"))
		objs, _, err := render(t, input(t, chart(map[string]string{"charts/sub-1.0.0.tgz": data}), rutter.HelmOptions{}))
		if err != nil || contents(objs)["sub"] != `{"global":{}}` {
			t.Errorf("%v, %v", contents(objs), err)
		}
	})
}

func nestedArchive(t *testing.T, depth int) string {
	t.Helper()
	members := []member{file("sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n")}
	if depth > 0 {
		members = append(members, file("sub/charts/sub.tgz", nestedArchive(t, depth-1)))
	}
	return archived(t, members...)
}

// aliasBomb is a YAML text of aliases of aliases.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x]\n")
	for i := range 12 {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	return b.String()
}

// TestC4ValueBombs: values that are far larger than they look.
func TestC4ValueBombs(t *testing.T) {
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	param := func(p ...rutter.HelmParameter) rutter.HelmOptions { return rutter.HelmOptions{Parameters: p} }
	dump := map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Custom\nmetadata: {name: x}\nspec: {{ toJson .Values }}\n"}
	tests := map[string]struct {
		files map[string]string
		opts  rutter.HelmOptions
		says  string
	}{
		"aliases in the chart's values":  {files: map[string]string{"values.yaml": aliasBomb()}, says: "chart/values.yaml"},
		"aliases in a values file":       {files: map[string]string{"v.yaml": aliasBomb()}, opts: rutter.HelmOptions{ValueFiles: []string{"v.yaml"}}, says: "chart/v.yaml"},
		"aliases in values":              {opts: rutter.HelmOptions{Values: aliasBomb()}, says: "helm.values"},
		"aliases in valuesObject":        {opts: rutter.HelmOptions{ValuesObject: []byte(aliasBomb())}, says: "helm.valuesObject"},
		"aliases in Chart.yaml":          {files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n" + aliasBomb()}, says: "chart/Chart.yaml"},
		"aliases in what templates make": {files: map[string]string{"templates/x.yaml": aliasBomb()}, says: "chart/templates/x.yaml"},
		"aliases given to fromYaml": {files: map[string]string{"values.yaml": "t: |\n  " + strings.ReplaceAll(aliasBomb(), "\n", "\n  "), "templates/x.yaml": `{{ if (fromYaml .Values.t).Error }}{{ fail "refused" }}{{ end }}`},
			says: "refused"},
		"nesting in a values file":   {files: map[string]string{"v.yaml": "a: " + deep}, opts: rutter.HelmOptions{ValueFiles: []string{"v.yaml"}}, says: "chart/v.yaml"},
		"nesting that is written":    {files: map[string]string{"values.yaml": "a: " + strings.Repeat("[", 900) + strings.Repeat("]", 900), "templates/x.yaml": dump["templates/x.yaml"]}, says: "chart/templates/x.yaml"},
		"a huge index":               {opts: param(rutter.HelmParameter{Name: "a[999999999]", Value: "x"}), says: "helm.parameters[0]"},
		"huge indexes together":      {opts: param(rutter.HelmParameter{Name: "a[60000][60000][60000][60000]", Value: "x"}), says: "helm.parameters[0]"},
		"a negative index":           {opts: param(rutter.HelmParameter{Name: "a[-1]", Value: "x"}), says: "helm.parameters[0]"},
		"a name that is very deep":   {opts: param(rutter.HelmParameter{Name: strings.Repeat("a.", 100) + "a", Value: "x"}), says: "helm.parameters[0]"},
		"a large file of values":     {files: map[string]string{"v.yaml": "a: " + strings.Repeat("x", 17<<20)}, opts: rutter.HelmOptions{ValueFiles: []string{"v.yaml"}}, says: "larger than 16 MiB"},
		"a value that is no mapping": {opts: rutter.HelmOptions{ValuesObject: []byte(`"hunter2"`)}, says: "helm.valuesObject"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { refused(t, input(t, chart(tt.files), tt.opts), tt.says) })
	}
	t.Run("huge integers", func(t *testing.T) {
		objs, _, err := render(t, input(t, chart(map[string]string{"values.yaml": "a: 123456789012345678901234567890\nb: -99999999999999999999\nc: 0x7fffffffffffffff\n", "templates/x.yaml": dump["templates/x.yaml"]}), rutter.HelmOptions{}))
		if err != nil || len(objs) != 1 {
			t.Errorf("%v, %v", objs, err)
		}
	})
}

// TestC4Schemas: a schema is somebody else's program, too.
func TestC4Schemas(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d40":{"type":"object"}}}`)
	tests := map[string]struct{ schema, says string }{
		"doubling":               {doubling.String(), "stopped:"},
		"nested":                 {strings.Repeat(`{"not":`, 300) + "{}" + strings.Repeat("}", 300), "nested more than 200 deep"},
		"itself":                 {`{"$ref":"#"}`, "values.schema.json"},
		"itself among others":    {`{"allOf":[{"$ref":"#"}]}`, "values.schema.json"},
		"a file":                 {`{"$ref":"file:///etc/passwd"}`, "file:///etc/passwd, which is not fetched"},
		"the network":            {`{"properties":{"a":{"$ref":"https://example.com/s.json"}}}`, "which is not fetched"},
		"a schema of the schema": {`{"$schema":"http://127.0.0.1:1/meta"}`, "which is not fetched"},
		"no schema":              {`[1]`, "values.schema.json"},
		"no pattern":             {`{"properties":{"a":{"pattern":"(("}}}`, "values.schema.json"},
		"large":                  {`{"description":"` + strings.Repeat("x", 5<<20) + `"}`, "larger than 4 MiB"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			refused(t, input(t, chart(map[string]string{"values.schema.json": tt.schema, "values.yaml": "a: text\n"}), rutter.HelmOptions{}), "chart/values.schema.json", tt.says)
		})
	}
}

// TestC4OutputBombs: what templates write, all together and each; a bomb ends
// while others render.
func TestC4OutputBombs(t *testing.T) {
	many := map[string]string{"templates/NOTES.txt": `{{ range until 100000 }}{{ range until 1000 }}xxxxxxxx{{ end }}{{ end }}`}
	for i := range 40 {
		many[fmt.Sprintf("templates/%d.yaml", i)] = `{{ range until 10000 }}# xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{ "\n" }}{{ end }}`
	}
	refused(t, input(t, chart(many), rutter.HelmOptions{}), "the templates write too much")
	objs, _, err := render(t, input(t, chart(map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"}), rutter.HelmOptions{}))
	if err != nil || len(objs) != 1 {
		t.Errorf("another chart: %v, %v", objs, err)
	}
}

// TestC4NoWayOut: templates reach neither the network, nor the environment, nor
// a file outside of the chart.
func TestC4NoWayOut(t *testing.T) {
	t.Setenv("RUTTER_SECRET", "hunter2")
	for _, text := range []string{`{{ env "RUTTER_SECRET" }}`, `{{ expandenv "$RUTTER_SECRET" }}`, `{{ rutterTick | nope }}`} {
		refused(t, input(t, chart(map[string]string{"templates/x.yaml": text}), rutter.HelmOptions{}), "not defined")
	}
	files := chart(map[string]string{"templates/x.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {v: '{{ getHostByName "example.com" }}{{ .Files.Get "../secret" }}{{ .Files.Get "/etc/passwd" }}{{ .Files.Get "Chart.yaml" }}{{ range $p, $_ := .Files.Glob "**" }}{{ $p }}{{ end }}'}
`})
	files["secret"] = "hunter2"
	objs, _, err := render(t, input(t, files, rutter.HelmOptions{}))
	if err != nil || contents(objs)["x"] != "" {
		t.Errorf("%q, %v", contents(objs)["x"], err)
	}
}

// TestC4PanicsAreErrors: what the library does not expect ends as the chart's
// error. The values are those of a chart that does not get them elsewhere.
func TestC4PanicsAreErrors(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"division by zero":       {"templates/x.yaml": `{{ div 1 0 }}`},
		"randInt backwards":      {"templates/x.yaml": `{{ randInt 5 1 }}`},
		"nil to a function":      {"templates/x.yaml": `{{ .Values.nope | b64enc }}`},
		"a decimal of nonsense":  {"templates/x.yaml": `{{ addf "x" "y" }}{{ mustToDuration "x" }}`},
		"a substring backwards":  {"templates/x.yaml": `{{ substr 9 2 "abc" }}`},
		"an index out of bounds": {"templates/x.yaml": `{{ index (list 1) 5 }}`},
		"repeat backwards":       {"templates/x.yaml": `{{ repeat -1 "x" }}`},
		"a slice backwards":      {"templates/x.yaml": `{{ slice (list 1 2 3) 3 1 }}`},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, input(t, chart(files), rutter.HelmOptions{}), "chart/templates/x.yaml")
		})
	}
	in := input(t, chart(map[string]string{"templates/x.yaml": ""}), rutter.HelmOptions{Parameters: []rutter.HelmParameter{{Name: "a", Value: "$b"}}})
	in.Env = nil // a caller's mistake panics inside
	refused(t, in, "chart/Chart.yaml", "cannot be rendered")
}
