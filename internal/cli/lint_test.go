package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rutterhq/rutter/internal/cli"
)

// TestLintExitCodes: 0 clean, 1 found, 2 could not read.
func TestLintExitCodes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clean, bad := write("clean.yaml", "a: 1\n"), write("bad.yaml", "a: 1\na: 2\n")
	info := write("info.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {destination: {}}\n")
	locked := filepath.Join(dir, "gone.yaml")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), locked); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		args   []string
		want   int
	}{
		{"nothing wrong", []string{clean}, 0},
		{"an error", []string{clean, bad}, 1},
		{"an info only", []string{info}, 0},
		{"an error that is not shown", []string{bad, "--rule", "plaintext-secret"}, 0},
		{"a file that is missing, beside one with an error", []string{bad, filepath.Join(dir, "missing.yaml")}, 2},
		{"a link to nothing, by name", []string{locked}, 2},
		{"a link to nothing, in a folder", []string{dir, "--severity", "error"}, 1},
		{"a flag that is none", []string{"--no-such-flag"}, 2},
	} {
		var out, stderr bytes.Buffer
		got := cli.Main(t.Context(), append([]string{"lint"}, c.args...), strings.NewReader(""), &out, &stderr, "test", cli.Deps{})
		if got != c.want {
			t.Errorf("%s: exit code %d, want %d\n%s%s", c.reason, got, c.want, &out, &stderr)
		}
	}
}

// TestLintSARIF: what code hosts insist on.
func TestLintSARIF(t *testing.T) {
	var out, stderr bytes.Buffer
	cli.Main(t.Context(), []string{"lint", "-o", "sarif", filepath.Join("..", "..", "test", "lint", "testdata", "anti-patterns")}, strings.NewReader(""), &out, &stderr, "v1", cli.Deps{})
	var log struct {
		Schema  string `json:"$schema"`
		Version string `json:"version"`
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string `json:"name"`
					Rules []struct {
						ID string `json:"id"`
					} `json:"rules"`
				} `json:"driver"`
			} `json:"tool"`
			Results []struct {
				RuleID    string `json:"ruleId"`
				RuleIndex int    `json:"ruleIndex"`
				Level     string `json:"level"`
				Message   struct {
					Text string `json:"text"`
				} `json:"message"`
				Locations []struct {
					Physical struct {
						Artifact struct {
							URI string `json:"uri"`
						} `json:"artifactLocation"`
						Region struct {
							StartLine   int `json:"startLine"`
							StartColumn int `json:"startColumn"`
						} `json:"region"`
					} `json:"physicalLocation"`
				} `json:"locations"`
			} `json:"results"`
		} `json:"runs"`
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || !strings.Contains(log.Schema, "sarif") || len(log.Runs) != 1 {
		t.Fatalf("version %q, schema %q, %d runs", log.Version, log.Schema, len(log.Runs))
	}
	run := log.Runs[0]
	if len(run.Results) < 20 || run.Tool.Driver.Name == "" {
		t.Fatalf("%d results of %q\n%s", len(run.Results), run.Tool.Driver.Name, &stderr)
	}
	for _, r := range run.Results {
		at := r.Locations[0].Physical
		if run.Tool.Driver.Rules[r.RuleIndex].ID != r.RuleID || r.Message.Text == "" || at.Artifact.URI == "" || at.Region.StartLine < 1 || at.Region.StartColumn < 1 ||
			!slices.Contains([]string{"error", "warning", "note"}, r.Level) {
			t.Errorf("%+v", r)
		}
	}
}
