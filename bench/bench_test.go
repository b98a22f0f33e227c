package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPhases runs the whole benchmark small: every phase completes, and a change
// of one overlay costs exactly one render.
func TestPhases(t *testing.T) {
	bin := filepath.Join(t.TempDir(), "bench")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), bin, "--apps", "5", "-o", "json")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	got := map[string]row{}
	for s := bufio.NewScanner(&stdout); s.Scan(); {
		var r row
		if err := json.Unmarshal(s.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, s.Text())
		}
		got[r.Phase] = r
	}
	for _, p := range phaseNames {
		if _, ok := got[p]; !ok {
			t.Errorf("phase %s is missing in %v", p, got)
		}
	}
	if r := got["change-one"]; r.Renders != 1 || r.Applied != 1 {
		t.Errorf("change-one: %d renders and %d objects, want 1 and 1", r.Renders, r.Applied)
	}
	if r := got["no-change"]; r.Renders != 0 || r.Applied != 0 {
		t.Errorf("no-change: %d renders and %d objects, want none", r.Renders, r.Applied)
	}
}
