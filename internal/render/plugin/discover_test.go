package plugin_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/plugin"
)

func TestMatch(t *testing.T) {
	byFile := define(t, "by-file", generate("true")+"  discover: {fileName: './conf/h*.yaml'}\n")
	byGlob := define(t, "by-glob", "  version: v1\n"+generate("true")+"  discover: {find: {glob: '**/deep.{star,cue}'}}\n")
	byCommand := define(t, "by-command", generate("true")+"  discover: {find: {command: [sh, -c, 'test -z \"$ARGOCD_ENV_WORD$ARGOCD_APP_NAME$KUBE_VERSION\" && grep -ls hello word.txt']}}\n")
	silent := define(t, "silent", generate("true")+"  discover: {find: {command: [sh, -c, 'exit 0']}}\n")
	failing := define(t, "failing", generate("true")+"  discover: {find: {command: [sh, -c, 'echo found; exit 1']}}\n")
	first := define(t, "first-wins", generate("true")+"  discover: {fileName: none, find: {glob: '**', command: [echo, found]}}\n")
	never := define(t, "never", generate("true"))
	two := define(t, "by-glob", "  version: v2\n"+generate("true")+"  discover: {find: {glob: '**/two'}}\n")
	c := newCommit(map[string]string{
		"a/conf/helmfile.yaml": "", "b/x/y/deep.star": "", "c/deep.cue": "", "d/word.txt": "hello\n", "e/none.txt": "", "conf/helmfile.yaml": "",
		"f/x/two": "", "g/conf/other.yaml": "",
	})
	named := func(name string) *rutter.PluginOptions {
		return &rutter.PluginOptions{Name: name, Env: []rutter.PluginEnv{{Name: "WORD", Value: "hello"}}}
	}
	for name, tc := range map[string]struct {
		dir  string
		opts *rutter.PluginOptions
		want string
		err  string
	}{
		"detection by a file":             {"a", nil, "by-file", ""},
		"in the root":                     {".", nil, "by-file", ""},
		"a pattern of one folder":         {"g", nil, "", ""},
		"detection by a glob, deep":       {"b", nil, "by-glob-v1", ""},
		"detection by a glob, here":       {"c", nil, "by-glob-v1", ""},
		"the second version":              {"f", nil, "by-glob-v2", ""},
		"nothing":                         {"e", nil, "", ""},
		"asked, by a file":                {"a", named(""), "by-file", ""},
		"asked, by a command":             {"d", named(""), "by-command", ""},
		"detection by a command":          {"d", nil, "by-command", ""},
		"asked, nothing":                  {"e", named(""), "", "no plugin discovers itself in e"},
		"named":                           {"a", named("by-file"), "by-file", ""},
		"named, with its version":         {"b", named("by-glob-v1"), "by-glob-v1", ""},
		"named, without its version":      {"b", named("by-glob"), "by-glob-v1", ""},
		"named, the other version":        {"f", named("by-glob"), "by-glob-v2", ""},
		"named, not made for it":          {"b", named("by-file"), "", `no file there matches its discover.fileName "./conf/h*.yaml"`},
		"named, the other version's file": {"f", named("by-glob-v1"), "", "discover.find.glob"},
		"named, the command fails":        {"a", named("failing"), "", "discover.find.command finds nothing"},
		"named, the command is silent":    {"a", named("silent"), "", "discover.find.command finds nothing"},
		"named, only the first counts":    {"a", named("first-wins"), "", "discover.fileName"},
		"named, without discovery":        {"e", named("never"), "never", ""},
		"unknown":                         {"e", named("kapitan"), "", `there is no plugin "kapitan": the operator has installed by-file, by-glob-v1`},
		"unknown version":                 {"b", named("by-glob-v3"), "", "there is no plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			r := plugin.New(plugin.Options{Sandbox: newBox(t), Definitions: []plugin.Definition{byFile, byGlob, two, byCommand, silent, failing, first, never}})
			d, ok, err := r.Match(t.Context(), input(t, c, tc.dir, tc.opts))
			if tc.err != "" {
				if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || ok != (tc.want != "") || ok && d.FullName() != tc.want {
				t.Errorf("got %q, %t, %v", d.FullName(), ok, err)
			}
		})
	}
}

// TestDiscoverOnceForAll: what a command says about a folder holds for all
// applications of the folder.
func TestDiscoverOnceForAll(t *testing.T) {
	d := define(t, "p", generate("true")+"  discover: {find: {command: [sh, -c, 'cat f']}}\n")
	r := plugin.New(plugin.Options{Sandbox: newBox(t), Definitions: []plugin.Definition{d}})
	c := newCommit(map[string]string{"a/f": "x", "b/f": "x"})
	for i, word := range []string{"one", "two", "three"} {
		in := input(t, c, "a", &rutter.PluginOptions{Env: []rutter.PluginEnv{{Name: "WORD", Value: word}}})
		in.KubeVersion = "1.3" + strconv.Itoa(i)
		if _, ok, err := r.Match(t.Context(), in); !ok || err != nil {
			t.Errorf("%s: got %t, %v", word, ok, err)
		}
	}
	if _, ok, err := r.Match(t.Context(), input(t, c, "b", nil)); !ok || err != nil {
		t.Errorf("another folder: got %t, %v", ok, err)
	}
	// Each run reads the whole repository.
	if n := c.reads["a/f"]; n != 2 {
		t.Errorf("the command ran %d times for 3 applications of one folder and 1 of another, want 2", n)
	}
}

func TestDiscoverOnce(t *testing.T) {
	d := define(t, "p", generate("true")+"  discover: {find: {command: [sh, -c, 'cat f']}}\n")
	r := plugin.New(plugin.Options{Sandbox: newBox(t), Definitions: []plugin.Definition{d}})
	for _, step := range []struct {
		text  string
		found bool
		reads int
	}{{"x", true, 1}, {"x", true, 0}, {"", false, 1}, {"", false, 0}, {"x", true, 0}} {
		c := newCommit(map[string]string{"a/f": step.text, "g": "other"})
		in := input(t, c, "a", nil)
		_, ok, err := r.Match(t.Context(), in)
		if len(in.Repo.Inputs()) > 0 || len(in.Env.Used()) > 0 {
			t.Errorf("what the command could see is noted: %v %v", in.Repo.Inputs(), in.Env.Used())
		}
		if err != nil || ok != step.found || c.reads["a/f"] != step.reads {
			t.Errorf("%+v: got %t, %d reads, %v", step, ok, c.reads["a/f"], err)
		}
	}
}
