package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

func (r *root) appsetCommand() *cobra.Command {
	c := &cobra.Command{Use: "appset", Aliases: []string{"applicationset", "applicationsets", "appsets"}, Short: "Look at ApplicationSets and what they generate"}
	c.AddCommand(r.appsetList(), r.appsetGet(), r.appsetGenerate(), r.appsetDelete())
	return c
}

func (r *root) appsetList() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List ApplicationSets", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var list v1alpha1.ApplicationSetList
			if err := cl.List(c.Context(), &list, r.within(false)); err != nil {
				return fmt.Errorf("list ApplicationSets: %w", err)
			}
			t := table{header: []string{"NAME", "NAMESPACE", "APPLICATIONS", "HELD", "HEALTH", "MESSAGE"}, wide: 1}
			for i := range list.Items {
				s := &list.Items[i]
				health, message := setState(s)
				t.rows = append(t.rows, []string{s.Name, s.Namespace, strconv.FormatInt(s.Status.ResourcesCount, 10), orDash(generate.HeldCount(s)), orDash(health), orDash(message)})
			}
			return r.print(list, t)
		},
	})
}

// conditionLines are conditions in words; what one says is not repeated by another.
func conditionLines(conditions []v1alpha1.ApplicationSetCondition) []string {
	lines := make([]string, 0, len(conditions))
	for i, c := range conditions {
		message := c.Message
		for _, before := range conditions[:i] {
			if len(before.Message) >= shortMessage {
				message = strings.ReplaceAll(message, before.Message, fmt.Sprintf("(as %s says)", before.Type))
			}
		}
		lines = append(lines, fmt.Sprintf("%s=%s: %s", c.Type, c.Status, message))
	}
	return lines
}

// shortMessage is as long as what is said in full wherever it stands.
const shortMessage = 40

func setState(s *v1alpha1.ApplicationSet) (health, message string) {
	if s.Status.Health != nil {
		health = s.Status.Health.Status
	}
	for _, c := range s.Status.Conditions {
		if c.Type == v1alpha1.ApplicationSetConditionErrorOccurred && c.Status == "True" {
			message = c.Message
		}
	}
	return health, message
}

func (r *root) appsetGet() *cobra.Command {
	return r.outputFlag(&cobra.Command{
		Use: "get NAME", Short: "Show one ApplicationSet and its Applications", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var set v1alpha1.ApplicationSet
			if err := cl.Get(c.Context(), client.ObjectKey{Namespace: r.namespace, Name: args[0]}, &set); err != nil {
				return fmt.Errorf("read ApplicationSet %q in namespace %q: %w", args[0], r.namespace, err)
			}
			set.ManagedFields = nil
			t := table{header: []string{"APPLICATION", "SYNC", "HEALTH"}}
			for _, res := range set.Status.Resources {
				health := ""
				if res.Health != nil {
					health = res.Health.Status
				}
				t.rows = append(t.rows, []string{res.Name, orDash(res.Status), orDash(health)})
			}
			if r.output == "table" || r.output == "wide" {
				for _, line := range conditionLines(set.Status.Conditions) {
					fmt.Fprintln(r.out, line)
				}
				fmt.Fprintln(r.out)
			}
			if digest := generate.HeldDigest(&set); digest != "" && r.output != "json" && r.output != "yaml" {
				fmt.Fprintln(r.out, "These would be deleted, and wait for an approval:")
				for _, name := range heldNames(c, cl, &set, digest) {
					fmt.Fprintf(r.out, "  - %s\n", name)
				}
				fmt.Fprintln(r.out)
			}
			return r.print(set, t)
		},
	})
}
