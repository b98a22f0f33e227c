package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// approveCommand lets one plan of removals through, and no other.
func (r *root) approveCommand() *cobra.Command {
	var digest string
	c := &cobra.Command{
		Use: "approve app/NAME | appset/NAME [DIGEST]", Short: "Let removals through that the deletion budget holds back", Args: cobra.RangeArgs(1, 2),
		Long: "Without a digest, shows what waits and how it is approved, and ends with 3 if anything does.\n" +
			"With the digest of what waits, approves exactly that: if other objects of an Application, or other Applications of a set,\n" +
			"are to go by the time it is carried out, they wait again. A name alone is that of a set or, where there is none, of an Application.",
		Example: "  rutter approve appset/fleet\n  rutter approve appset/fleet 0123456789abcdef\n  rutter approve app/shop-prod --digest 0123456789abcdef",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				digest = args[1]
			}
			cl, err := r.client()
			if err != nil {
				return err
			}
			return r.approveWhat(c, cl, args[0], strings.TrimSpace(digest))
		},
	}
	c.Flags().StringVar(&digest, "digest", "", "digest of what may go, as DIGEST")
	return c
}

// approveWhat finds what is meant, and shows or approves what waits in it.
func (r *root) approveWhat(c *cobra.Command, cl client.Client, what, digest string) error {
	kind, name, ok := strings.Cut(what, "/")
	if !ok {
		kind, name = "", what
	}
	key := client.ObjectKey{Namespace: r.namespace, Name: name}
	var set v1alpha1.ApplicationSet
	switch kind {
	case "app", "application":
		return r.approveApp(c.Context(), cl, name, digest)
	case "appset", "applicationset", "":
		err := cl.Get(c.Context(), key, &set)
		if kind == "" && apierrors.IsNotFound(err) {
			return r.approveApp(c.Context(), cl, name, digest)
		}
		if err != nil {
			return fmt.Errorf("read ApplicationSet %q in namespace %q: %w", name, r.namespace, err)
		}
	default:
		return rutter.Errorf(rutter.CodeInvalid, "%q: removals wait in Applications and in ApplicationSets; write app/NAME or appset/NAME", what)
	}
	if digest == "" {
		return r.showHeld(c, cl, &set)
	}
	return r.approve(c, cl, &set, digest)
}

// showHeld says what waits in a set.
func (r *root) showHeld(c *cobra.Command, cl client.Client, set *v1alpha1.ApplicationSet) error {
	digest := generate.HeldDigest(set)
	if digest == "" {
		fmt.Fprintf(r.out, "nothing waits for an approval in ApplicationSet %s\n", set.Name)
		return nil
	}
	for _, cond := range set.Status.Conditions {
		if cond.Type == v1alpha1.ApplicationSetConditionDeletionsHeld {
			why, _, _ := strings.Cut(cond.Message, ";")
			fmt.Fprintf(r.out, "%s\n", why)
		}
	}
	for _, name := range heldNames(c, cl, set, digest) {
		fmt.Fprintf(r.out, "  - %s\n", name)
	}
	held := generate.Held{Digest: digest}
	fmt.Fprintf(r.out, "to delete exactly these: %s\n", held.Approval(set))
	return exit{ExitBlocked}
}

// waitingRemovals are the Applications whose removal waits for an approval. Who may
// not read sets sees none.
func (r *root) waitingRemovals(c *cobra.Command, cl client.Client, all bool) (map[client.ObjectKey]bool, error) {
	var sets v1alpha1.ApplicationSetList
	if err := cl.List(c.Context(), &sets, r.within(all)); err != nil {
		if apierrors.IsForbidden(err) {
			return nil, nil //nolint:nilnil // none is known of
		}
		return nil, fmt.Errorf("list ApplicationSets: %w", err)
	}
	waiting := map[client.ObjectKey]bool{}
	for i := range sets.Items {
		set := &sets.Items[i]
		if digest := generate.HeldDigest(set); digest != "" {
			for _, name := range heldNames(c, cl, set, digest) {
				waiting[client.ObjectKey{Namespace: set.Namespace, Name: name}] = true
			}
		}
	}
	return waiting, nil
}

// heldNames are the Applications whose deletion waits, as the controller wrote
// them down; none where that cannot be read.
func heldNames(c *cobra.Command, cl client.Client, set *v1alpha1.ApplicationSet, digest string) []string {
	var stored corev1.ConfigMap
	key := types.NamespacedName{Namespace: set.Namespace, Name: generate.MemoryName(set)}
	if err := cl.Get(c.Context(), key, &stored); err != nil {
		return nil
	}
	h, err := generate.DecodeHeld(stored.BinaryData[generate.MemoryHeld])
	if err != nil || h == nil || h.Digest != digest {
		return nil
	}
	names := h.Names
	if more := h.Count - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return names
}

// approve writes the approval down, if it is of what waits.
func (r *root) approve(c *cobra.Command, cl client.Client, set *v1alpha1.ApplicationSet, digest string) error {
	waits := generate.HeldDigest(set)
	switch {
	case waits == "":
		return rutter.Errorf(rutter.CodeNotFound, "nothing waits for an approval in ApplicationSet %s", set.Name)
	case waits != digest:
		fmt.Fprintf(r.err, "rutter: %s is not what waits in ApplicationSet %s; this is:\n", digest, set.Name)
		return r.showHeld(c, cl, set)
	}
	if err := annotateApproval(c.Context(), cl, set, digest); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "approved: ApplicationSet %s deletes exactly those\n", set.Name)
	return nil
}

// annotateApproval writes an approval to a set.
func annotateApproval(ctx context.Context, cl client.Client, set *v1alpha1.ApplicationSet, digest string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{generate.AnnotationApprove: digest}}})
	if err != nil {
		return fmt.Errorf("encode the approval: %w", err)
	}
	if err := cl.Patch(ctx, set, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return fmt.Errorf("approve the removals of ApplicationSet %q: %w", set.Name, err)
	}
	return nil
}
