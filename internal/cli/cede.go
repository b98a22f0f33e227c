package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/fieldpath"
)

// cedeCommand gives a field of one object up to whoever writes it.
func (r *root) cedeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cede APP OBJECT FIELD", Short: "Write the narrowest rule that leaves a field of an object to others", Args: cobra.ExactArgs(3),
		Long: "Prints the entry of ignoreDifferences, for Git, by which the Application leaves one field of one object alone: it is neither\n" +
			"compared nor put back, and keeps its live value when the object is applied for another reason. Nothing is changed.\n" +
			"OBJECT is KIND/NAME, or as 'rutter explain' writes it: GROUP/KIND/NAMESPACE/NAME. FIELD is a path as 'rutter explain'\n" +
			"writes it, or a JSON pointer.",
		Example: "  rutter cede shop-prod Deployment/web .spec.replicas\n" +
			"  rutter cede shop-prod apps/Deployment/shop/web '.spec.template.spec.containers[name=\"web\"].image'\n" +
			"  rutter cede shop-prod ConfigMap/settings /data/level",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			var app v1alpha1.Application
			if err := cl.Get(c.Context(), client.ObjectKey{Namespace: r.namespace, Name: args[0]}, &app); err != nil {
				return fmt.Errorf("read Application %q in namespace %q: %w", args[0], r.namespace, err)
			}
			ref, err := resourceOf(&app, args[1])
			if err != nil {
				return err
			}
			rule, err := ruleFor(ref, args[2])
			if err != nil {
				return err
			}
			fmt.Fprint(r.out, fieldpath.Text(rule))
			fmt.Fprintf(r.err, "Write it into %s.\n", whereToWrite(&app))
			return nil
		},
	}
}

// whereToWrite is the manifest in which a change of an Application is made.
func whereToWrite(app *v1alpha1.Application) string {
	for _, o := range app.OwnerReferences {
		if o.Kind == "ApplicationSet" {
			return fmt.Sprintf("the template of ApplicationSet %s in Git, under spec.template: it generates Application %s", o.Name, app.Name)
		}
	}
	return "the manifest of Application " + app.Name + " in Git"
}

// ruleFor reads a field, as a path or as a JSON pointer.
func ruleFor(ref rutter.Ref, field string) (rutter.IgnoreRule, error) {
	if strings.HasPrefix(field, "/") {
		return rutter.IgnoreRule{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, JSONPointers: []string{field}}, nil
	}
	if !strings.HasPrefix(field, ".") && !strings.HasPrefix(field, "[") {
		field = "." + field
	}
	rule, ok := fieldpath.Rule(ref, field)
	if !ok {
		return rule, rutter.Errorf(rutter.CodeInvalid, "%q is not a field: write it as 'rutter explain' does, such as .spec.replicas or .spec.template.spec.containers[name=\"web\"].image, or as a JSON pointer such as /spec/replicas", field)
	}
	return rule, nil
}

// resourceOf finds one of an Application's resources by what somebody wrote of it:
// the last parts of GROUP/KIND/NAMESPACE/NAME that name just one.
func resourceOf(app *v1alpha1.Application, text string) (rutter.Ref, error) {
	var found, all []string
	var ref rutter.Ref
	for _, res := range app.Status.Resources {
		x := rutter.Ref{Group: res.Group, Kind: res.Kind, Namespace: res.Namespace, Name: res.Name}
		if len(all) < 20 {
			all = append(all, x.String())
		}
		if names(x, text) {
			ref = x
			found = append(found, x.String())
		}
	}
	switch {
	case len(found) == 1:
		return ref, nil
	case len(found) > 1:
		return ref, rutter.Errorf(rutter.CodeInvalid, "%q names %d objects of Application %s: %s; write one of these", text, len(found), app.Name, strings.Join(found, ", "))
	case len(all) == 0:
		return ref, rutter.Errorf(rutter.CodeNotFound, "Application %s has no resources yet: its controller has not looked at it", app.Name)
	}
	return ref, rutter.Errorf(rutter.CodeNotFound, "Application %s has no object %q; it has %s", app.Name, text, strings.Join(all, ", "))
}

// names reports whether a text names an object: KIND/NAME with the group before
// and the namespace between where they are given. Kinds are known in any case.
func names(ref rutter.Ref, text string) bool {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || parts[len(parts)-1] != ref.Name {
		return false
	}
	for _, form := range [][]string{
		{ref.Kind, ref.Name}, {ref.Kind, ref.Namespace, ref.Name}, {ref.Group, ref.Kind, ref.Name}, {ref.Group, ref.Kind, ref.Namespace, ref.Name},
	} {
		if strings.EqualFold(strings.Join(form[:len(form)-1], "/"), strings.Join(parts[:len(parts)-1], "/")) {
			return true
		}
	}
	return false
}
