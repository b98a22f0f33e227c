package cli_test

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/render"
)

// TestMain makes the command line a command of the scripts, with what it does
// offline; what needs a control plane is tested end to end.
func TestMain(m *testing.M) {
	render.MaybeChild()
	testscript.Main(m, map[string]func(){
		"rutter": func() {
			deps := cli.Deps{
				Render: func(ctx context.Context, o cli.RenderOptions) (rutter.Manifests, []rutter.Explanation, error) {
					return daemon.RenderApp(ctx, daemon.RenderConfig{App: o.App, Local: o.Local, Offline: true, KubeVersion: o.KubeVersion, APIVersions: o.APIVersions,
						Plugins: o.Plugins, Explain: o.Explain})
				},
				Snapshot: func(ctx context.Context, l map[string]string, repo rutter.Repo) (rutter.Snapshot, error) {
					return daemon.Local(l).Snapshot(ctx, repo, rutter.ResolveOptions{})
				},
				Plan: func(ctx context.Context, o cli.PlanOptions) (cli.FleetPlan, error) {
					return daemon.Plan(ctx, daemon.PlanConfig{Repo: o.Repo, Base: o.Base, Head: o.Head, Roots: o.Roots, URLs: o.URLs, Branches: o.Branches,
						Namespace: o.Namespace, Inventory: o.Inventory, Offline: true, KubeVersion: o.KubeVersion, CacheDir: o.CacheDir})
				},
			}
			os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, "test", deps))
		},
	})
}

// TestScripts are specifications that a user could read.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", UpdateScripts: os.Getenv("UPDATE") != ""})
}
