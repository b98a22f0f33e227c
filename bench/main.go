// Command bench times Rutter against the limit of the same machine in the same
// run: a bare loop that sends the same objects to the same kind of API server.
// It prints figures and ratios and judges nothing.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/rutterhq/rutter/internal/daemon"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "controller" {
		exit(controller(ctx, os.Args[2], os.Args[3]))
	}
	b := bench{}
	flag.IntVar(&b.apps, "apps", 1000, "applications of the set, of three objects each")
	phases := flag.String("phases", "all", "comma list of limit, set-to-applications, first-sync, change-one, change-all, no-change; sync or all for all of them")
	output := flag.String("o", "table", "table or json (one line a phase)")
	profile := flag.String("profile", "", "write the controller's CPU profile of first-sync to this file")
	flag.Parse()
	b.json, b.profile = *output == "json", *profile
	b.want = wanted(*phases)
	exit(b.run(ctx))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

var phaseNames = []string{"limit", "set-to-applications", "first-sync", "change-one", "change-all", "no-change"}

// wanted reads --phases. Later phases need the earlier ones to have run; those
// are run and not shown.
func wanted(s string) map[string]bool {
	want := map[string]bool{}
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p == "all" || p == "sync" || p == "" {
			for _, n := range phaseNames {
				want[n] = true
			}
		} else {
			want[p] = true
		}
	}
	return want
}

// controller is the child process whose memory and processor time are counted:
// the same controller as rutter controller.
func controller(ctx context.Context, kubeconfig, dir string) error {
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	rc.QPS = -1
	return daemon.Run(ctx, daemon.Config{REST: rc, DataDir: dir, Poll: time.Hour, AllowUnsigned: true, Profiling: true,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Listening: func(addr string) { fmt.Println(addr) }})
}
