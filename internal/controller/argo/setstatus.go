package argo

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// maxSetResources and maxResourceBytes bound status.resources (reference 5.1):
// the status of a set of any size stays well below what an object may have.
const (
	maxSetResources  = 5000
	maxResourceBytes = 200 << 10
)

// writeStatus records an evaluation.
func (s *applicationSets) writeStatus(ctx context.Context, set *v1alpha1.ApplicationSet, o *outcome) error {
	next := set.DeepCopy()
	s.conditions(next, o)
	return s.patchStatus(ctx, set, next)
}

// conditions say how an evaluation went.
func (s *applicationSets) conditions(next *v1alpha1.ApplicationSet, o *outcome) {
	problems, reason := o.problems()
	failed, message := len(problems) > 0, "all is well"
	if failed {
		message = few(problems, shownProblems, "; ")
	} else {
		reason = v1alpha1.ApplicationSetReasonUpToDate
	}
	s.condition(next, v1alpha1.ApplicationSetConditionErrorOccurred, failed, reason, message)
	upToDate := !failed
	switch h := o.decision.Held; {
	case failed:
	case h != nil:
		upToDate, reason, message = false, v1alpha1.ApplicationSetReasonHeldOverBudget, fmt.Sprintf("%d deletions wait for an approval", len(h.Names))
	case o.unsure:
		upToDate, reason, message = false, v1alpha1.ApplicationSetReasonHeldOverBudget, "deletions wait for an approval"
	case s.opts.Sets.DryRun && o.pending() > 0:
		upToDate, reason, message = false, v1alpha1.ApplicationSetReasonModified, fmt.Sprintf("%d changes are not carried out: the controller runs with --applicationset-dry-run", o.pending())
	}
	s.condition(next, v1alpha1.ApplicationSetConditionResourcesUpToDate, upToDate, reason, message)
	generated, complete := v1alpha1.ApplicationSetReasonParametersGenerated, o.result.Completeness == generate.Complete
	counted := fmt.Sprintf("%d elements, %s", len(o.result.Elements), o.result.Completeness)
	if len(o.result.Errors) > 0 {
		generated = v1alpha1.ApplicationSetReasonInputsFailed
		counted += ": what was generated before stays in force: " + few(texts(o.result.Errors), shownProblems, "; ")
	}
	if warnings := o.warnings(); len(warnings) > 0 {
		counted += "; warnings: " + few(warnings, shownProblems, "; ")
	}
	s.condition(next, v1alpha1.ApplicationSetConditionParametersGenerated, complete, generated, counted)
	if !o.unsure {
		s.heldCondition(next, o.decision.Held)
	}
}

// heldCondition says what waits for an approval. A set that never had such a
// plan has no such condition.
func (s *applicationSets) heldCondition(set *v1alpha1.ApplicationSet, h *generate.Held) {
	const t = v1alpha1.ApplicationSetConditionDeletionsHeld
	if h == nil {
		if slices.ContainsFunc(set.Status.Conditions, func(c v1alpha1.ApplicationSetCondition) bool { return c.Type == t }) {
			s.condition(set, t, false, v1alpha1.ApplicationSetReasonUpToDate, "nothing waits for an approval")
		}
		return
	}
	s.condition(set, t, true, v1alpha1.ApplicationSetReasonHeldOverBudget,
		fmt.Sprintf("%s; or: %s; it deletes %s", h.Reason(), h.Approval(set), few(h.Names, shownNames, ", ")))
}

// statusOnly refreshes what the status says of the generated Applications.
func (s *applicationSets) statusOnly(ctx context.Context, set *v1alpha1.ApplicationSet) (reconcile.Result, error) {
	last := s.lastStatus(client.ObjectKeyFromObject(set))
	delay := min(setStatusDelay*time.Duration(1+set.Status.ResourcesCount/setStatusApps), setStatusSlow)
	if wait := delay - s.opts.Now().Sub(last); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{}, s.patchStatus(ctx, set, set.DeepCopy())
}

func (s *applicationSets) patchStatus(ctx context.Context, set, next *v1alpha1.ApplicationSet) error {
	if err := s.resources(ctx, next); err != nil {
		return err
	}
	next.Status.Health = setHealth(next, set.Status.Health, s.opts.Now)
	s.noteStatus(client.ObjectKeyFromObject(set))
	s.metrics.note(next)
	if reflect.DeepEqual(set.Status, next.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, next, client.MergeFrom(set), FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the status of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}

// resourceBytes is about what one entry takes beside its names, as JSON.
const resourceBytes = 130

// resources lists the generated Applications with their states.
func (s *applicationSets) resources(ctx context.Context, set *v1alpha1.ApplicationSet) error {
	var list v1alpha1.ApplicationList
	if err := s.client.List(ctx, &list, client.InNamespace(set.Namespace), client.MatchingFields{ownerIndex: set.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the Applications of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	apps := make([]*v1alpha1.Application, 0, len(list.Items))
	for i := range list.Items {
		apps = append(apps, &list.Items[i])
	}
	set.Status.ResourcesCount, set.Status.Resources = int64(len(apps)), resourcesOf(apps)
	return nil
}

// resourcesOf are as many of some Applications as a status has room for, the
// first by name.
func resourcesOf(apps []*v1alpha1.Application) []v1alpha1.ApplicationSetResource {
	slices.SortFunc(apps, func(a, b *v1alpha1.Application) int { return strings.Compare(a.Name, b.Name) })
	var out []v1alpha1.ApplicationSetResource
	size := 0
	for _, app := range apps {
		r := v1alpha1.ApplicationSetResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Application",
			Namespace: app.Namespace, Name: app.Name, Status: app.Status.Sync.Status}
		size += resourceBytes + len(r.Name) + len(r.Namespace) + len(r.Status)
		if h := app.Status.Health.Status; h != "" {
			r.Health = &v1alpha1.ApplicationSetHealth{Status: h}
			size += len(h)
		}
		if len(out) == maxSetResources || size > maxResourceBytes {
			break
		}
		out = append(out, r)
	}
	return out
}

// condition sets one condition, keeping the time of one that says the same.
func (s *applicationSets) condition(set *v1alpha1.ApplicationSet, t v1alpha1.ApplicationSetConditionType, yes bool, reason, message string) {
	status := "False"
	if yes {
		status = "True"
	}
	now := metav1.NewTime(s.opts.Now().UTC().Truncate(1e9))
	next := v1alpha1.ApplicationSetCondition{Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: &now}
	for i, c := range set.Status.Conditions {
		if c.Type != t {
			continue
		}
		if c.Status == status {
			next.LastTransitionTime = c.LastTransitionTime
		}
		set.Status.Conditions[i] = next
		return
	}
	set.Status.Conditions = append(set.Status.Conditions, next)
}
