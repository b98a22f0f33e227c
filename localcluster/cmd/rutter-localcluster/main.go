// Command rutter-localcluster is one real Kubernetes cluster in one process:
// etcd, API server, controllers, scheduler and simulated nodes. It is also
// kubectl.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd"
)

func main() {
	if filepath.Base(os.Args[0]) == "kubectl" || len(os.Args) > 1 && os.Args[1] == "kubectl" {
		kubectl()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := &cobra.Command{
		Use: "rutter-localcluster", Short: "A real Kubernetes cluster in one process, without containers",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(runCommand(), &cobra.Command{
		Use: "kubectl", Short: "The real kubectl", DisableFlagParsing: true, Run: func(*cobra.Command, []string) {},
	})
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "rutter-localcluster:", err)
		os.Exit(1)
	}
}

// kubectl runs the linked-in kubectl with the remaining arguments.
func kubectl() {
	args := os.Args
	if filepath.Base(os.Args[0]) != "kubectl" {
		args = append([]string{"kubectl"}, os.Args[2:]...)
	}
	os.Args = args
	if err := cmd.NewDefaultKubectlCommand().Execute(); err != nil {
		os.Exit(1)
	}
}
