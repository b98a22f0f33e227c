package daemon

import (
	"log/slog"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/sandbox"
)

// Config is everything a controller process needs to know.
type Config struct {
	// REST reaches the control plane.
	REST *rest.Config
	// Namespace is the control plane's own; default argocd.
	Namespace string
	// DataDir holds mirrors and the render store. Both can be rebuilt at any time.
	DataDir string
	// HTTPAddr is where webhooks, health and metrics are served.
	HTTPAddr string
	// Poll is how often Git is asked without a webhook; Jitter is added at random.
	Poll   time.Duration
	Jitter time.Duration
	// Workers look at units in parallel.
	Workers int
	// ExecCommands are the credential plugins that cluster Secrets may name.
	ExecCommands []string
	// AllowUnsigned takes webhooks of providers without a configured secret.
	AllowUnsigned bool
	// Namespaces are patterns of other namespaces whose Applications are acted on.
	Namespaces []string
	// RefuseFiles refuses file:// repositories: on a server they would be the
	// server's own disk.
	RefuseFiles bool
	// Plugins is a folder of ConfigManagementPlugin files; empty means none.
	Plugins string
	// PluginTools are folders with programs that plugins may run, beside the
	// system's. PluginWeakSandbox is content with a part of the sandbox where the
	// kernel does not allow all of it.
	PluginTools       []string
	PluginWeakSandbox bool
	// HelmLookup lets charts look objects of their cluster up, as the tenant.
	HelmLookup bool
	// Submodules reads Git submodules.
	Submodules bool
	// Sets are the decisions about ApplicationSets.
	Sets SetConfig
	// DeletionDeadline is how long an object may be terminating before somebody has
	// to decide; 0 is the engine's default.
	DeletionDeadline time.Duration
	// Params are settings that count before those of argocd-cmd-params-cm.
	Params map[string]string
	// LeaderElect lets several replicas run, one of them at work.
	LeaderElect bool
	// Profiling serves /debug/pprof beside the metrics.
	Profiling bool
	Logger    *slog.Logger
	// Listening is called with the HTTP address once it is bound.
	Listening func(addr string)
	// Reports, when set, is given a function that lists all reports.
	Reports func(list func() []rutter.Report)
}

func (c *Config) defaults() {
	if c.Namespace == "" {
		c.Namespace = "argocd"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.HTTPAddr == "" {
		c.HTTPAddr = "127.0.0.1:0"
	}
}

func (c *Config) allowExec(command string) bool { return slices.Contains(c.ExecCommands, command) }

func (c *Config) pluginRequire() sandbox.Require {
	if c.PluginWeakSandbox {
		return sandbox.EitherWall
	}
	return sandbox.Everything
}
