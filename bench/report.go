package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// row is one phase's figures.
type row struct {
	Phase string `json:"phase"`
	MS    int64  `json:"ms"`
	// Ratio is to the bare loop of the same run.
	Ratio float64 `json:"ratio_to_limit"`
	RSS   float64 `json:"rss_mb"`
	CPU   float64 `json:"cpu_s"`
	// ServerCPU is the API server's, etcd's included.
	ServerCPU float64          `json:"server_cpu_s"`
	Requests  map[string]int64 `json:"requests,omitempty"`
	Renders   int64            `json:"renders"`
	Applied   int64            `json:"applied"`
}

// mark remembers the counters at the beginning of a phase.
func (b *bench) mark() time.Time {
	b.previous = b.counters(context.Background())
	return time.Now()
}

// counters reads the controller's metrics and both processes' processor time.
func (b *bench) counters(ctx context.Context) map[string]float64 {
	out := map[string]float64{}
	_, out["cpu"] = usage(b.child.Process.Pid)
	_, out["server"] = usage(b.server.PID)
	data, err := b.get(ctx, "/metrics")
	if err != nil {
		return out
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		name, value, ok := strings.Cut(line, " ")
		if ok && strings.HasPrefix(name, "rutter_") {
			out[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return out
}

var verb = regexp.MustCompile(`^rutter_cluster_requests_total\{verb="(.*)"\}$`)

func (b *bench) report(ctx context.Context, phase string, took time.Duration, _ time.Time) {
	now := b.counters(ctx)
	delta := func(name string) float64 { return now[name] - b.previous[name] }
	r := row{Phase: phase, MS: took.Milliseconds(), Ratio: took.Seconds() / b.limit.Seconds(), CPU: delta("cpu"), ServerCPU: delta("server"),
		Renders: int64(delta("rutter_renders_total")), Applied: int64(delta("rutter_objects_applied_total")), Requests: map[string]int64{}}
	r.RSS, _ = usage(b.child.Process.Pid)
	for name := range now {
		if m := verb.FindStringSubmatch(name); m != nil && delta(name) > 0 {
			r.Requests[m[1]] = int64(delta(name))
		}
	}
	if b.want[phase] {
		b.print(r)
	}
}

func (b *bench) print(r row) {
	if b.json {
		_ = json.NewEncoder(os.Stdout).Encode(r)
		return
	}
	if !b.printed {
		b.printed = true
		fmt.Printf("%d applications of 3 objects, on %d cores' worth of one machine; ratios to a bare loop in the same run\n", b.apps, 2)
		fmt.Printf("(Argo CD 3.6 needs 65 and 57 times the bare loop of its objects for first-sync and change-all, Flux 42 and 39)\n\n")
		fmt.Printf("%-20s %9s %7s %8s %7s %10s %8s %8s  %s\n", "PHASE", "TIME", "RATIO", "RSS", "CPU", "SERVER CPU", "RENDERS", "APPLIED", "REQUESTS TO MEMBERS")
	}
	var reqs []string
	for _, v := range []string{"apply", "dry-run", "get", "list", "watch", "delete", "patch", "create", "other"} {
		if r.Requests[v] > 0 {
			reqs = append(reqs, fmt.Sprintf("%s %d", v, r.Requests[v]))
		}
	}
	fmt.Printf("%-20s %8.2fs %7.2f %5.0f MB %6.1fs %9.1fs %8d %8d  %s\n", r.Phase, float64(r.MS)/1000, r.Ratio, r.RSS, r.CPU, r.ServerCPU, r.Renders, r.Applied, strings.Join(reqs, ", "))
}

func split(s string) []string { return strings.Split(s, "---\n") }
