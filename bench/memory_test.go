package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// runSmall runs the program and decodes what it prints, one value a line.
func runSmall[T any](t *testing.T, args ...string) []T {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], append(args, "-o", "json", "--timeout", "5m")...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	var rows []T
	for d := json.NewDecoder(&stdout); d.More(); {
		var r T
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// TestMemoryPhases runs the bench of memory small: each stage has the objects that
// it says, and the foreign ones do change.
func TestMemoryPhases(t *testing.T) {
	t.Parallel()
	type stage struct {
		Phase            string
		Managed, Foreign int
	}
	var got []stage
	for _, r := range runSmall[memoryRow](t, "--phases", "memory", "--objects", "100", "--foreign", "1200", "--quiet", "600ms") {
		got = append(got, stage{r.Phase, r.Managed, r.Foreign})
		if r.Heap <= 0 || r.RSS <= 0 || r.CPU < 0 || (r.Phase == "memory-churn") != (r.Changes > 0) {
			t.Errorf("%+v", r)
		}
	}
	want := []stage{{"memory-base", 4, 0}, {"memory-synced", 104, 0}, {"memory-managed", 104, 0},
		{"memory-foreign-came", 104, 1200}, {"memory-foreign", 104, 1200}, {"memory-churn", 104, 1200}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEditPhases runs the bench of live edits small: every edit is seen, and put
// back where that is asked for, in quiet and beside a large sync.
func TestEditPhases(t *testing.T) {
	t.Parallel()
	var got []string
	for _, r := range runSmall[editRow](t, "--phases", "edit", "--objects", "200", "--edits", "12") {
		got = append(got, r.Phase)
		if r.Edits != 12 || r.P50 <= 0 || r.P50 > r.P99 || strings.HasPrefix(r.Phase, "edit-") != (r.Ratio > 0) {
			t.Errorf("%+v", r)
		}
	}
	want := []string{"bare-verdict-idle", "edit-verdict-idle", "bare-repair-idle", "edit-repair-idle",
		"bare-verdict-busy", "edit-verdict-busy", "bare-repair-busy", "edit-repair-busy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for i := range 200 {
		took = append(took, time.Duration(200-i)*time.Millisecond)
	}
	if diff := cmp.Diff(quantiles{P50: 101, P90: 181, P99: 199, Max: 200}, quantilesOf(took)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
