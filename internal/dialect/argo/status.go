package argo

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// refreshAnnotation asks for a comparison.
const refreshAnnotation = "argocd.argoproj.io/refresh"

// Status turns a report into the status of its Application, in the reference's
// shape (1.13, 2.1). A report that says nothing new gives the very status that
// the Application has, to the last byte, so that it need not be written.
func Status(r rutter.Report, app *v1alpha1.Application, now time.Time) v1alpha1.ApplicationStatus {
	old := &app.Status
	s := v1alpha1.ApplicationStatus{
		Resources: resources(r.Resources), Sync: syncStatus(r, app), Health: healthStatus(r.Health, old.Health, now),
		Conditions: conditions(r, old.Conditions, now), Summary: summary(r),
		History: old.History, OperationState: old.OperationState, ReconciledAt: old.ReconciledAt,
		ControllerNamespace: old.ControllerNamespace, SourceHydrator: old.SourceHydrator,
	}
	if len(app.Spec.Sources) > 0 {
		s.SourceTypes = r.SourceTypes
	} else if len(r.SourceTypes) > 0 {
		s.SourceType = r.SourceTypes[0]
	}
	if r.Operation != nil {
		s.OperationState = operationState(app, r.Operation)
		s.History = history(app, r.Operation, s.OperationState)
	}
	if moved(r, &s, app) {
		s.ReconciledAt = stamp(r.ComparedAt)
	}
	if equality.Semantic.DeepEqual(&s, old) {
		return *old.DeepCopy() // equal but for time zones and empty lists
	}
	return s
}

// moved reports whether reconciledAt moves: with a full comparison that was
// asked for or found something new. One in every few minutes that finds nothing
// new is not worth a write to each of thousands of applications.
func moved(r rutter.Report, s *v1alpha1.ApplicationStatus, app *v1alpha1.Application) bool {
	old := &app.Status
	if r.ComparedAt.IsZero() || old.ReconciledAt != nil && !stamp(r.ComparedAt).After(old.ReconciledAt.Time) {
		return false
	}
	return old.ReconciledAt == nil || app.Annotations[refreshAnnotation] != "" ||
		!equality.Semantic.DeepEqual(s.Sync, old.Sync) || !sameConditions(s.Conditions, old.Conditions)
}

func syncStatus(r rutter.Report, app *v1alpha1.Application) v1alpha1.SyncStatus {
	s := v1alpha1.SyncStatus{Status: string(r.Sync), ComparedTo: v1alpha1.ComparedTo{
		Destination: app.Spec.Destination, IgnoreDifferences: app.Spec.IgnoreDifferences,
	}}
	s.ComparedTo.Source, s.ComparedTo.Sources = declared(app)
	s.Revision, s.Revisions = split(app, r.Revisions)
	return s
}

// declared are the sources of the spec, in the field in which they count.
func declared(app *v1alpha1.Application) (*v1alpha1.ApplicationSource, []v1alpha1.ApplicationSource) {
	if len(app.Spec.Sources) > 0 {
		return nil, app.Spec.Sources
	}
	return app.Spec.Source, nil
}

func healthStatus(h rutter.Health, old v1alpha1.AppHealthStatus, now time.Time) v1alpha1.AppHealthStatus {
	s := v1alpha1.AppHealthStatus{Status: string(h.Status), Message: h.Message, LastTransitionTime: old.LastTransitionTime}
	if old.Status != s.Status || s.LastTransitionTime == nil {
		s.LastTransitionTime = stamp(now)
	}
	return s
}

// resources are sorted by group, kind, namespace and name.
func resources(in []rutter.ResourceReport) []v1alpha1.ResourceStatus {
	in = slices.Clone(in)
	slices.SortStableFunc(in, func(a, b rutter.ResourceReport) int { return a.Ref.Compare(b.Ref) })
	var out []v1alpha1.ResourceStatus
	for _, r := range in {
		s := v1alpha1.ResourceStatus{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name,
			Status: string(r.State), Hook: r.Hook, RequiresPruning: r.RequiresPruning, SyncWave: int64(r.Wave), DeclaredAt: r.DeclaredAt,
			RequiresDeletionConfirmation: r.RequiresConfirmation, Drift: driftStatus(r.Drift)}
		if r.Health.Status != "" {
			s.Health = &v1alpha1.HealthStatus{Status: string(r.Health.Status), Message: r.Health.Message}
		}
		out = append(out, s)
	}
	return out
}

func summary(r rutter.Report) v1alpha1.ApplicationSummary {
	images := slices.Clone(r.Images)
	slices.Sort(images)
	return v1alpha1.ApplicationSummary{Images: slices.Compact(images), IsAppOfApps: slices.ContainsFunc(r.Resources, func(r rutter.ResourceReport) bool {
		return r.Group == v1alpha1.GroupVersion.Group && (r.Kind == "Application" || r.Kind == "ApplicationSet")
	})}
}

// stamp is a time as the API stores it: in seconds.
func stamp(t time.Time) *metav1.Time {
	m := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &m
}
