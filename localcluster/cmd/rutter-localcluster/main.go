// Command rutter-localcluster is one real Kubernetes cluster in one process:
// etcd, API server, controllers, scheduler and simulated nodes. It is also
// kubectl, by "rutter-localcluster kubectl" and under the name kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	if args, ok := kubectlArgs(os.Args); ok {
		kubectl(args)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	root := &cobra.Command{
		Use: "rutter-localcluster", Short: "A real Kubernetes cluster in one process, without containers",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(runCommand(), &cobra.Command{
		// The arguments are kubectl's own, and it has to see them first: main
		// handles it. This is its line in the help.
		Use: "kubectl", Short: "The real kubectl", DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) { kubectl(append([]string{"kubectl"}, args...)) },
	})
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rutter-localcluster:", err)
		os.Exit(1)
	}
}

// kubectlArgs are the arguments as kubectl would see them, if it is kubectl that
// was asked for.
func kubectlArgs(args []string) ([]string, bool) {
	if len(args) > 0 && filepath.Base(args[0]) == "kubectl" {
		return args, true
	}
	if len(args) > 1 && args[1] == "kubectl" {
		return args[1:], true
	}
	return nil, false
}
