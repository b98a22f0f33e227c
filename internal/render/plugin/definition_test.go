package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

const head = "apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\nmetadata:\n  name: p\n"

const whole = `apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata:
  name: cdk8s
  labels: {team: platform}
  annotations:
    rutter.dev/network: "true"
    rutter.dev/inputs: path
spec:
  version: v1.0
  init:
    command: [sh, -c]
    args: ["npm ci"]
  generate:
    command: [sh]
    args:
      - -c
      - |
        cdk8s synth
  discover:
    fileName: "./subdir/s*.yaml"
    find:
      glob: "**/cdk8s.yaml"
      command: [sh, -c, find . -name env.yaml]
      args: []
  parameters:
    static:
      - name: string-param
        title: Description of the string param
        tooltip: Tooltip
        required: false
        itemType: ""
        collectionType: ""
        string: default-string-value
      - name: array-param
        collectionType: array
        array: [default, items]
      - name: map-param
        collectionType: map
        map: {some: value}
    dynamic:
      command: [echo, '[{"name": "example-param", "string": "default-string-value"}]']
  preserveFileMode: true
  provideGitCreds: true
`

func TestParse(t *testing.T) {
	got, err := Parse("cdk8s.yaml", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	want := Definition{
		Name: "cdk8s", Version: "v1.0",
		Init:     Command{Command: []string{"sh", "-c"}, Args: []string{"npm ci"}},
		Generate: Command{Command: []string{"sh"}, Args: []string{"-c", "cdk8s synth\n"}},
		Discover: Discover{FileName: "./subdir/s*.yaml", Glob: "**/cdk8s.yaml", Command: Command{Command: []string{"sh", "-c", "find . -name env.yaml"}, Args: []string{}}},
		Parameters: []Announcement{
			{Name: "string-param", Title: "Description of the string param", Tooltip: "Tooltip", String: "default-string-value"},
			{Name: "array-param", CollectionType: "array", Array: []string{"default", "items"}},
			{Name: "map-param", CollectionType: "map", Map: map[string]string{"some": "value"}},
		},
		Dynamic:          Command{Command: []string{"echo", `[{"name": "example-param", "string": "default-string-value"}]`}},
		PreserveFileMode: true, Network: true, PathOnly: true,
		Warnings: []string{"plugin cdk8s-v1.0: provideGitCreds is not acted on: credentials are never given to a plugin; name further repositories as sources of the application"},
		File:     "cdk8s.yaml", Digest: got.Digest,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	other, err := Parse("other.yaml", []byte(whole+"# a comment\n"))
	if err != nil || other.Digest == got.Digest {
		t.Errorf("another file has the same digest (%v)", err)
	}
}

func TestParseErrors(t *testing.T) {
	const generate = "spec:\n  generate: {command: [x]}\n"
	for name, tc := range map[string]struct {
		text string
		line int
		want []string
	}{
		"empty":            {"", 0, []string{"empty"}},
		"only a comment":   {"# nothing\n", 0, []string{"empty"}},
		"no mapping":       {"[1]\n", 1, []string{"must be a mapping"}},
		"not YAML":         {"a: [\n", 0, nil},
		"two documents":    {head + generate + "---\n" + head + generate, 0, []string{"one document"}},
		"another kind":     {"apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: p}\n" + generate, 2, []string{"kind", "ConfigManagementPlugin", "Application"}},
		"another version":  {"apiVersion: v1\nkind: ConfigManagementPlugin\nmetadata: {name: p}\n" + generate, 1, []string{"apiVersion"}},
		"no name":          {"apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\n" + generate, 1, []string{"metadata.name"}},
		"a bad name":       {strings.Replace(head, "name: p", "name: a/b", 1) + generate, 4, []string{"metadata.name", "a/b"}},
		"the built-in":     {strings.Replace(head, "name: p", "name: cue", 1) + generate, 4, []string{"built-in"}},
		"a bad version":    {head + "spec:\n  version: ../x\n  generate: {command: [x]}\n", 6, []string{"spec.version"}},
		"no spec":          {head, 1, []string{"spec.generate"}},
		"no generate":      {head + "spec:\n  init: {command: [x]}\n", 5, []string{"spec.generate"}},
		"only args":        {head + "spec:\n  generate: {command: [x]}\n  init:\n    args: [x]\n", 7, []string{"spec.init", "args without command"}},
		"an empty program": {head + "spec:\n  generate:\n    command: ['', x]\n", 7, []string{"spec.generate.command"}},
		"unknown field":    {head + "spec:\n  generate: {command: [x]}\n  lockRepo: true\n", 7, []string{`unknown field "lockRepo"`}},
		"a field twice":    {head + generate + "spec: {}\n", 7, []string{"spec", "already defined"}},
		"a command string": {head + "spec:\n  generate:\n    command: kubectl kustomize\n", 7, []string{"a list of strings"}},
		"a bool string":    {head + "spec:\n  preserveFileMode: maybe\n  generate: {command: [x]}\n", 6, []string{"true or false"}},
		"a bad pattern":    {head + "spec:\n  generate: {command: [x]}\n  discover:\n    find:\n      glob: '[a'\n", 9, []string{"spec.discover.find.glob"}},
		"a bad file name":  {head + "spec:\n  generate: {command: [x]}\n  discover:\n    fileName: '[a'\n", 8, []string{"spec.discover.fileName"}},
		"a nameless parameter": {
			head + "spec:\n  generate: {command: [x]}\n  parameters:\n    static:\n    - title: x\n", 8, []string{"[0].name"},
		},
		"a parameter of another form": {
			head + "spec:\n  generate: {command: [x]}\n  parameters:\n    static:\n    - {name: x, collectionType: set}\n", 8, []string{"collectionType", "set"},
		},
		"network yes":       {strings.Replace(head, "  name: p", "  name: p\n  annotations:\n    rutter.dev/network: yes please", 1) + generate, 5, []string{"rutter.dev/network", "yes please"}},
		"inputs of nothing": {strings.Replace(head, "  name: p", "  name: p\n  annotations:\n    rutter.dev/inputs: none", 1) + generate, 5, []string{"rutter.dev/inputs", "none"}},
		"unknown of ours":   {strings.Replace(head, "  name: p", "  name: p\n  annotations:\n    rutter.dev/cache: none", 1) + generate, 5, []string{"rutter.dev/cache is unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("dir/p.yaml", []byte(tc.text))
			e := (*rutter.Error)(nil)
			if !errors.As(err, &e) || e.Code != rutter.CodeInvalid || e.File != "dir/p.yaml" {
				t.Fatalf("got %v", err)
			}
			if e.Line != tc.line && tc.line > 0 {
				t.Errorf("line %d, want %d: %v", e.Line, tc.line, err)
			}
			for _, w := range tc.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"z.yaml":      strings.Replace(head, "name: p", "name: a", 1) + "spec:\n  version: v2\n  generate: {command: [x]}\n",
		"b.yml":       head + "spec:\n  generate: {command: [x]}\n",
		"again.yaml":  strings.Replace(head, "name: p", "name: a", 1) + "spec:\n  generate: {command: [x]}\n",
		"twice.yaml":  head + "spec:\n  generate: {command: [y]}\n",
		"broken.yaml": "kind: [",
		"README.md":   "no plugin",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	defs, errs := Load(dir)
	var names []string
	for _, d := range defs {
		names = append(names, d.FullName())
	}
	if diff := cmp.Diff([]string{"a", "a-v2", "p"}, names); diff != "" {
		t.Error(diff)
	}
	if len(errs) != 2 || !strings.Contains(errs[0].Error(), "broken.yaml") || !strings.Contains(errs[1].Error(), "twice.yaml: metadata.name: the plugin p is in "+filepath.Join(dir, "b.yml")) {
		t.Errorf("got %v", errs)
	}
	if _, errs := Load(filepath.Join(dir, "missing")); len(errs) != 1 || rutter.CodeOf(errs[0]) != rutter.CodeNotFound {
		t.Errorf("got %v", errs)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(whole)
	f.Add(head + "spec:\n  generate: {command: [x]}\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse("f.yaml", []byte(text))
		if err == nil && (d.Name == "" || !d.Generate.set()) {
			t.Errorf("accepted without name or command: %+v", d)
		}
	})
}
