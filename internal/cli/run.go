package cli

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
)

// logFlags are the flags of commands that log.
type logFlags struct{ level, format string }

func (l *logFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&l.level, "log-level", "info", "log level: debug, info, warn or error")
	c.Flags().StringVar(&l.format, "log-format", "text", "log format: text or json")
}

func (l *logFlags) logger(r *root) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "--log-level %q: use debug, info, warn or error", l.level)
	}
	if l.format != "json" && l.format != "text" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "--log-format %q: use text or json", l.format)
	}
	opts := &slog.HandlerOptions{Level: level}
	if l.format == "json" {
		return slog.New(slog.NewJSONHandler(r.err, opts)), nil
	}
	return slog.New(slog.NewTextHandler(r.err, opts)), nil
}

// controllerFlags are shared by controller and up.
func controllerFlags(c *cobra.Command, o *ControllerOptions) {
	f := c.Flags()
	f.StringVar(&o.HTTPAddr, "http", "127.0.0.1:8080", "address of webhooks (/api/webhook), /healthz, /readyz and /metrics")
	f.DurationVar(&o.Poll, "timeout.reconciliation", 3*time.Minute, "how often Git is asked for new commits without a webhook; 0 never")
	f.DurationVar(&o.Jitter, "timeout.reconciliation.jitter", time.Minute, "added to that at random")
	f.IntVar(&o.Workers, "workers", 4, "units looked at in parallel")
	f.StringSliceVar(&o.ExecCommands, "allow-exec", nil, "commands that cluster Secrets may name as execProviderConfig")
	f.StringSliceVar(&o.Namespaces, "application-namespaces", nil, "patterns of other namespaces whose Applications and ApplicationSets are acted on")
	f.StringVar(&o.Plugins, "plugins", "", "folder of ConfigManagementPlugin files; each runs in a sandbox of its own")
	f.StringSliceVar(&o.PluginTools, "plugin-tools", nil, "folders with programs that plugins may run, beside the system's")
	f.BoolVar(&o.PluginWeakSandbox, "plugin-weak-sandbox", false, "be content with either namespaces or Landlock where the kernel does not allow both")
	f.BoolVar(&o.HelmLookup, "helm-lookup", false, "let charts look objects of their cluster up, with the rights of the project's destinationServiceAccounts")
	f.BoolVar(&o.Submodules, "git-submodules", true, "read Git submodules")
	f.BoolVar(&o.AllowFiles, "allow-file-repositories", false, "take file:// repositories, which are on this machine's own disk")
	f.DurationVar(&o.DeletionDeadline, "deletion-deadline", 15*time.Minute, "how long an object may be terminating before somebody has to decide")
	setFlags(c, &o.Sets)
	syncSettingFlags(c, o)
	f.BoolVar(&o.AllowUnsigned, "webhook-allow-unsigned", false, "take webhooks of providers for which argocd-secret holds no secret")
}

func (r *root) controllerCommand() *cobra.Command {
	o, l := &ControllerOptions{}, &logFlags{}
	c := &cobra.Command{
		Use: "controller", Short: "Run the controller against a control plane", Args: cobra.NoArgs,
		Long: "Runs the controller against the control plane of the kubeconfig, or of the pod it runs in.",
		RunE: func(c *cobra.Command, _ []string) error {
			rc, err := r.rest()
			if err != nil {
				return err
			}
			o.REST, o.Namespace = rc, r.namespace
			if o.Logger, err = l.logger(r); err != nil {
				return err
			}
			return r.deps.Controller(c.Context(), *o)
		},
	}
	controllerFlags(c, o)
	c.Flags().StringVar(&o.DataDir, "data", filepath.Join(os.TempDir(), "rutter"), "folder for Git mirrors and rendered manifests; can be lost at any time")
	c.Flags().BoolVar(&o.LeaderElect, "leader-elect", false, "let several replicas run, one of them at work")
	l.add(c)
	return c
}

func home(parts ...string) string {
	dir, err := os.UserHomeDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(append([]string{dir, ".rutter"}, parts...)...)
}

func (r *root) upCommand() *cobra.Command {
	o, l := &UpOptions{}, &logFlags{}
	c := &cobra.Command{
		Use: "up", Short: "Run a control plane and the controller on this machine", Args: cobra.NoArgs,
		Long: "Starts a real API server with the controller on this machine, keeps its state in a folder, and prints its kubeconfig.\n" +
			"Stopping it (Ctrl-C) and starting it again loses nothing.",
		RunE: func(c *cobra.Command, _ []string) error {
			o.Out, o.Controller.Namespace, o.Controller.AllowFiles = r.out, r.namespace, true // it is the user's own machine
			var err error
			if o.Controller.Logger, err = l.logger(r); err != nil {
				return err
			}
			return r.deps.Up(c.Context(), *o)
		},
	}
	c.Flags().StringVar(&o.Dir, "dir", home("up"), "folder for the state")
	controllerFlags(c, &o.Controller)
	l.add(c)
	return c
}

func (r *root) demoCommand() *cobra.Command {
	o := &DemoOptions{}
	var verbose bool
	c := &cobra.Command{
		Use: "demo", Short: "Run a whole fleet on this machine: control plane, three clusters, Git server", Args: cobra.NoArgs,
		Long: "Starts a control plane, the controller, three member clusters (dev, staging, production) and a Git server on loopback\n" +
			"that holds examples/fleet, shows how they become equal, and says what to try. Ctrl-C ends everything.",
		RunE: func(c *cobra.Command, _ []string) error {
			o.Out, o.JSON, o.Terminal = r.out, r.output == "json", isTerminal(r.out)
			o.Logger = slog.New(slog.DiscardHandler)
			if verbose {
				o.Logger = slog.New(slog.NewTextHandler(r.err, nil))
			}
			return r.deps.Demo(c.Context(), *o)
		},
	}
	r.outputFlag(c)
	c.Flags().BoolVar(&o.ExitWhenSynced, "exit-when-synced", false, "end with 0 once every application is Synced and Healthy")
	c.Flags().DurationVar(&o.Timeout, "timeout", 0, "end with an error when that is not so within this time")
	c.Flags().StringVar(&o.Dir, "dir", "", "keep the state in this folder; otherwise it is thrown away")
	c.Flags().StringVar(&o.Fleet, "fleet", "", "folder to use in place of examples/fleet")
	c.Flags().BoolVar(&verbose, "verbose", false, "show the controller's log")
	return c
}
