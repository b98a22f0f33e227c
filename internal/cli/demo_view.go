package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// DemoView draws the demo: a table that is redrawn in place on a terminal, one
// line for each change elsewhere, and nothing but the result with -o json.
type DemoView struct {
	mu    sync.Mutex
	out   io.Writer
	json  bool
	term  bool
	lines int // of the table that stands on the screen
	last  map[string]AppRow
	drawn time.Time
}

// NewDemoView returns a view for the demo's options.
func NewDemoView(o DemoOptions) *DemoView {
	return &DemoView{out: o.Out, json: o.JSON, term: o.Terminal, last: map[string]AppRow{}}
}

// Say prints a line for people.
func (v *DemoView) Say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		return
	}
	fmt.Fprintf(v.out, format+"\n", args...)
	v.lines = 0
}

// redraw is the shortest time between two drawings of the table.
const redraw = 100 * time.Millisecond

// Show shows where every Application stands.
func (v *DemoView) Show(apps []v1alpha1.Application, servers map[string]string, started time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		return
	}
	if !v.term {
		v.changes(apps, servers, started)
		return
	}
	if time.Since(v.drawn) < redraw && v.lines > 0 && !settled(apps) {
		return
	}
	v.drawn = time.Now()
	var b strings.Builder
	if v.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", v.lines)
	}
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "APPLICATION\tCLUSTER\tSYNC\tHEALTH\tREVISION\tAGE")
	for i := range apps {
		row := RowOf(&apps[i], servers)
		age := time.Since(apps[i].CreationTimestamp.Time).Round(time.Second)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Name, row.Cluster, row.Sync, row.Health, orDash(short(row.Revision)), age)
	}
	_ = w.Flush() // to memory
	text := b.String()
	v.lines = len(apps) + 1
	fmt.Fprint(v.out, colour(text))
}

// changes prints one line for each Application whose state changed.
func (v *DemoView) changes(apps []v1alpha1.Application, servers map[string]string, started time.Time) {
	for i := range apps {
		row := RowOf(&apps[i], servers)
		row.Message = ""
		if v.last[row.Name] != row {
			v.last[row.Name] = row
			fmt.Fprintf(v.out, "%6.1fs  %-28s %-12s %-10s %-12s %s\n", time.Since(started).Seconds(), row.Name, row.Cluster, row.Sync, row.Health, orDash(short(row.Revision)))
		}
	}
}

func settled(apps []v1alpha1.Application) bool {
	for i := range apps {
		if apps[i].Status.Sync.Status != string(rutter.Synced) || apps[i].Status.Health.Status != string(rutter.Healthy) {
			return false
		}
	}
	return true
}

// colour marks states for a terminal; the codes do not change the columns.
func colour(s string) string {
	const green, yellow, red, off = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
	return strings.NewReplacer("  Synced", "  "+green+"Synced"+off, "  Healthy", "  "+green+"Healthy"+off, "  OutOfSync", "  "+yellow+"OutOfSync"+off,
		"  Progressing", "  "+yellow+"Progressing"+off, "  Missing", "  "+yellow+"Missing"+off, "  Degraded", "  "+red+"Degraded"+off).Replace(s)
}

// Final prints the result of a demo that ends when all is well.
func (v *DemoView) Final(apps []v1alpha1.Application, servers map[string]string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.json {
		return nil
	}
	out := struct {
		Applications []AppRow `json:"applications"`
	}{Applications: []AppRow{}}
	for i := range apps {
		out.Applications = append(out.Applications, RowOf(&apps[i], servers))
	}
	enc := json.NewEncoder(v.out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
