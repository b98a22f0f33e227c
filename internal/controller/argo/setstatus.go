package argo

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// maxSetResources bounds status.resources (reference 5.1).
const maxSetResources = 5000

// outcome is what one evaluation of a set came to.
type outcome struct {
	result   generate.Result
	changes  []generate.Change
	failures []error
}

// problems lists, in words, what is wrong; empty when all is well.
func (o outcome) problems() []string {
	var out []string
	for _, err := range o.result.Errors {
		out = append(out, err.Error())
	}
	for _, e := range o.result.Elements {
		if e.Err != nil {
			out = append(out, e.Err.Error())
		}
	}
	for _, err := range o.failures {
		out = append(out, err.Error())
	}
	for _, c := range o.changes {
		if c.Verb == generate.Hold {
			out = append(out, fmt.Sprintf("application %q is held: %s", c.Name, c.Reason))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// writeStatus records an evaluation.
func (s *applicationSets) writeStatus(ctx context.Context, set *v1alpha1.ApplicationSet, o outcome) error {
	next := set.DeepCopy()
	problems := o.problems()
	message, more := "all is well", ""
	if len(problems) > 3 {
		more = fmt.Sprintf(", and %d more", len(problems)-3)
		problems = problems[:3]
	}
	failed := len(problems) > 0
	reason := v1alpha1.ApplicationSetReasonUpToDate
	if failed {
		message = strings.Join(problems, "; ") + more
		reason = v1alpha1.ApplicationSetReasonErrorOccurred
	}
	s.condition(next, v1alpha1.ApplicationSetConditionErrorOccurred, failed, reason, message)
	complete := o.result.Completeness == generate.Complete
	s.condition(next, v1alpha1.ApplicationSetConditionParametersGenerated, complete, v1alpha1.ApplicationSetReasonParametersGenerated,
		fmt.Sprintf("%d elements, %s", len(o.result.Elements), o.result.Completeness))
	s.condition(next, v1alpha1.ApplicationSetConditionResourcesUpToDate, !failed, reason, message)
	return s.patchStatus(ctx, set, next)
}

// statusOnly refreshes what the status says of the generated Applications.
func (s *applicationSets) statusOnly(ctx context.Context, set *v1alpha1.ApplicationSet) (reconcile.Result, error) {
	last := s.lastStatus(client.ObjectKeyFromObject(set))
	if wait := setStatusDelay - s.opts.Now().Sub(last); wait > 0 {
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
	if reflect.DeepEqual(set.Status, next.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, next, client.MergeFrom(set), FieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the status of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}

// resources lists the generated Applications with their states.
func (s *applicationSets) resources(ctx context.Context, set *v1alpha1.ApplicationSet) error {
	var list v1alpha1.ApplicationList
	if err := s.client.List(ctx, &list, client.InNamespace(set.Namespace), client.MatchingFields{ownerIndex: set.Name}); err != nil {
		return fmt.Errorf("list the Applications of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	out := make([]v1alpha1.ApplicationSetResource, 0, len(list.Items))
	for i := range list.Items {
		app := &list.Items[i]
		r := v1alpha1.ApplicationSetResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Application",
			Namespace: app.Namespace, Name: app.Name, Status: app.Status.Sync.Status}
		if h := app.Status.Health.Status; h != "" {
			r.Health = &v1alpha1.ApplicationSetHealth{Status: h}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b v1alpha1.ApplicationSetResource) int { return strings.Compare(a.Name, b.Name) })
	set.Status.ResourcesCount = int64(len(out))
	set.Status.Resources = out[:min(len(out), maxSetResources)]
	if len(out) == 0 {
		set.Status.Resources = nil
	}
	return nil
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
