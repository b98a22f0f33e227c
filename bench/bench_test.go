package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asProgram makes the test binary the program: nothing is built twice.
const asProgram = "RUTTER_BENCH_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(mainCode())
	}
	os.Exit(m.Run())
}

// TestPhases runs the whole benchmark small: every phase completes with its
// content on the API server, and the counters show that nothing was done in vain.
func TestPhases(t *testing.T) {
	t.Parallel()
	const apps = 5
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--apps", "5", "-o", "json", "--timeout", "3m")
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	got, order := read(t, &stdout)
	if diff := cmp.Diff(phaseNames, order); diff != "" {
		t.Fatalf("phases (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		phase         string
		renders, sent int64
		reason        string
	}{
		{phaseFirst, apps, 3 * apps, "each object is sent once"},
		{phaseChangeOne, 1, 1, "one overlay is rendered, and the one object that it changes is sent"},
		{phaseChangeAll, apps, apps, "the base concerns all, in one object of three"},
		{phaseNoChange, 0, 0, "no application reads the README"},
	} {
		r := got[tc.phase]
		if r.Renders != tc.renders || r.Applied != tc.sent || r.Requests["apply"] != tc.sent || r.After.Applied != 0 {
			t.Errorf("%s: %d renders, %d objects in %v, %d afterwards; want %d and %d: %s",
				tc.phase, r.Renders, r.Applied, r.Requests, r.After.Applied, tc.renders, tc.sent, tc.reason)
		}
	}
	for _, phase := range phaseNames {
		if r := got[phase]; r.RSS <= 0 || r.MS < 0 || r.Ratio <= 0 {
			t.Errorf("%s: no figures in %+v", phase, r)
		}
	}
	if want := map[string]int64{"apply": 3 * apps, "create": apps, "patch": 2 * apps}; !maps.Equal(got[phaseLimit].Requests, want) {
		t.Errorf("the limit sent %v, want %v", got[phaseLimit].Requests, want)
	}
}

func read(t *testing.T, from io.Reader) (rows map[string]row, order []string) {
	t.Helper()
	rows = map[string]row{}
	for d := json.NewDecoder(from); ; {
		var r row
		err := d.Decode(&r)
		if err == io.EOF {
			return rows, order
		}
		if err != nil {
			t.Fatalf("read the figures: %v", err)
		}
		rows[r.Phase] = r
		order = append(order, r.Phase)
	}
}

// TestOptions reads the command line.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args, want, err string
	}{
		{args: "", want: strings.Join(phaseNames, ",")},
		{args: "--phases sync", want: strings.Join(phaseNames, ",")},
		{args: "--phases limit,change-one", want: "limit,change-one"},
		{args: "--phases first", err: `"first" is none of`},
		{args: "--apps 0", err: "--apps 0"},
		{args: "-o yaml", err: "-o yaml"},
		{args: "sync", err: `unexpected argument "sync"`},
	} {
		got, err := parse(strings.Fields(tc.args))
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %s", tc.args, err, tc.err)
			}
		case err != nil:
			t.Errorf("%s: %v", tc.args, err)
		case !slices.Equal(got.phases, strings.Split(tc.want, ",")):
			t.Errorf("%s: phases %v, want %s", tc.args, got.phases, tc.want)
		}
	}
}

// TestTable shows a table as a person reads it.
func TestTable(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := printer{w: &out, apps: 1000}
	r := row{Phase: phaseNoChange, MS: 1250, Ratio: 0.5, CPU: 1.5, Others: 0.3, Requests: map[string]int64{"get": 1, "apply": 30, "patch": 1}, After: &after{CPU: 2}}
	if err := p.print(r); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	got := strings.Join(strings.Fields(lines[len(lines)-1]), " ")
	if want := "no-change 1.25s 0.50 0.00 0 MB 0 MB 1.5s 0.0s 2.0s 0.3s 0 0 apply 30, get 1, patch 1"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
}
