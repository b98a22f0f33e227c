package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

func (r *root) clusterCreate(dir *string) *cobra.Command {
	var hub bool
	var nodes int
	var version string
	c := &cobra.Command{
		Use: "create NAME...", Short: "Create real clusters on this machine, without containers", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				l, err := r.deps.Clusters.Create(c.Context(), *dir, name, hub, nodes, version)
				if err != nil {
					return err
				}
				fmt.Fprintf(r.out, "cluster %s is ready: %s\n", name, l.Server)
			}
			fmt.Fprintf(r.out, "kubeconfig: rutter cluster kubeconfig %s\n", args[0])
			return nil
		},
	}
	c.Flags().BoolVar(&hub, "hub", false, "only an API server, without workloads")
	c.Flags().IntVar(&nodes, "nodes", 1, "simulated nodes")
	c.Flags().StringVar(&version, "kube-version", "", "Kubernetes version to report")
	return c
}

func (r *root) clusterDelete(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "delete NAME...", Short: "Delete clusters on this machine, with their data", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range args {
				if err := r.deps.Clusters.Delete(c.Context(), *dir, name); err != nil {
					return err
				}
				fmt.Fprintf(r.out, "cluster %s deleted (if it is a member of a fleet: rutter cluster remove %s)\n", name, name)
			}
			return nil
		},
	}
}

func (r *root) clusterKubeconfig(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig NAME", Short: "Print the kubeconfig of a cluster on this machine", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := r.deps.Clusters.Kubeconfig(*dir, args[0])
			if err != nil {
				return err
			}
			_, err = r.out.Write(data)
			return err
		},
	}
}

// parseParameter reads NAME=VALUE.
func parseParameter(s string) (p v1alpha1.HelmParameter, err error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return p, rutter.Errorf(rutter.CodeInvalid, "--helm-set %q: write NAME=VALUE", s)
	}
	p.Name, p.Value = name, value
	return p, nil
}
