package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Exit codes.
const (
	ExitOK        = 0
	ExitDifferent = 1
	ExitError     = 2
)

// exit carries a code to Main; its text has been printed already.
type exit struct{ code int }

// Error implements error.
func (e exit) Error() string { return fmt.Sprintf("exit with %d", e.code) }

// root holds what all commands share.
type root struct {
	deps       Deps
	version    string
	in         io.Reader
	out, err   io.Writer
	kubeconfig string
	context    string
	namespace  string
	output     string
}

// Main runs the command line and returns its exit code.
func Main(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer, version string, deps Deps) int {
	r := &root{deps: deps, version: version, in: in, out: out, err: stderr}
	cmd := r.command() //nolint:contextcheck // commands get their context when they run
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	var e exit
	switch {
	case errors.As(err, &e):
		return e.code
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(stderr, "rutter: interrupted")
		return ExitError
	case err != nil:
		fmt.Fprintln(stderr, "rutter:", err)
		return ExitError
	}
	return ExitOK
}

func (r *root) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rutter", Short: "Keeps a fleet of Kubernetes clusters equal to what Git declares",
		SilenceUsage: true, SilenceErrors: true, Version: r.version,
	}
	cmd.PersistentPreRunE = r.checkOutput
	f := cmd.PersistentFlags()
	f.StringVar(&r.kubeconfig, "kubeconfig", "", "kubeconfig of the control plane (default: $KUBECONFIG, then ~/.kube/config)")
	f.StringVar(&r.context, "context", "", "context of the kubeconfig")
	f.StringVarP(&r.namespace, "namespace", "n", "argocd", "namespace of the control plane's objects")
	cmd.AddCommand(r.controllerCommand(), r.upCommand(), r.demoCommand(), r.appCommand(), r.appsetCommand(),
		r.clusterCommand(), r.projectCommand(), r.repoCommand(), r.renderCommand(), r.planCommand(), r.lintCommand(), r.diffCommand(), r.approveCommand(), r.holdCommand(), r.unholdCommand(), r.holdsCommand(), r.healthCommand(), r.explainCommand(), r.driftCommand(), r.compareCommand(), r.syncCommand(), r.cedeCommand())
	strict(cmd)
	return cmd
}

// strict makes a group of commands refuse a word that is none of them, and every
// command an output that it does not know.
func strict(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		strict(c)
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return rutter.Errorf(rutter.CodeInvalid, "unknown command %q for %q: see '%s --help'", args[0], c.CommandPath(), c.CommandPath())
		}
	}
}

// checkOutput refuses a format that is not known before anything is done.
func (r *root) checkOutput(c *cobra.Command, _ []string) error {
	if f := c.Flags().Lookup("output"); f != nil && !slices.Contains([]string{"table", "wide", "json", "yaml"}, r.output) {
		return rutter.Errorf(rutter.CodeInvalid, "-o %q: use table, wide, json or yaml", r.output)
	}
	return nil
}

// output adds the -o flag to a command.
func (r *root) outputFlag(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&r.output, "output", "o", "table", "output: table, wide, json or yaml")
	return c
}

// rest reaches the control plane.
func (r *root) rest() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = r.kubeconfig
	rc, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: r.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the control plane: %w (set KUBECONFIG to the kubeconfig that 'rutter up' or 'rutter demo' printed, or use --kubeconfig)", err)
	}
	rc.QPS = -1
	return rc, nil
}

func scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	return s, nil
}

// client reads and writes the control plane's objects.
func (r *root) client() (client.WithWatch, error) {
	rc, err := r.rest()
	if err != nil {
		return nil, err
	}
	s, err := scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(rc, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("reach the control plane: %w", err)
	}
	return c, nil
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
