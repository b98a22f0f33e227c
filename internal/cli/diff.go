package cli

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/plan"
)

// diffOutputs are the forms of a comparison.
var diffOutputs = []string{"text", "json"}

type diffFlags struct {
	desired, live, config, app, output string
	schemas                            []string
}

func (r *root) diffCommand() *cobra.Command {
	f := &diffFlags{}
	c := &cobra.Command{
		Use: "diff --desired FILE --live FILE", Short: "Compare declared objects with live ones, from files", Args: cobra.NoArgs,
		Long: "Compares the objects of a file, as Git declares them, with those of another, as kubectl get -o yaml prints them. No cluster is asked.\n" +
			"What a server fills in, allocates or writes in another form is no difference, and neither is what others own; an object that is\n" +
			"missing, or that is live and not declared, is one. Objects are matched by group, kind, namespace and name. '-' is standard input.\n\n" +
			"The kinds of Kubernetes are known. Others are known from --schema, and from CustomResourceDefinitions in any of the files.\n\n" +
			"Exit codes: 0 equal, 1 different, 2 an error. Values of Secrets are never shown.",
		Example: "  kubectl get deployment web -o yaml | rutter diff --desired web.yaml --live -\n" +
			"  rutter diff --desired app.yaml --live live.yaml -o json --config argocd-cm.yaml\n" +
			"  kubectl get --raw /openapi/v2 > api.json; rutter diff --desired cr.yaml --live live.yaml --schema api.json",
		// It has forms of its own.
		PersistentPreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE:              func(*cobra.Command, []string) error { return r.diff(f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.desired, "desired", "", "file with the objects as they are declared")
	fl.StringVar(&f.live, "live", "", "file with the objects as they are")
	fl.StringArrayVar(&f.schemas, "schema", nil, "OpenAPI document of a cluster (v2 or v3), or CustomResourceDefinitions; repeatable")
	fl.StringVar(&f.config, "config", "", "argocd-cm, for what it says about comparing")
	fl.StringVar(&f.app, "app", "", "Application, for its ignoreDifferences")
	fl.StringVarP(&f.output, "output", "o", "text", "output: text or json")
	return c
}

func (f *diffFlags) check() error {
	switch {
	case !slices.Contains(diffOutputs, f.output):
		return rutter.Errorf(rutter.CodeInvalid, "-o %q: use text or json", f.output)
	case f.desired == "" || f.live == "":
		return rutter.Errorf(rutter.CodeInvalid, "--desired and --live are both needed: each is a file, or - for standard input")
	}
	stdin := 0
	for _, name := range append([]string{f.desired, f.live, f.config, f.app}, f.schemas...) {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return rutter.Errorf(rutter.CodeInvalid, "standard input can be only one of the files")
	}
	return nil
}

// objectDiff is one difference, as it is printed.
type objectDiff struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// State is changed, missing (declared and not live) or extra (the other way round).
	State   string          `json:"state"`
	Path    string          `json:"path,omitempty"`
	Desired json.RawMessage `json:"desired,omitempty"`
	Live    json.RawMessage `json:"live,omitempty"`
	Manager string          `json:"manager,omitempty"`
}

// comparison is what a comparison of files found.
type comparison struct {
	Modified    bool         `json:"modified"`
	Differences []objectDiff `json:"differences"`
}

func (r *root) diff(f *diffFlags) error {
	desired, err := r.readLive(f.desired)
	if err != nil {
		return err
	}
	live, err := r.readLive(f.live)
	if err != nil {
		return err
	}
	settings, err := r.diffSettings(f)
	if err != nil {
		return err
	}
	types, err := r.diffTypes(f.schemas, desired, live)
	if err != nil {
		return err
	}
	out, err := r.diffObjects(desired, live, settings, types)
	if err != nil {
		return err
	}
	if err := r.printComparison(f.output, out); err != nil {
		return err
	}
	if out.Modified {
		return exit{ExitDifferent}
	}
	return nil
}

// diffObjects compares all objects of two lists. Hooks are run, not kept, and
// have no state to compare.
func (r *root) diffObjects(desired, live []*unstructured.Unstructured, s diffSettings, types *compare.Types) (comparison, error) {
	rules, err := compare.NewRules(slices.Concat(s.ignore, compare.ScalerRules(slices.Concat(desired, live))), s.compare)
	if err != nil {
		return comparison{}, err
	}
	scope, err := compare.NewScope(s.compare)
	if err != nil {
		return comparison{}, err
	}
	opts := compare.Options{Rules: rules, Types: types, Final: true}
	out := comparison{Differences: []objectDiff{}}
	for _, p := range compare.Match(desired, live) {
		u := p.Desired
		if u == nil {
			u = p.Live
		}
		gvk := u.GroupVersionKind()
		meta := plan.MetaOf(u.GetAnnotations())
		switch {
		case meta.IsHook || meta.Skip || p.Desired == nil && compare.Extraneous(p.Live):
			continue
		case s.scoped && scope.Excludes(rutter.GVK{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}, ""):
			fmt.Fprintf(r.err, "%s %s is excluded by the settings\n", u.GetKind(), u.GetName())
			continue
		}
		out.Differences = append(out.Differences, diffsOf(u, p, opts)...)
	}
	out.Modified = len(out.Differences) > 0
	return out, nil
}

func diffsOf(u *unstructured.Unstructured, p compare.Pair, opts compare.Options) []objectDiff {
	one := objectDiff{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), State: "changed"}
	switch {
	case p.Live == nil:
		one.State = "missing"
		return []objectDiff{one}
	case p.Desired == nil:
		one.State = "extra"
		return []objectDiff{one}
	}
	if one.Namespace == "" {
		one.Namespace = p.Live.GetNamespace()
	}
	var out []objectDiff
	for _, d := range compare.Local(p.Desired, p.Live, opts).Diffs {
		one.Path, one.Desired, one.Live, one.Manager = d.Path, json.RawMessage(d.Desired), json.RawMessage(d.Live), d.Manager
		out = append(out, one)
	}
	return out
}

func (r *root) printComparison(output string, c comparison) error {
	if output == "json" {
		enc := json.NewEncoder(r.out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(c); err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		return nil
	}
	last := ""
	for _, d := range c.Differences {
		object := d.Kind + " " + d.Name
		if d.Namespace != "" {
			object = d.Kind + " " + d.Namespace + "/" + d.Name
		}
		if object = fmt.Sprintf("%s (%s): %s", object, d.APIVersion, d.State); object != last {
			fmt.Fprintln(r.out, object)
			last = object
		}
		if d.Path == "" {
			continue
		}
		fmt.Fprintf(r.out, "  %s\n    ours: %s\n    live: %s", d.Path, orAbsent(d.Desired), orAbsent(d.Live))
		if d.Manager != "" {
			fmt.Fprintf(r.out, "   (written by %s)", d.Manager)
		}
		fmt.Fprintln(r.out)
	}
	return nil
}

func orAbsent(v json.RawMessage) string {
	if len(v) == 0 {
		return "(absent)"
	}
	return string(v)
}
