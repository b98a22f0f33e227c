package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/explain"
)

func (r *root) explainCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "explain APP", Short: "Say in words why an Application is not in sync or not healthy, and what to do", Args: cobra.ExactArgs(1),
		Long: "Renders and compares the Application from this process, as 'rutter app diff' does, and says of each difference where Git\n" +
			"declares it, who wrote the live value and when, which known cause it is, and what to do; then why it is not syncing, and\n" +
			"what is not healthy. It changes nothing. Values of Secrets are never shown.",
		Example: "  rutter explain shop-prod\n  rutter explain shop-prod -o json",
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if output != "text" && output != "json" {
				return rutter.Errorf(rutter.CodeInvalid, "-o %q: use text or json", output)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			rc, err := r.rest()
			if err != nil {
				return err
			}
			answer, err := r.deps.Explain(c.Context(), DiffOptions{REST: rc, Namespace: r.namespace, App: AppName{r.namespace, args[0]}})
			if err != nil {
				return err
			}
			if output == "json" {
				r.output = output
				return r.print(answer, table{})
			}
			if _, err := fmt.Fprint(r.out, explain.Text(answer)); err != nil {
				return fmt.Errorf("print: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "output: text or json")
	return c
}
