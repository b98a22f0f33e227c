package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func (r *root) clusterLeftovers() *cobra.Command {
	var forget bool
	c := r.outputFlag(&cobra.Command{
		Use: "leftovers [CLUSTER] [--forget]", Short: "List what Applications left at clusters that are gone", Args: cobra.MaximumNArgs(1),
		Long: "An Application that is deleted when its cluster is not one of the fleet any more is let go, and its objects stay where they\n" +
			"are. This lists them, cluster by cluster. With --forget, a cluster's list is thrown away, once somebody has seen to it.",
		Example: "  rutter cluster leftovers\n  rutter cluster leftovers edge-7 -o json\n  rutter cluster leftovers edge-7 --forget",
		RunE: func(c *cobra.Command, args []string) error {
			if forget && len(args) == 0 {
				return rutter.Errorf(rutter.CodeInvalid, "--forget: name the cluster")
			}
			cl, err := r.client()
			if err != nil {
				return err
			}
			var maps corev1.ConfigMapList
			if err := cl.List(c.Context(), &maps, client.InNamespace(r.namespace), client.MatchingLabels{argo.LabelLeftovers: "true"}); err != nil {
				return fmt.Errorf("list what is left at clusters: %w", err)
			}
			out := struct {
				Leftovers []argo.Leftover `json:"leftovers"`
			}{[]argo.Leftover{}}
			t := table{header: []string{"CLUSTER", "APPLICATION", "RELEASED", "OBJECTS", "NAMES"}, wide: 1}
			for i := range maps.Items {
				all, err := argo.Leftovers(&maps.Items[i])
				if err != nil {
					return err
				}
				if len(args) > 0 && maps.Items[i].Name != argo.LeftoversName(args[0]) {
					continue
				}
				for _, l := range all {
					out.Leftovers = append(out.Leftovers, l)
					t.rows = append(t.rows, []string{l.Cluster, l.Application, l.At.UTC().Format(time.RFC3339), strconv.Itoa(l.Count), orDash(strings.Join(l.Objects, " "))})
				}
				if forget {
					if err := cl.Delete(c.Context(), &maps.Items[i]); client.IgnoreNotFound(err) != nil {
						return fmt.Errorf("forget what is left at cluster %q: %w", args[0], err)
					}
				}
			}
			return r.print(out, t)
		},
	})
	c.Flags().BoolVar(&forget, "forget", false, "throw the list of the cluster away")
	return c
}
