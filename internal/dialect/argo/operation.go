package argo

import (
	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// SyncRequest translates the operation field (reference 2.1). Without a retry
// of its own the application's is used (2.12).
func SyncRequest(app *v1alpha1.Application) rutter.SyncRequest {
	op := app.Operation
	req := rutter.SyncRequest{InitiatedBy: op.InitiatedBy.Username}
	t := &translation{app: app}
	switch {
	case op.Retry.Limit != 0 || op.Retry.Backoff != nil:
		req.Retry = t.retry("operation.retry", op.Retry)
	case app.Spec.SyncPolicy != nil && app.Spec.SyncPolicy.Retry != nil:
		req.Retry = t.retry("spec.syncPolicy.retry", *app.Spec.SyncPolicy.Retry)
	}
	s := op.Sync
	if s == nil {
		return req
	}
	req.Revision, req.Prune, req.DryRun, req.Options = s.Revision, s.Prune, s.DryRun, s.SyncOptions
	if st := s.SyncStrategy; st != nil {
		req.Force = st.Apply != nil && st.Apply.Force || st.Hook != nil && st.Hook.Force
	}
	for _, r := range s.Resources {
		req.Resources = append(req.Resources, rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	}
	return req
}

// operation is the inverse, for status.operationState.operation.
func operation(app *v1alpha1.Application, o *rutter.OperationReport) v1alpha1.Operation {
	req := o.Request
	out := v1alpha1.Operation{
		InitiatedBy: v1alpha1.OperationInitiator{Username: req.InitiatedBy, Automated: req.Automated},
		Retry:       v1alpha1.RetryStrategy{Limit: req.Retry.Limit},
		Sync:        &v1alpha1.SyncOperation{Prune: req.Prune, DryRun: req.DryRun, SyncOptions: req.Options},
	}
	if sp := app.Spec.SyncPolicy; sp != nil && req.Automated {
		out.Sync.SyncOptions = sp.SyncOptions
	}
	out.Sync.Revision, out.Sync.Revisions = split(app, o.Revisions)
	if req.Force {
		out.Sync.SyncStrategy = &v1alpha1.SyncStrategy{Apply: &v1alpha1.SyncStrategyApply{Force: true}}
	}
	for _, r := range req.Resources {
		out.Sync.Resources = append(out.Sync.Resources, v1alpha1.SyncOperationResource{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	}
	return out
}

// split puts revisions into the single or the plural field, as the sources are.
func split(app *v1alpha1.Application, revisions []string) (string, []string) {
	if len(app.Spec.Sources) > 0 {
		return "", revisions
	}
	if len(revisions) > 0 {
		return revisions[0], nil
	}
	return "", nil
}

// lastOperation reads the last completed operation back from the status, so
// that a restart does not try again what was tried.
func lastOperation(app *v1alpha1.Application) *rutter.OperationReport {
	st := app.Status.OperationState
	if st == nil || !rutter.OperationPhase(st.Phase).Completed() || st.SyncResult == nil {
		return nil
	}
	out := &rutter.OperationReport{Phase: rutter.OperationPhase(st.Phase), Message: st.Message, StartedAt: st.StartedAt.Time, RetryCount: st.RetryCount,
		Revisions: st.SyncResult.Revisions}
	out.Request.Automated, out.Request.InitiatedBy = st.Operation.InitiatedBy.Automated, st.Operation.InitiatedBy.Username
	if st.Operation.Sync != nil {
		out.Request.Prune, out.Request.DryRun, out.Request.Options = st.Operation.Sync.Prune, st.Operation.Sync.DryRun, st.Operation.Sync.SyncOptions
		out.Partial = len(st.Operation.Sync.Resources) > 0
		for _, r := range st.Operation.Sync.Resources {
			out.Request.Resources = append(out.Request.Resources, rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
		}
	}
	out.Request.Retry.Limit = st.Operation.Retry.Limit
	if st.SyncResult.Revision != "" {
		out.Revisions = []string{st.SyncResult.Revision}
	}
	if st.FinishedAt != nil {
		out.FinishedAt = st.FinishedAt.Time
	}
	for _, r := range st.SyncResult.Resources {
		out.Results = append(out.Results, rutter.StepResult{
			Step: rutter.Step{Ref: rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, Version: r.Version,
				Phase: rutter.Phase(r.SyncPhase), Hook: r.HookType != ""},
			Status: r.Status, Message: r.Message, HookPhase: r.HookPhase,
		})
	}
	return out
}
