package cli

import (
	"context"
	"io"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/actions"
	"github.com/rutterhq/rutter/internal/explain"
	"github.com/rutterhq/rutter/internal/matrix"
	"github.com/rutterhq/rutter/internal/preview"
)

// Deps are what the commands need of the adapters; cmd/rutter fills them in.
type Deps struct {
	Controller func(ctx context.Context, o ControllerOptions) error
	Up         func(ctx context.Context, o UpOptions) error
	Demo       func(ctx context.Context, o DemoOptions) error
	// Render renders the sources of an Application, each with an explanation
	// where the options ask for them.
	Render func(ctx context.Context, o RenderOptions) (rutter.Manifests, []rutter.Explanation, error)
	// Snapshot opens a folder or a bare repository as what a URL stands for.
	Snapshot func(ctx context.Context, local map[string]string, repo rutter.Repo) (rutter.Snapshot, error)
	// Diff compares an Application with its cluster, from this process.
	Diff func(ctx context.Context, o DiffOptions) (rutter.Report, error)
	// Explain says why an Application is not in sync or not healthy.
	Explain func(ctx context.Context, o DiffOptions) (AppAnswer, error)
	// Actions says what can be done to the objects of an Application, and RunAction
	// does it.
	Actions   func(ctx context.Context, o ActionOptions) (ActionOffers, error)
	RunAction func(ctx context.Context, o ActionOptions) ([]ActionDone, error)
	// Compare lays what several clusters have of an application side by side.
	Compare func(ctx context.Context, o CompareOptions) (ClusterMatrix, error)
	// Plan says what a change of a repository would do to the fleet.
	Plan func(ctx context.Context, o PlanOptions) (FleetPlan, error)
	// ExportClusters is the inventory of a control plane's members.
	ExportClusters func(ctx context.Context, o ExportOptions) (ClusterInventory, error)

	Clusters LocalClusters
}

// CompareOptions are those of rutter compare.
type CompareOptions struct {
	REST        *rest.Config
	Namespace   string
	App, Labels string
	Clusters    []string
}

// ClusterMatrix is what differs between clusters.
type ClusterMatrix = matrix.Matrix

// LocalClusters manage clusters on this machine.
type LocalClusters struct {
	Create     func(ctx context.Context, root, name string, hub bool, nodes int, version string) (LocalCluster, error)
	List       func(root string) ([]LocalCluster, error)
	Delete     func(ctx context.Context, root, name string) error
	Kubeconfig func(root, name string) ([]byte, error)
}

// LocalCluster is a cluster on this machine.
type LocalCluster struct {
	Name    string    `json:"name"`
	Server  string    `json:"server"`
	Shape   string    `json:"shape"`
	Running bool      `json:"running"`
	Created time.Time `json:"created"`
}

// ControllerOptions are those of rutter controller.
type ControllerOptions struct {
	REST          *rest.Config
	Namespace     string
	DataDir       string
	HTTPAddr      string
	Poll, Jitter  time.Duration
	Workers       int
	ExecCommands  []string
	AllowUnsigned bool
	AllowFiles    bool
	Namespaces    []string
	// Plugins is a folder of ConfigManagementPlugin files; HelmLookup lets charts
	// look objects of their cluster up, as the tenant.
	Plugins     string
	PluginTools []string
	// PluginWeakSandbox is content with a part of the sandbox.
	PluginWeakSandbox bool
	HelmLookup        bool
	Submodules        bool
	// Params are settings that count before those of argocd-cmd-params-cm.
	Params      map[string]string
	LeaderElect bool
	// DeletionDeadline is how long an object may be terminating before somebody has
	// to decide.
	DeletionDeadline time.Duration
	// Sets are the decisions about ApplicationSets.
	Sets   SetOptions
	Logger *slog.Logger
}

// UpOptions are those of rutter up.
type UpOptions struct {
	Dir        string
	Controller ControllerOptions
	Out        io.Writer
}

// DemoOptions are those of rutter demo.
type DemoOptions struct {
	Dir            string // empty: thrown away at the end
	Fleet          string // folder of the example repository; empty: the embedded one
	ExitWhenSynced bool
	Timeout        time.Duration
	JSON           bool
	Terminal       bool
	Out            io.Writer
	Logger         *slog.Logger
}

// RenderOptions are those of rutter render.
type RenderOptions struct {
	App   *v1alpha1.Application
	Local map[string]string // URL → folder or bare repository
	// Offline fetches nothing; otherwise repositories that are not in Local are fetched.
	Offline     bool
	KubeVersion string
	APIVersions []string
	// REST reaches the control plane, for its credentials, keys, settings and
	// projects; nil means that there is none. Cluster is the member whose version
	// and API list charts see; empty means what KubeVersion and APIVersions say.
	REST      *rest.Config
	Namespace string
	Cluster   string
	// Plugins is a folder of ConfigManagementPlugin files.
	Plugins     string
	PluginTools []string
	Explain     bool
}

// DiffOptions are those of rutter app diff.
type DiffOptions struct {
	REST      *rest.Config
	Namespace string
	App       AppName
}

// ActionOptions are those of rutter app actions.
type ActionOptions struct {
	REST      *rest.Config
	Namespace string
	App       AppName
	Which     actions.Which
	// Action, Params and All are of run alone.
	Action string
	Params actions.Params
	All    bool
}

type (
	// FleetPlan is what a plan is made of.
	FleetPlan = preview.Plan
	// ActionOffers are what can be done to the objects of an Application.
	ActionOffers = actions.Offers
	// ActionDone is what an action did.
	ActionDone = actions.Done
	// AppAnswer explains an Application.
	AppAnswer = explain.Answer
	// ClusterInventory is what plans are made from.
	ClusterInventory = preview.Inventory
)

// PlanOptions are those of rutter plan.
type PlanOptions struct {
	// Repo is a clone; Base and Head are revisions of it.
	Repo, Base, Head string
	Roots, URLs      []string
	Branches         []string
	Namespace        string
	// Inventory are the clusters; nil means that they are not known.
	Inventory *preview.Inventory
	// REST reaches the control plane; nil asks nobody.
	REST        *rest.Config
	KubeVersion string
	Offline     bool
	CacheDir    string
	Plugins     string
	PluginTools []string
}

// ExportOptions are those of rutter cluster export.
type ExportOptions struct {
	REST      *rest.Config
	Namespace string
}

// AppName is an Application's namespace and name.
type AppName struct{ Namespace, Name string }
