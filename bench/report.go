package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"
)

// row is one phase's figures. In the row of the limit, memory and processor time
// are those of the loop.
type row struct {
	Phase string `json:"phase"`
	MS    int64  `json:"ms"`
	// Ratio is to the bare loop of the same run, AppliesRatio to its applies
	// alone, ChangeRatio to a bare loop of one changed object for each application.
	Ratio        float64 `json:"ratio_to_limit"`
	AppliesRatio float64 `json:"ratio_to_applies"`
	ChangeRatio  float64 `json:"ratio_to_change,omitempty"`
	RSS          float64 `json:"rss_mb"`
	Peak         float64 `json:"peak_rss_mb"`
	CPU          float64 `json:"cpu_s"`
	// ServerCPU is the API server's, etcd's included.
	ServerCPU float64 `json:"server_cpu_s"`
	ServerRSS float64 `json:"server_rss_mb"`
	// Others is the processor time of everything else on the machine.
	Others   float64          `json:"others_cpu_s"`
	Requests map[string]int64 `json:"requests"`
	Renders  int64            `json:"renders"`
	Applied  int64            `json:"applied"`
	// Looked is how often a unit was looked at.
	Looked int64 `json:"looked_at"`
	// After is what was still done after the phase's end, until rest.
	After *after `json:"after,omitempty"`

	AppliesMS int64 `json:"applies_ms,omitempty"`
	ChangeMS  int64 `json:"change_ms,omitempty"`
}

type after struct {
	CPU       float64          `json:"cpu_s"`
	ServerCPU float64          `json:"server_cpu_s"`
	Requests  map[string]int64 `json:"requests"`
	Applied   int64            `json:"applied"`
}

func (b *bench) row(phase string, began, now counters) row {
	d, took := now.since(began), now.at.Sub(began.at)
	r := row{Phase: phase, MS: took.Milliseconds(), Ratio: ratio(took, b.limit.total), AppliesRatio: ratio(took, b.limit.applies),
		CPU: round(d.cpu), ServerCPU: round(d.serverCPU), RSS: round(d.rss), Peak: round(d.peak), ServerRSS: round(d.serverRSS), Others: round(d.others()),
		Renders: d.renders, Applied: d.applied, Looked: d.units, Requests: d.requests}
	if phase == phaseChangeAll {
		r.ChangeRatio = ratio(took, b.limit.change)
	}
	return r
}

func (r *row) after(d counters) {
	r.After = &after{CPU: round(d.cpu), ServerCPU: round(d.serverCPU), Requests: d.requests, Applied: d.applied}
}

func ratio(d, of time.Duration) float64 { return round(d.Seconds() / of.Seconds()) }

func round(f float64) float64 { return math.Round(f*100) / 100 }

func (b *bench) show(r row) error {
	if !slices.Contains(b.phases, r.Phase) {
		return nil
	}
	if err := b.out.print(r); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printer writes rows.
type printer struct {
	w     io.Writer
	json  bool
	apps  int
	begun bool
}

const header = `%d applications of 3 objects each, %d cores for everything. TIME / LIMIT: in times of a bare loop that sends the same
objects, and for each Application one create and two status writes; TIME / APPLIES: in times of its applies alone, as Argo CD 3.6
needs 65 for first-sync and 57 for change-all, and Flux 42 and 39. RSS and CPU are Rutter's (in the line of the limit: the loop's).
THEN: processor time spent after the phase, until rest. OTHERS: of whatever else ran on the machine; a figure beside it is too large.

`

const columns = "%-20s %9s %8s %10s %8s %8s %7s %7s %7s %7s %8s %8s  %s\n"

func (p *printer) print(r row) error {
	if p.json {
		return json.NewEncoder(p.w).Encode(r)
	}
	var out strings.Builder
	if !p.begun {
		p.begun = true
		fmt.Fprintf(&out, header, p.apps, runtime.NumCPU())
		fmt.Fprintf(&out, columns, "PHASE", "TIME", "/ LIMIT", "/ APPLIES", "RSS", "PEAK", "CPU", "SERVER", "THEN", "OTHERS", "RENDERS", "APPLIED", "REQUESTS")
	}
	then := "-"
	if r.After != nil {
		then = fmt.Sprintf("%.1fs", r.After.CPU)
	}
	fmt.Fprintf(&out, columns, r.Phase, fmt.Sprintf("%.2fs", float64(r.MS)/1000), fmt.Sprintf("%.2f", r.Ratio), fmt.Sprintf("%.2f", r.AppliesRatio),
		fmt.Sprintf("%.0f MB", r.RSS), fmt.Sprintf("%.0f MB", r.Peak), fmt.Sprintf("%.1fs", r.CPU), fmt.Sprintf("%.1fs", r.ServerCPU), then,
		fmt.Sprintf("%.1fs", r.Others), fmt.Sprint(r.Renders), fmt.Sprint(r.Applied), requests(r.Requests))
	if r.ChangeMS > 0 {
		fmt.Fprintf(&out, "%20s %s\n", "", fmt.Sprintf("of it applies %.2fs; a loop of one changed object and two status writes each: %.2fs", float64(r.AppliesMS)/1000, float64(r.ChangeMS)/1000))
	}
	if r.ChangeRatio > 0 {
		fmt.Fprintf(&out, "%20s %s\n", "", fmt.Sprintf("%.2f times the loop of one changed object and two status writes each", r.ChangeRatio))
	}
	_, err := io.WriteString(p.w, out.String())
	return err
}

// requests lists what was sent, most first.
func requests(byVerb map[string]int64) string {
	var names []string
	for verb := range byVerb {
		names = append(names, verb)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := byVerb[b] - byVerb[a]; d != 0 {
			return int(d)
		}
		return strings.Compare(a, b)
	})
	for i, verb := range names {
		names[i] = fmt.Sprintf("%s %d", verb, byVerb[verb])
	}
	return strings.Join(names, ", ")
}
