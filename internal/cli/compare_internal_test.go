package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/internal/matrix"
)

func shownMatrix() matrix.Matrix {
	many := []string{"a", "b", "c", "d", "e", "f", "g"}
	return matrix.Matrix{
		Columns: []matrix.Column{{Name: "a"}, {Name: "z", Application: "api-z", Problem: "gone\x1b[31m"}},
		Equal:   3,
		Rows: []matrix.Row{
			{Group: "apps", Kind: "Deployment", Name: "api", Field: ".spec.replicas", Verdict: matrix.Both, Cells: []matrix.Cell{
				{Columns: many, Declared: "2", Because: []matrix.Because{{Columns: many[:1], Text: "o/a.yaml:1"}, {Columns: many[1:2], Text: "o/b.yaml:1"}, {Columns: many[2:3], Text: "o/c.yaml:1"}, {Columns: many[3:], Text: "x"}}},
				{Columns: []string{"y"}, Declared: "2", Drifted: true, Live: "7", Because: []matrix.Because{{Columns: []string{"y"}, Text: "edited by hand"}}},
			}},
			{Kind: "ConfigMap", Name: "c", Verdict: matrix.NotCompared, Cells: []matrix.Cell{{Columns: []string{"y"}, Declared: `"declared"`, Unknown: true, Because: []matrix.Because{{Columns: []string{"y"}, Text: "a|b`c"}}}}},
		},
	}
}

// TestShowMatrix: many clusters are one line, and nothing steers the terminal.
func TestShowMatrix(t *testing.T) {
	var out strings.Builder
	showMatrix(&out, shownMatrix(), matrixSummary(shownMatrix()))
	want := `apps/Deployment/api
  both        .spec.replicas
      a, b, c, d, e, f and 1 more: 2
          a: o/a.yaml:1
          b: o/b.yaml:1
          c: o/c.yaml:1
          and 1 more: see -o json
      y: 7 instead of 2
          edited by hand
ConfigMap/c
  not compared  (the whole object)
      y: "declared", live: not known
          a|b` + "`c" + `
1 cluster compared: 1 intended difference, 1 accidental; 3 objects the same everywhere; 1 could not be compared
not compared: z (api-z): gone�[31m
`
	want = strings.ReplaceAll(want, `\uFFFD`, "\uFFFD")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarkdownMatrix(t *testing.T) {
	var out strings.Builder
	markdownMatrix(&out, shownMatrix(), matrixSummary(shownMatrix()))
	for _, want := range []string{
		"| `apps/Deployment/api` | `.spec.replicas` | **both** | `a, b, c, d, e, f and 1 more` | `2` | `a: o/a.yaml:1`<br>",
		"|  |  |  | `y` | `7 instead of 2` | `edited by hand` |",
		"`` a\\|b`c ``", "- `not compared: z (api-z): gone\uFFFD[31m`",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}
