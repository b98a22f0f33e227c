package main

import (
	"context"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/examples"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// deps gives the command line what only the composition root can build.
func deps() cli.Deps {
	return cli.Deps{
		Controller: func(ctx context.Context, o cli.ControllerOptions) error { return daemon.Run(ctx, controllerConfig(o)) },
		Up: func(ctx context.Context, o cli.UpOptions) error {
			return daemon.Up(ctx, daemon.UpConfig{Dir: o.Dir, Controller: controllerConfig(o.Controller), Out: o.Out})
		},
		Demo: demo,
		Render: func(ctx context.Context, o cli.RenderOptions) (rutter.Manifests, []rutter.Explanation, error) {
			return daemon.RenderApp(ctx, daemon.RenderConfig{App: o.App, Local: o.Local, Offline: o.Offline, KubeVersion: o.KubeVersion, APIVersions: o.APIVersions,
				REST: o.REST, Namespace: o.Namespace, Cluster: o.Cluster, Plugins: o.Plugins, PluginTools: o.PluginTools, Explain: o.Explain})
		},
		Snapshot: func(ctx context.Context, l map[string]string, repo rutter.Repo) (rutter.Snapshot, error) {
			return daemon.Local(l).Snapshot(ctx, repo, rutter.ResolveOptions{})
		},
		Diff: func(ctx context.Context, o cli.DiffOptions) (rutter.Report, error) {
			return daemon.Diff(ctx, daemon.DiffConfig{REST: o.REST, Namespace: o.Namespace, App: client.ObjectKey{Namespace: o.App.Namespace, Name: o.App.Name}})
		},
		Explain: func(ctx context.Context, o cli.DiffOptions) (cli.AppAnswer, error) {
			return daemon.Explain(ctx, daemon.DiffConfig{REST: o.REST, Namespace: o.Namespace, App: client.ObjectKey{Namespace: o.App.Namespace, Name: o.App.Name}})
		},
		Actions: func(ctx context.Context, o cli.ActionOptions) (cli.ActionOffers, error) {
			return daemon.Actions(ctx, actionConfig(o))
		},
		RunAction: func(ctx context.Context, o cli.ActionOptions) ([]cli.ActionDone, error) {
			return daemon.RunAction(ctx, actionConfig(o), o.Action, o.Params, o.All)
		},
		Compare: func(ctx context.Context, o cli.CompareOptions) (cli.ClusterMatrix, error) {
			return daemon.Compare(ctx, daemon.CompareConfig{REST: o.REST, Namespace: o.Namespace, App: o.App, Labels: o.Labels, Clusters: o.Clusters})
		},
		Plan: func(ctx context.Context, o cli.PlanOptions) (cli.FleetPlan, error) {
			return daemon.Plan(ctx, daemon.PlanConfig{Repo: o.Repo, Base: o.Base, Head: o.Head, Roots: o.Roots, URLs: o.URLs, Branches: o.Branches, Namespace: o.Namespace,
				Inventory: o.Inventory, REST: o.REST, KubeVersion: o.KubeVersion, Offline: o.Offline, CacheDir: o.CacheDir, Plugins: o.Plugins, PluginTools: o.PluginTools})
		},
		ExportClusters: func(ctx context.Context, o cli.ExportOptions) (cli.ClusterInventory, error) {
			return daemon.ExportClusters(ctx, daemon.ExportConfig{REST: o.REST, Namespace: o.Namespace})
		},
		Clusters: localClusters(),
	}
}

func controllerConfig(o cli.ControllerOptions) daemon.Config {
	return daemon.Config{REST: o.REST, Namespace: o.Namespace, DataDir: o.DataDir, HTTPAddr: o.HTTPAddr, Poll: o.Poll, Jitter: o.Jitter,
		Workers: o.Workers, ExecCommands: o.ExecCommands, AllowUnsigned: o.AllowUnsigned,
		Namespaces: o.Namespaces, RefuseFiles: !o.AllowFiles, LeaderElect: o.LeaderElect, Plugins: o.Plugins, PluginTools: o.PluginTools, PluginWeakSandbox: o.PluginWeakSandbox, HelmLookup: o.HelmLookup, DeletionDeadline: o.DeletionDeadline, Submodules: o.Submodules, Sets: daemon.SetConfig(o.Sets), Params: o.Params, Logger: o.Logger}
}

func demo(ctx context.Context, o cli.DemoOptions) error {
	fleet, err := fs.Sub(examples.Fleet, "fleet")
	if err != nil {
		return err
	}
	if o.Fleet != "" {
		fleet = os.DirFS(o.Fleet)
	}
	view := cli.NewDemoView(o)
	return daemon.Demo(ctx, daemon.DemoConfig{Dir: o.Dir, Fleet: fleet, ExitWhenSynced: o.ExitWhenSynced, Timeout: o.Timeout,
		Show: view.Show, Final: view.Final, Say: view.Say, Logger: o.Logger,
		SecretOf: func(namespace, name string, c *local.Cluster) (*corev1.Secret, error) {
			rc, err := c.RESTConfig()
			if err != nil {
				return nil, err
			}
			return cli.ClusterSecret(namespace, name, rc)
		}})
}

func localClusters() cli.LocalClusters {
	show := func(m local.Managed) cli.LocalCluster {
		return cli.LocalCluster{Name: m.Name, Server: m.Server, Shape: string(m.Shape), Running: m.Running, Created: m.Created}
	}
	return cli.LocalClusters{
		Create: func(ctx context.Context, root, name string, hub bool, nodes int, version string) (cli.LocalCluster, error) {
			o := local.Options{Nodes: nodes, KubeVersion: version, Shape: local.Full}
			if hub {
				o.Shape = local.Hub
			}
			m, err := local.Create(ctx, root, name, o)
			return show(m), err
		},
		List: func(root string) ([]cli.LocalCluster, error) {
			all, err := local.List(root)
			out := make([]cli.LocalCluster, 0, len(all))
			for _, m := range all {
				out = append(out, show(m))
			}
			return out, err
		},
		Delete:     local.Delete,
		Kubeconfig: local.Kubeconfig,
	}
}

func actionConfig(o cli.ActionOptions) daemon.ActionConfig {
	return daemon.ActionConfig{REST: o.REST, Namespace: o.Namespace, App: client.ObjectKey{Namespace: o.App.Namespace, Name: o.App.Name}, Which: o.Which}
}
