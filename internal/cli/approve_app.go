package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// approvalOfApp is how prunes that are held are approved from the command line, as
// the condition says it.
var approvalOfApp = regexp.MustCompile(`rutter approve app/\S+ ([0-9a-f]{16})\b`)

// approveApp shows the prunes that wait in an Application or, with their digest,
// lets exactly them go.
func (r *root) approveApp(ctx context.Context, cl client.Client, name, digest string) error {
	app, err := r.getApp(ctx, cl, name)
	if err != nil {
		return err
	}
	waits, words := "", ""
	for _, c := range app.Status.Conditions {
		if m := approvalOfApp.FindStringSubmatch(c.Message); c.Type == rutter.CondPruneHeld && m != nil {
			waits, words = m[1], c.Message
		}
	}
	switch {
	case waits == "" && digest == "":
		fmt.Fprintf(r.out, "nothing waits for an approval in Application %s\n", name)
		return nil
	case waits == "":
		return rutter.Errorf(rutter.CodeNotFound, "nothing waits for an approval in Application %s", name)
	case digest == "":
		fmt.Fprintln(r.out, words)
		return exit{ExitBlocked}
	case digest != waits:
		fmt.Fprintf(r.err, "rutter: %s is not what waits in Application %s; this is:\n", digest, name)
		fmt.Fprintln(r.out, words)
		return exit{ExitBlocked}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{argo.AnnotationApprove: digest}}})
	if err != nil {
		return fmt.Errorf("encode the approval: %w", err)
	}
	if err := r.patchApp(ctx, cl, name, patch); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "approved: exactly those are pruned from Application %s", name)
	if p := app.Spec.SyncPolicy; p == nil || p.Automated == nil {
		fmt.Fprint(r.out, " by the next sync with --prune")
	}
	fmt.Fprintln(r.out)
	return nil
}
