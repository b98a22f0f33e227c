package argo

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const defaultHistoryLimit = 10

// Status turns a report into the status of its Application, in the reference's
// shape (1.13, 2.1). The same report over the status it produced gives the same
// status again, so that an unchanged one need not be written.
func Status(r rutter.Report, app *v1alpha1.Application, now time.Time) v1alpha1.ApplicationStatus {
	old := &app.Status
	s := v1alpha1.ApplicationStatus{
		Resources: resources(r.Resources), ControllerNamespace: old.ControllerNamespace, SourceHydrator: old.SourceHydrator,
		Health:  v1alpha1.AppHealthStatus{Status: string(r.Health.Status), Message: r.Health.Message},
		Summary: v1alpha1.ApplicationSummary{Images: r.Images, IsAppOfApps: appOfApps(r.Resources)},
		History: old.History, ReconciledAt: old.ReconciledAt, OperationState: old.OperationState,
	}
	s.Health.LastTransitionTime = old.Health.LastTransitionTime
	if old.Health.Status != s.Health.Status || s.Health.LastTransitionTime == nil {
		s.Health.LastTransitionTime = stamp(now)
	}
	s.Sync = syncStatus(r, app)
	if len(app.Spec.Sources) > 0 {
		s.SourceTypes = r.SourceTypes
	} else if len(r.SourceTypes) > 0 {
		s.SourceType = r.SourceTypes[0]
	}
	s.Conditions = conditions(r.Conditions, old.Conditions, now)
	if compared := changed(r, &s, old); compared && !r.ComparedAt.IsZero() {
		s.ReconciledAt = stamp(r.ComparedAt)
	}
	if r.Operation != nil {
		s.OperationState = operationState(app, r.Operation)
		s.History = history(app, r.Operation, old.History)
	}
	return s
}

// changed reports whether reconciledAt moves: with a comparison that found
// something new. A comparison that found nothing new is not worth a write.
func changed(r rutter.Report, s, old *v1alpha1.ApplicationStatus) bool {
	return old.ReconciledAt == nil || s.Sync.Status != old.Sync.Status || s.Sync.Revision != old.Sync.Revision ||
		!slices.Equal(s.Sync.Revisions, old.Sync.Revisions) || len(s.Conditions) != len(old.Conditions) || r.Operation != nil && old.OperationState == nil
}

func syncStatus(r rutter.Report, app *v1alpha1.Application) v1alpha1.SyncStatus {
	s := v1alpha1.SyncStatus{Status: string(r.Sync), ComparedTo: v1alpha1.ComparedTo{
		Destination: app.Spec.Destination, IgnoreDifferences: app.Spec.IgnoreDifferences,
	}}
	if len(app.Spec.Sources) > 0 {
		s.ComparedTo.Sources = app.Spec.Sources
	} else {
		s.ComparedTo.Source = app.Spec.Source
	}
	s.Revision, s.Revisions = split(app, r.Revisions)
	return s
}

func resources(in []rutter.ResourceReport) []v1alpha1.ResourceStatus {
	var out []v1alpha1.ResourceStatus
	for _, r := range in {
		s := v1alpha1.ResourceStatus{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			Status: string(r.State), Hook: r.Hook, RequiresPruning: r.RequiresPruning, SyncWave: int64(r.Wave)}
		if r.Health.Status != "" {
			s.Health = &v1alpha1.HealthStatus{Status: string(r.Health.Status), Message: r.Health.Message}
		}
		if r.State != rutter.Synced && r.Reason != "" && s.Health == nil {
			s.Health = &v1alpha1.HealthStatus{Message: r.Reason}
		}
		out = append(out, s)
	}
	return out
}

func appOfApps(in []rutter.ResourceReport) bool {
	return slices.ContainsFunc(in, func(r rutter.ResourceReport) bool {
		return r.Group == v1alpha1.GroupVersion.Group && (r.Kind == "Application" || r.Kind == "ApplicationSet")
	})
}

// conditions sorts by type and message; an unchanged one keeps its time.
func conditions(in []rutter.Condition, old []v1alpha1.ApplicationCondition, now time.Time) []v1alpha1.ApplicationCondition {
	var out []v1alpha1.ApplicationCondition
	for _, c := range in {
		next := v1alpha1.ApplicationCondition{Type: c.Type, Message: c.Message, LastTransitionTime: stamp(now)}
		for _, o := range old {
			if o.Type == c.Type && o.Message == c.Message {
				next.LastTransitionTime = o.LastTransitionTime
			}
		}
		out = append(out, next)
	}
	slices.SortFunc(out, func(a, b v1alpha1.ApplicationCondition) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(out, func(a, b v1alpha1.ApplicationCondition) bool {
		return a.Type == b.Type && a.Message == b.Message
	})
}

func operationState(app *v1alpha1.Application, o *rutter.OperationReport) *v1alpha1.OperationState {
	s := &v1alpha1.OperationState{Operation: operation(app, o), Phase: string(o.Phase), Message: o.Message,
		StartedAt: *stamp(o.StartedAt), RetryCount: o.RetryCount, SyncResult: &v1alpha1.SyncOperationResult{}}
	if !o.FinishedAt.IsZero() {
		s.FinishedAt = stamp(o.FinishedAt)
	}
	s.SyncResult.Revision, s.SyncResult.Revisions = split(app, o.Revisions)
	if len(app.Spec.Sources) > 0 {
		s.SyncResult.Sources = app.Spec.Sources
	} else {
		s.SyncResult.Source = app.Spec.Source
	}
	for _, r := range o.Results {
		res := v1alpha1.ResourceResult{Group: r.Ref.Group, Version: r.Version, Kind: r.Ref.Kind, Namespace: r.Ref.Namespace, Name: r.Ref.Name,
			Status: r.Status, Message: r.Message, HookPhase: r.HookPhase, SyncPhase: string(r.Phase)}
		if r.Hook {
			res.HookType = string(r.Phase)
		}
		s.SyncResult.Resources = append(s.SyncResult.Resources, res)
	}
	if sp := app.Spec.SyncPolicy; sp != nil {
		s.SyncResult.ManagedNamespaceMetadata = sp.ManagedNamespaceMetadata
	}
	return s
}

// history appends a successful full sync, once (reference 2.1).
func history(app *v1alpha1.Application, o *rutter.OperationReport, old []v1alpha1.RevisionHistory) []v1alpha1.RevisionHistory {
	if o.Phase != rutter.OperationSucceeded || o.Partial || o.Request.DryRun || o.FinishedAt.IsZero() {
		return old
	}
	h := v1alpha1.RevisionHistory{DeployedAt: *stamp(o.FinishedAt), DeployStartedAt: stamp(o.StartedAt),
		InitiatedBy: v1alpha1.OperationInitiator{Username: o.Request.InitiatedBy, Automated: o.Request.Automated}}
	h.Revision, h.Revisions = split(app, o.Revisions)
	if len(app.Spec.Sources) > 0 {
		h.Sources = app.Spec.Sources
	} else {
		h.Source = app.Spec.Source
	}
	if n := len(old); n > 0 {
		last := old[n-1]
		h.ID = last.ID + 1
		if !last.DeployedAt.Before(&h.DeployedAt) {
			return old // reported before
		}
	}
	limit := int64(defaultHistoryLimit)
	if l := app.Spec.RevisionHistoryLimit; l != nil {
		limit = max(0, *l)
	}
	next := append(slices.Clone(old), h)
	return next[max(0, int64(len(next))-limit):]
}

// stamp is a time as the API stores it: UTC, in seconds.
func stamp(t time.Time) *metav1.Time {
	m := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &m
}
