package cli

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// fate is what becomes of an Application when its set is deleted.
type fate string

const (
	fateStays     fate = "stays, detached"
	fateGoesAlone fate = "deleted; its objects keep running"
	fateCascades  fate = "deleted with its objects"
)

// FateRow is one Application in the JSON of appset delete.
type FateRow struct {
	Application string `json:"application"`
	Fate        string `json:"fate"`
	Why         string `json:"why"`
}

func (r *root) appsetDelete() *cobra.Command {
	var cascade string
	var yes bool
	c := r.outputFlag(&cobra.Command{
		Use: "delete NAME [--cascade background|foreground|orphan] [--yes]", Short: "Show what deleting an ApplicationSet does, and delete it with --yes", Args: cobra.ExactArgs(1),
		Long: "Shows what becomes of each Application of the set, and of the objects of each. Nothing is done without --yes; then it\n" +
			"ends with 3.",
		Example: "  rutter appset delete fleet\n  rutter appset delete fleet --cascade orphan --yes",
		RunE: func(c *cobra.Command, args []string) error {
			propagation, err := propagationOf(cascade)
			if err != nil {
				return err
			}
			cl, err := r.client()
			if err != nil {
				return err
			}
			return r.deleteSet(c.Context(), cl, args[0], propagation, yes)
		},
	})
	c.Flags().StringVar(&cascade, "cascade", "background", "background, foreground, or orphan, which leaves all Applications")
	c.Flags().BoolVar(&yes, "yes", false, "delete it")
	return c
}

func propagationOf(cascade string) (metav1.DeletionPropagation, error) {
	for _, p := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		if strings.EqualFold(string(p), cascade) {
			return p, nil
		}
	}
	return "", rutter.Errorf(rutter.CodeInvalid, "--cascade %q: use background, foreground or orphan", cascade)
}

func (r *root) deleteSet(ctx context.Context, cl client.Client, name string, propagation metav1.DeletionPropagation, yes bool) error {
	var set v1alpha1.ApplicationSet
	if err := cl.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, &set); err != nil {
		return fmt.Errorf("read ApplicationSet %q in namespace %q: %w", name, r.namespace, err)
	}
	var list v1alpha1.ApplicationList
	if err := cl.List(ctx, &list, r.within(false)); err != nil {
		return fmt.Errorf("list Applications: %w", err)
	}
	var sets v1alpha1.ApplicationSetList
	if err := cl.List(ctx, &sets, r.within(false)); err != nil {
		return fmt.Errorf("list ApplicationSets: %w", err)
	}
	takers, others := takersOf(&set, sets.Items)
	rows := fatesOf(&set, list.Items, takers, propagation, time.Now())
	if err := r.showFates(name, rows); err != nil {
		return err
	}
	for _, other := range others {
		fmt.Fprintf(r.err, "rutter: ApplicationSet %s generates Applications of this set too, more than its status has room to name: those stay and become its\n", other)
	}
	if !yes {
		fmt.Fprintln(r.err, "rutter: nothing was done: repeat it with --yes")
		return exit{ExitBlocked}
	}
	uid := set.UID
	if err := cl.Delete(ctx, &set, client.PropagationPolicy(propagation), client.Preconditions{UID: &uid}); err != nil {
		return fmt.Errorf("delete ApplicationSet %q: %w", name, err)
	}
	fmt.Fprintf(r.err, "applicationset %s: deletion requested\n", name)
	return nil
}

func (r *root) showFates(name string, rows []FateRow) error {
	t := table{header: []string{"APPLICATION", "WILL BE", "WHY"}}
	counts := map[string]int{}
	for _, row := range rows {
		counts[row.Fate]++
		t.rows = append(t.rows, []string{row.Application, row.Fate, row.Why})
	}
	if err := r.print(struct {
		Applications []FateRow `json:"applications"`
	}{rows}, t); err != nil {
		return err
	}
	if r.output == "table" || r.output == "wide" {
		fmt.Fprintf(r.out, "\nDeleting ApplicationSet %s: %d Applications are deleted with their objects, %d without, %d stay.\n", name,
			counts[string(fateCascades)], counts[string(fateGoesAlone)], counts[string(fateStays)])
	}
	return nil
}

// belongs is how the status of a set says that it generates what another one has.
var belongs = regexp.MustCompile(`Application \S+/(\S+) belongs to ApplicationSet "([^"]+)"`)

// takersOf names the other sets that generate Applications of a set, by Application:
// the controller says so in the status of those, which has room for the first few.
// others are sets that may generate more of them.
func takersOf(set *v1alpha1.ApplicationSet, sets []v1alpha1.ApplicationSet) (takers map[string]string, others []string) {
	takers = map[string]string{}
	for i := range sets {
		other := &sets[i]
		if other.Name == set.Name || other.DeletionTimestamp != nil {
			continue
		}
		for _, c := range other.Status.Conditions {
			if c.Type != v1alpha1.ApplicationSetConditionErrorOccurred || c.Status != "True" {
				continue
			}
			named := false
			for _, m := range belongs.FindAllStringSubmatch(c.Message, -1) {
				if m[2] == set.Name {
					takers[m[1]], named = other.Name, true
				}
			}
			if named && moreProblems.MatchString(c.Message) {
				others = append(others, other.Name)
			}
		}
	}
	return takers, others
}

// moreProblems is how a condition ends that has no room for all.
var moreProblems = regexp.MustCompile(`, and \d+ more$`)

// fatesOf says what becomes of the Applications of a set. What the controller
// decided for all sets shows in what it wrote: an Application that is to outlive
// its set is owned by its namespace too.
func fatesOf(set *v1alpha1.ApplicationSet, apps []v1alpha1.Application, takers map[string]string, propagation metav1.DeletionPropagation, now time.Time) []FateRow {
	set = set.DeepCopy()
	if propagation == metav1.DeletePropagationOrphan {
		set.Finalizers = append(set.Finalizers, metav1.FinalizerOrphanDependents)
	}
	live := make([]*v1alpha1.Application, 0, len(apps))
	for i := range apps {
		live = append(live, &apps[i])
	}
	rows := []FateRow{}
	for _, c := range generate.Teardown(set, live, generate.Policy{Now: now, Elsewhere: takers}) {
		row := FateRow{Application: c.Name, Fate: string(fateStays), Why: c.Reason}
		kept := slices.ContainsFunc(c.Application.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Namespace" && o.APIVersion == "v1" })
		switch cascades := slices.ContainsFunc(c.Application.Finalizers, func(f string) bool {
			return strings.HasPrefix(f, "resources-finalizer.argocd.argoproj.io")
		}); {
		case c.Verb == generate.Update:
		case kept:
			row.Why = "the controller keeps it: its policy allows no deletions"
		case cascades && !c.StripFinalizer:
			row.Fate = string(fateCascades)
		default:
			row.Fate = string(fateGoesAlone)
		}
		rows = append(rows, row)
	}
	return rows
}
