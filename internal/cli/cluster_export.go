package cli

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/internal/preview"
)

func (r *root) clusterExport() *cobra.Command {
	c := r.outputFlag(&cobra.Command{
		Use: "export", Short: "Write what plans need to know of the clusters, without credentials", Args: cobra.NoArgs,
		Long: "Reads the members from the control plane, asks each what it serves, and writes an inventory for 'rutter plan --inventory'.\n" +
			"It holds names, servers, labels, annotations, versions and API versions: no credentials, so that it can live in Git.\n" +
			"A member that does not answer is written without its version, and named on standard error.",
		Example: "  rutter cluster export > fleet/clusters.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			rc, err := r.rest()
			if err != nil {
				return err
			}
			inv, err := r.deps.ExportClusters(c.Context(), ExportOptions{REST: rc, Namespace: r.namespace})
			if err != nil {
				return err
			}
			return r.printInventory(inv)
		},
	})
	c.Flags().Lookup("output").DefValue = "yaml"
	r.yamlUnlessAsked(c)
	return c
}

// yamlUnlessAsked makes yaml the default of a command whose output is a file.
func (r *root) yamlUnlessAsked(c *cobra.Command) {
	c.PreRun = func(c *cobra.Command, _ []string) {
		if !c.Flags().Changed("output") {
			r.output = "yaml"
		}
	}
}

func (r *root) printInventory(inv preview.Inventory) error {
	t := table{header: []string{"NAME", "SERVER", "VERSION", "APIS", "LABELS"}}
	for _, c := range inv.Clusters {
		t.rows = append(t.rows, []string{c.Name, c.Server, orDash(c.Version), strconv.Itoa(len(c.APIVersions)), labels(c.Labels)})
		if c.Unreachable != "" {
			fmt.Fprintf(r.err, "rutter: cluster %s: version and API versions are missing: %s\n", c.Name, c.Unreachable)
		}
	}
	if slices.Contains([]string{"yaml", ""}, r.output) {
		data, err := yaml.Marshal(inv)
		if err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
		if _, err := r.out.Write(data); err != nil {
			return fmt.Errorf("write yaml: %w", err)
		}
		return nil
	}
	return r.print(inv, t)
}
