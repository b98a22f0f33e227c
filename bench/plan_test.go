package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// TestPlanPhases runs the bench of plans small: what a change concerns is in the
// plan, and nothing else, whichever way the applications are declared.
func TestPlanPhases(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--apps", "150", "--phases", "plan", "-o", "json", "--timeout", "3m")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	want := map[string]int{"plan-cold": perBase, "plan-again": perBase, "plan-base": perBase, "plan-one": 1, "plan-readme": 0}
	rows := 0
	for d := json.NewDecoder(&stdout); d.More(); rows++ {
		var r planRow
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if n := want[r.Phase]; r.Changed != n || r.Objects != n || r.Groups != min(n, 1) {
			t.Errorf("%s (%s): %d applications, %d objects in %d groups; want %d in one", r.Phase, r.As, r.Changed, r.Objects, r.Groups, n)
		}
		if r.Lines > 24 {
			t.Errorf("%s: %d lines do not fit a screen", r.Phase, r.Lines)
		}
	}
	if rows != 2*len(want) {
		t.Errorf("%d rows, want %d", rows, 2*len(want))
	}
}
