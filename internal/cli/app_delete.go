package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// deleteFlags are those of app delete.
type deleteFlags struct {
	cascade, orphan, force, wait, yes bool
	propagation                       string
	timeout                           time.Duration
}

func (r *root) appDelete() *cobra.Command {
	f := &deleteFlags{}
	c := r.outputFlag(&cobra.Command{
		Use: "delete NAME... [--orphan | --force] [--wait] [--yes]", Short: "Show what deleting an Application removes, and delete it with --yes", Args: cobra.MinimumNArgs(1),
		Long: "Shows what is removed with an Application: how many objects of each kind, and every volume claim and namespace by name.\n" +
			"Nothing is done without --yes; then it ends with 3.\n\n" +
			"--orphan leaves the objects, without the marks by which they are the Application's, and runs no hooks; it may also be\n" +
			"decided while a deletion is under way. --force is for a deletion that is blocked: it removes the finalizers of the objects\n" +
			"that are terminating by now, which are shown one by one first, and of no others.",
		Example: "  rutter app delete shop-prod\n  rutter app delete shop-prod --yes --wait\n  rutter app delete shop-prod --orphan --yes",
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			cl, err := r.client()
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := r.deleteOne(c.Context(), cl, name, f); err != nil {
					return err
				}
			}
			if !f.yes {
				fmt.Fprintln(r.err, "rutter: nothing was done: repeat it with --yes")
				return exit{ExitBlocked}
			}
			return r.awaitDeleted(c.Context(), cl, args, f)
		},
	})
	c.Flags().BoolVar(&f.cascade, "cascade", true, "delete the objects too; with --cascade=false they stay as they are")
	c.Flags().StringVarP(&f.propagation, "propagation-policy", "p", "foreground", "foreground or background")
	c.Flags().BoolVar(&f.orphan, "orphan", false, "leave the objects, without the marks of the Application, and run no hooks")
	c.Flags().BoolVar(&f.force, "force", false, "remove the finalizers of the objects that are terminating")
	c.Flags().BoolVar(&f.wait, "wait", false, "wait until the Application is gone, and show what is waited for")
	c.Flags().DurationVar(&f.timeout, "timeout", 0, "with --wait, give up after this time, with exit code 1; 0 waits without end")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "delete it")
	return c
}

func (f *deleteFlags) check(c *cobra.Command) error {
	given := c.Flags().Changed("propagation-policy")
	switch {
	case f.orphan && f.force:
		return rutter.Errorf(rutter.CodeInvalid, "--orphan and --force: choose one")
	case f.propagation != "foreground" && f.propagation != "background":
		return rutter.Errorf(rutter.CodeInvalid, "--propagation-policy %q: use foreground or background", f.propagation)
	case given && (!f.cascade || f.orphan):
		return rutter.Errorf(rutter.CodeInvalid, "--propagation-policy is for a deletion of the objects, and they stay")
	}
	return nil
}

// Removal is what deleting an Application removes, in the JSON of app delete.
type Removal struct {
	Application string         `json:"application"`
	Cluster     string         `json:"cluster"`
	Fate        string         `json:"fate"`
	Kinds       map[string]int `json:"kinds"`
	Volumes     []string       `json:"volumes,omitempty"`
	Namespaces  []string       `json:"namespaces,omitempty"`
	// Stays are objects that are never deleted with an Application.
	Stays []string `json:"stays,omitempty"`
	// Blocked is what a deletion that is under way waits for.
	Blocked []string `json:"blocked,omitempty"`
}

func removalOf(app *v1alpha1.Application, f *deleteFlags) Removal {
	row := RowOf(app, nil)
	m := Removal{Application: app.Name, Cluster: row.Cluster, Fate: "deleted", Kinds: map[string]int{}, Blocked: blockedWords(app)}
	if f.orphan || !f.cascade {
		m.Fate = "left where they are"
	}
	for _, res := range app.Status.Resources {
		name := strings.TrimPrefix(res.Namespace+"/"+res.Name, "/")
		switch {
		case res.Health != nil && res.Health.Status == string(rutter.Missing):
			continue
		case res.Kind == "CustomResourceDefinition":
			m.Stays = append(m.Stays, res.Kind+" "+name)
			continue
		case res.Group == "" && res.Kind == "PersistentVolumeClaim":
			m.Volumes = append(m.Volumes, name)
		case res.Group == "" && res.Kind == "Namespace":
			m.Namespaces = append(m.Namespaces, name)
		}
		m.Kinds[res.Kind]++
	}
	return m
}

// blockedWords are what the conditions say of a deletion.
func blockedWords(app *v1alpha1.Application) []string {
	var words []string
	for _, c := range app.Status.Conditions {
		if c.Type == rutter.CondDeletion || c.Type == rutter.CondDeletionBlocked {
			words = append(words, c.Message)
		}
	}
	return words
}

func (r *root) showRemoval(m Removal) error {
	if r.output == "json" || r.output == "yaml" {
		return r.print(m, table{})
	}
	total := 0
	t := table{header: []string{"KIND", "OBJECTS", "OF NOTE"}}
	for _, kind := range slices.Sorted(maps.Keys(m.Kinds)) {
		total += m.Kinds[kind]
		note := "-"
		switch kind {
		case "PersistentVolumeClaim":
			note = strings.Join(m.Volumes, ", ")
		case "Namespace":
			note = strings.Join(m.Namespaces, ", ") + " (with everything in them)"
		}
		t.rows = append(t.rows, []string{kind, strconv.Itoa(m.Kinds[kind]), note})
	}
	fmt.Fprintf(r.out, "Application %s: its %d objects at cluster %s are %s.\n", m.Application, total, m.Cluster, m.Fate)
	if err := r.table(t); err != nil {
		return err
	}
	for _, s := range m.Stays {
		fmt.Fprintf(r.out, "stays: %s\n", s)
	}
	for _, b := range m.Blocked {
		fmt.Fprintf(r.out, "waits: %s\n", b)
	}
	return nil
}

// deleteOne shows what becomes of one Application and asks for it.
func (r *root) deleteOne(ctx context.Context, cl client.Client, name string, f *deleteFlags) error {
	app, err := r.getApp(ctx, cl, name)
	if err != nil {
		return err
	}
	if f.force {
		return r.forceOne(ctx, cl, app, f)
	}
	if err := r.showRemoval(removalOf(app, f)); err != nil || !f.yes {
		return err
	}
	if app.DeletionTimestamp != nil {
		if !f.orphan {
			fmt.Fprintf(r.err, "application %s: is being deleted since %s\n", name, app.DeletionTimestamp.UTC().Format(time.RFC3339))
			return nil
		}
		return r.decide(ctx, cl, app, argo.DecisionOrphan)
	}
	uid, err := r.prepareDeletion(ctx, cl, app, f)
	if err != nil {
		return err
	}
	if err := cl.Delete(ctx, app, client.Preconditions{UID: uid}); err != nil {
		return fmt.Errorf("delete application %q: %w", name, err)
	}
	fmt.Fprintf(r.err, "application %s: deletion requested\n", name)
	return nil
}

// forceOne names what is terminating, and has its finalizers removed.
func (r *root) forceOne(ctx context.Context, cl client.Client, app *v1alpha1.Application, f *deleteFlags) error {
	if app.DeletionTimestamp == nil {
		return rutter.Errorf(rutter.CodeInvalid, "application %q is not being deleted: --force is for a deletion that is blocked", app.Name)
	}
	var objects []string
	for _, c := range app.Status.Conditions {
		if c.Type == rutter.CondDeletionBlocked && strings.Contains(c.Message, "terminating") { // and not what waits for a hook or a person
			objects = append(objects, c.Message)
		}
	}
	if len(objects) == 0 {
		fmt.Fprintf(r.err, "application %s: nothing is known to block its deletion\n", app.Name)
		return nil
	}
	fmt.Fprintf(r.out, "Application %s: the finalizers of these are removed, and who set them does not clean up:\n", app.Name)
	for _, o := range objects {
		fmt.Fprintf(r.out, "  - %s\n", o)
	}
	if !f.yes {
		return nil
	}
	return r.decide(ctx, cl, app, argo.DecisionForce+" "+time.Now().UTC().Format(time.RFC3339))
}

// decide writes a decision about a deletion down.
func (r *root) decide(ctx context.Context, cl client.Client, app *v1alpha1.Application, decision string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{argo.AnnotationDeletion: decision}}})
	if err != nil {
		return fmt.Errorf("encode the decision: %w", err)
	}
	if err := r.patchApp(ctx, cl, app.Name, patch); err != nil {
		return err
	}
	fmt.Fprintf(r.err, "application %s: decided: %s\n", app.Name, decision)
	return nil
}

// prepareDeletion sets or takes off the cascade finalizers (reference 2.9). The
// object as it was looked at, or nothing.
func (r *root) prepareDeletion(ctx context.Context, cl client.Client, app *v1alpha1.Application, f *deleteFlags) (uid *types.UID, err error) {
	next := app.DeepCopy()
	next.Finalizers = argo.Without(app.Finalizers, []rutter.DeletionStage{rutter.StageCascade})
	switch {
	case f.orphan:
		next.Finalizers = append(next.Finalizers, argo.FinalizerResources)
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[argo.AnnotationDeletion] = argo.DecisionOrphan
	case f.cascade && f.propagation == "background":
		next.Finalizers = append(next.Finalizers, argo.FinalizerResources+"/background")
	case f.cascade:
		next.Finalizers = append(next.Finalizers, argo.FinalizerResources)
	}
	if err := cl.Patch(ctx, next, client.MergeFromWithOptions(app, client.MergeFromWithOptimisticLock{}), fieldOwner); err != nil {
		return nil, fmt.Errorf("prepare the deletion of application %q: %w", app.Name, err)
	}
	return &next.UID, nil
}

// awaitDeleted waits until Applications are gone, and says what is waited for.
func (r *root) awaitDeleted(ctx context.Context, cl client.WithWatch, names []string, f *deleteFlags) error {
	if !f.wait {
		return nil
	}
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for _, name := range names {
		for said := ""; ; {
			var app v1alpha1.Application
			err := cl.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &app)
			if apierrors.IsNotFound(err) {
				fmt.Fprintf(r.err, "application %s: deleted\n", name)
				break
			}
			if ctx.Err() == nil && err != nil {
				return fmt.Errorf("read application %q: %w", name, err)
			}
			if now := strings.Join(blockedWords(&app), "\n  "); err == nil && now != said && now != "" {
				fmt.Fprintf(r.err, "application %s waits:\n  %s\n", name, now)
				said = now
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				fmt.Fprintf(r.err, "rutter: gave up waiting: application %s is still there\n", name)
				return exit{ExitDifferent}
			}
		}
	}
	return nil
}

func (r *root) appConfirmDeletion() *cobra.Command {
	return &cobra.Command{
		Use: "confirm-deletion NAME", Short: "Confirm the deletion or the pruning of objects that ask for it", Args: cobra.ExactArgs(1),
		Long: "Confirms what waits now: objects with Delete=confirm of an Application that is being deleted, and with Prune=confirm of\n" +
			"one that is syncing. What comes to wait later has to be confirmed anew.",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := r.client()
			if err != nil {
				return err
			}
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, argo.AnnotationApproved, time.Now().UTC().Format(time.RFC3339))
			if err := r.patchApp(c.Context(), cl, args[0], []byte(patch)); err != nil {
				return err
			}
			fmt.Fprintf(r.out, "application %s: confirmed\n", args[0])
			return nil
		},
	}
}
