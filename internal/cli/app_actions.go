package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/actions"
)

func (r *root) appActions() *cobra.Command {
	c := &cobra.Command{
		Use: "actions", Short: "Do to an object of an Application what Git does not declare: restart it, pause it, run its Job now",
		Example: "  rutter app actions list shop-prod\n  rutter app actions run shop-prod restart --kind Deployment --resource-name web",
	}
	c.AddCommand(r.appActionsList(), r.appActionsRun())
	return c
}

// which adds the flags by which objects are chosen. As in the reference, --namespace is
// theirs here; -n stays that of the Application.
func (r *root) which(c *cobra.Command, w *actions.Which) {
	c.Flags().StringVarP(&r.namespace, "app-namespace", "n", "argocd", "namespace of the control plane's objects")
	c.Flags().StringVar(&w.Group, "group", "", "API group of the objects")
	c.Flags().StringVar(&w.Kind, "kind", "", "kind of the objects")
	c.Flags().StringVar(&w.Namespace, "namespace", "", "namespace of the objects, in their cluster")
	c.Flags().StringVar(&w.Name, "resource-name", "", "name of the object")
}

func (r *root) appActionsList() *cobra.Command {
	var w actions.Which
	c := r.outputFlag(&cobra.Command{
		Use: "list APP", Short: "List what can be done to the objects of an Application", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := r.actionOptions(args[0], w)
			if err != nil {
				return err
			}
			offers, err := r.deps.Actions(c.Context(), o)
			if err != nil {
				return err
			}
			for _, p := range offers.Problems {
				fmt.Fprintf(r.err, "rutter: %s\n", p)
			}
			t := table{header: []string{"GROUP", "KIND", "NAMESPACE", "NAME", "ACTION", "DISABLED", "PARAMETERS"}}
			for _, obj := range offers.Objects {
				if obj.Problem != "" {
					fmt.Fprintf(r.err, "rutter: %s %s: %s\n", obj.Kind, obj.Name, obj.Problem)
				}
				for _, a := range obj.Actions {
					t.rows = append(t.rows, []string{orDash(obj.Group), obj.Kind, orDash(obj.Namespace), obj.Name, a.Name, strconv.FormatBool(a.Disabled), orDash(parameters(a))})
				}
			}
			return r.print(offers, t)
		},
	})
	r.which(c, &w)
	return c
}

func parameters(a actions.Action) string {
	texts := make([]string, 0, len(a.Params))
	for _, p := range a.Params {
		texts = append(texts, p.Name+"="+p.Default)
	}
	return strings.Join(texts, " ")
}

func (r *root) appActionsRun() *cobra.Command {
	var w actions.Which
	var params []string
	var all bool
	c := r.outputFlag(&cobra.Command{
		Use: "run APP ACTION", Short: "Do something to an object of an Application", Args: cobra.ExactArgs(2),
		Long: "Does an action to one object that the Application manages, in its cluster, as rutter app actions list names them. What the\n" +
			"project does not permit is refused. What Git declares otherwise is drift, and self-heal puts it back.",
		Example: "  rutter app actions run shop-prod restart --kind Deployment --all\n  rutter app actions run shop-prod scale --kind Deployment --resource-name web --param replicas=3",
		RunE: func(c *cobra.Command, args []string) error {
			if w.Kind == "" && w.Name == "" && !all {
				return rutter.Errorf(rutter.CodeInvalid, "say which objects with --kind and --resource-name, or --all")
			}
			given := actions.Params{}
			for _, p := range params {
				name, value, ok := strings.Cut(p, "=")
				if !ok || name == "" {
					return rutter.Errorf(rutter.CodeInvalid, "--param %q: write NAME=VALUE", p)
				}
				given[name] = value
			}
			chosen, err := r.actionOptions(args[0], w)
			if err != nil {
				return err
			}
			chosen.All, chosen.Action, chosen.Params = all, args[1], given
			done, err := r.deps.RunAction(c.Context(), chosen)
			t := table{header: []string{"ACTION", "RESULT", "GROUP", "KIND", "NAMESPACE", "NAME"}}
			for _, d := range done {
				t.rows = append(t.rows, []string{d.Action, d.What, orDash(d.Group), d.Kind, orDash(d.Namespace), d.Name})
			}
			if len(done) > 0 { // also what was done before an error
				if err := r.print(done, t); err != nil {
					return err
				}
			}
			return err
		},
	})
	r.which(c, &w)
	c.Flags().BoolVar(&all, "all", false, "do it to every object that is meant")
	c.Flags().StringArrayVar(&params, "param", nil, "what the action asks for: NAME=VALUE, repeatable")
	return c
}

func (r *root) actionOptions(app string, w actions.Which) (ActionOptions, error) {
	rc, err := r.rest()
	if err != nil {
		return ActionOptions{}, err
	}
	return ActionOptions{REST: rc, Namespace: r.namespace, App: AppName{r.namespace, app}, Which: w}, nil
}
