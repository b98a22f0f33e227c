package argo

import (
	"reflect"
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// defaultHistoryLimit is revisionHistoryLimit when it is absent.
const defaultHistoryLimit = 10

// operationState is the sync in progress, or the last one (reference 2.1).
// What was asked for, and the sources that it was asked for, stay as they were
// recorded first: the spec may have moved on since. A completed operation that
// is recorded stays exactly as it is.
func operationState(app *v1alpha1.Application, o *rutter.OperationReport) *v1alpha1.OperationState {
	prior := recorded(app, o)
	if prior != nil && completedAs(prior, o) {
		return prior
	}
	s := &v1alpha1.OperationState{Phase: string(o.Phase), Message: o.Message, StartedAt: *stamp(o.StartedAt), RetryCount: o.RetryCount,
		SyncResult: &v1alpha1.SyncOperationResult{Resources: results(o.Results)}}
	if !o.FinishedAt.IsZero() {
		s.FinishedAt = stamp(o.FinishedAt)
	}
	if prior != nil && prior.SyncResult != nil {
		s.Operation, s.SyncResult.Source, s.SyncResult.Sources = prior.Operation, prior.SyncResult.Source, prior.SyncResult.Sources
		s.SyncResult.ManagedNamespaceMetadata = prior.SyncResult.ManagedNamespaceMetadata
		s.SyncResult.Revision, s.SyncResult.Revisions = splitFor(len(s.SyncResult.Sources) > 0, o.Revisions)
		return s
	}
	s.Operation = operation(app, o)
	s.SyncResult.Source, s.SyncResult.Sources = syncedSources(app, s.Operation)
	s.SyncResult.Revision, s.SyncResult.Revisions = splitFor(len(s.SyncResult.Sources) > 0, o.Revisions)
	if sp := app.Spec.SyncPolicy; sp != nil {
		s.SyncResult.ManagedNamespaceMetadata = sp.ManagedNamespaceMetadata
	}
	return s
}

// syncedSources are the sources that a sync is of: its own, or the declared ones.
func syncedSources(app *v1alpha1.Application, op v1alpha1.Operation) (*v1alpha1.ApplicationSource, []v1alpha1.ApplicationSource) {
	switch s := op.Sync; {
	case s != nil && len(s.Sources) > 0:
		return nil, s.Sources
	case s != nil && s.Source != nil:
		return s.Source, nil
	}
	return declared(app)
}

// recorded is the operation in the status if it is the one that is reported.
func recorded(app *v1alpha1.Application, o *rutter.OperationReport) *v1alpha1.OperationState {
	p := app.Status.OperationState
	if p == nil || !p.StartedAt.Equal(stamp(o.StartedAt)) || p.Operation.InitiatedBy.Automated != o.Request.Automated ||
		p.Operation.InitiatedBy.Username != o.Request.InitiatedBy {
		return nil
	}
	if p.Operation.Sync == nil {
		return nil
	}
	was := *app
	was.Operation = p.Operation.DeepCopy()
	req := SyncRequest(&was)
	if !slices.Equal(req.Resources, o.Request.Resources) || req.DryRun != o.Request.DryRun || req.SkipHooks != o.Request.SkipHooks ||
		!slices.Equal(req.Manifests, o.Request.Manifests) || !reflect.DeepEqual(req.Sources, o.Request.Sources) {
		return nil
	}
	return p
}

func completedAs(p *v1alpha1.OperationState, o *rutter.OperationReport) bool {
	return o.Phase.Completed() && p.Phase == string(o.Phase) && p.Message == o.Message && p.RetryCount == o.RetryCount &&
		p.FinishedAt != nil && p.FinishedAt.Equal(stamp(o.FinishedAt))
}

func results(in []rutter.StepResult) []v1alpha1.ResourceResult {
	var out []v1alpha1.ResourceResult
	for _, r := range in {
		res := v1alpha1.ResourceResult{Group: r.Ref.Group, Version: r.Version, Kind: r.Ref.Kind, Namespace: r.Ref.Namespace, Name: r.Ref.Name,
			Status: r.Status, Message: r.Message, HookPhase: r.HookPhase, SyncPhase: string(r.Phase), Images: r.Images}
		if r.Hook {
			res.HookType = string(r.Phase)
		}
		out = append(out, res)
	}
	return out
}

// history appends a successful full sync, once (reference 2.1).
func history(app *v1alpha1.Application, o *rutter.OperationReport, state *v1alpha1.OperationState) []v1alpha1.RevisionHistory {
	old := app.Status.History
	if o.Phase != rutter.OperationSucceeded || o.Partial || len(o.Request.Resources) > 0 || o.Request.DryRun || o.FinishedAt.IsZero() {
		return old
	}
	if p := recorded(app, o); p != nil && completedAs(p, o) {
		return old
	}
	h := v1alpha1.RevisionHistory{DeployedAt: *stamp(o.FinishedAt), DeployStartedAt: stamp(o.StartedAt),
		InitiatedBy: v1alpha1.OperationInitiator{Username: o.Request.InitiatedBy, Automated: o.Request.Automated}}
	h.Revision, h.Revisions = state.SyncResult.Revision, state.SyncResult.Revisions
	h.Source, h.Sources = state.SyncResult.Source, state.SyncResult.Sources
	if n := len(old); n > 0 {
		last := &old[n-1]
		if h.DeployedAt.Before(&last.DeployedAt) || sameDeployment(last, &h) {
			return old
		}
		h.ID = last.ID + 1
	}
	limit := int64(defaultHistoryLimit)
	if l := app.Spec.RevisionHistoryLimit; l != nil {
		limit = max(0, *l)
	}
	next := append(slices.Clone(old), h)
	return next[max(0, int64(len(next))-limit):]
}

// sameDeployment reports whether two entries are of one sync. Times are in
// seconds, and two syncs may end in the same one.
func sameDeployment(a, b *v1alpha1.RevisionHistory) bool {
	return a.DeployedAt.Equal(&b.DeployedAt) && (a.DeployStartedAt == nil || a.DeployStartedAt.Equal(b.DeployStartedAt)) &&
		a.Revision == b.Revision && slices.Equal(a.Revisions, b.Revisions) && reflect.DeepEqual(a.Source, b.Source) && reflect.DeepEqual(a.Sources, b.Sources)
}
