package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// TestGeneratePhases runs the bench of sets small: what has not changed is not
// written, and one changed element is one write, by itself as with a controller.
func TestGeneratePhases(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--apps", "300", "--phases", "generate", "-o", "json", "--timeout", "5m")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	want := map[string]int{"simple-loop": 0, "generate-first": 300, "generate-no-change": 0, "generate-one-change": 1,
		"bare-creates": 300, "live-create": 300, "live-no-change": 0, "live-one-change": 1}
	rows := 0
	for d := json.NewDecoder(&stdout); d.More(); rows++ {
		var r generateRow
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Writes != want[r.Phase] || r.Apps != 300 || r.Status >= maxStatus {
			t.Errorf("%+v, wanted %d writes", r, want[r.Phase])
		}
	}
	if rows != len(want) {
		t.Errorf("%d rows, want %d", rows, len(want))
	}
}
