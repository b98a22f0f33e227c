package argo

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// SyncRequest translates the operation field (reference 2.1). Without a retry
// of its own the application's is used (2.12).
func SyncRequest(app *v1alpha1.Application) rutter.SyncRequest {
	op := app.Operation
	if op == nil {
		return rutter.SyncRequest{}
	}
	req := rutter.SyncRequest{InitiatedBy: op.InitiatedBy.Username, Automated: op.InitiatedBy.Automated}
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
	if s.Revision == "" && len(s.Revisions) == 1 {
		req.Revision = s.Revisions[0]
	}
	if st := s.SyncStrategy; st != nil {
		req.Force = st.Apply != nil && st.Apply.Force || st.Hook != nil && st.Hook.Force
	}
	req.Resources = refs(s.Resources)
	return req
}

// CheckOperation reports why the requested sync cannot be carried out as it is
// asked for: it names other sources than the application's, which are not
// acted on yet, and syncing the application's instead would not be that.
func CheckOperation(app *v1alpha1.Application) error {
	var fields []string
	for _, f := range unsupportedOperation(app) {
		switch f {
		case "operation.sync.source", "operation.sync.sources", "operation.sync.manifests", "operation.sync.revisions":
			fields = append(fields, f)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return rutter.Errorf(rutter.CodeUnsupported, "Application %s: these fields are not acted on yet: %s: ask for a sync of what the spec declares",
		app.Name, strings.Join(fields, ", "))
}

// unsupportedOperation names the fields of a requested sync that are set and
// not acted on yet. A sync is carried out with the application's own options.
func unsupportedOperation(app *v1alpha1.Application) []string {
	op := app.Operation
	if op == nil {
		return nil
	}
	var out []string
	note := func(set bool, field string) {
		if set {
			out = append(out, "operation."+field)
		}
	}
	note(op.Retry.Refresh, "retry.refresh")
	s := op.Sync
	if s == nil {
		return out
	}
	note(s.Source != nil, "sync.source")
	note(len(s.Sources) > 0, "sync.sources")
	note(len(s.Manifests) > 0, "sync.manifests")
	note(len(s.Revisions) > 1, "sync.revisions")
	note(s.SyncStrategy != nil && s.SyncStrategy.Apply != nil, "sync.syncStrategy.apply")
	var own []string
	if p := app.Spec.SyncPolicy; p != nil {
		own = p.SyncOptions
	}
	for i, o := range s.SyncOptions {
		note(useOf(o) != asAlways && !slices.Contains(own, o), fmt.Sprintf("sync.syncOptions[%d] %q", i, o))
	}
	return out
}

// operation is the inverse of SyncRequest, for status.operationState.operation.
func operation(app *v1alpha1.Application, o *rutter.OperationReport) v1alpha1.Operation {
	req := o.Request
	if asked := app.Operation; asked != nil && asked.Sync != nil && answers(req, SyncRequest(app)) {
		return *asked.DeepCopy()
	}
	out := v1alpha1.Operation{
		InitiatedBy: v1alpha1.OperationInitiator{Username: req.InitiatedBy, Automated: req.Automated},
		Retry:       retryStrategy(req.Retry),
		Sync:        &v1alpha1.SyncOperation{Prune: req.Prune, DryRun: req.DryRun, SyncOptions: req.Options},
	}
	if sp := app.Spec.SyncPolicy; sp != nil && req.Automated {
		out.Sync.SyncOptions = sp.SyncOptions
	}
	out.Sync.Revision, out.Sync.Revisions = split(app, o.Revisions)
	if req.Force {
		out.Sync.SyncStrategy = &v1alpha1.SyncStrategy{Hook: &v1alpha1.SyncStrategyHook{SyncStrategyApply: v1alpha1.SyncStrategyApply{Force: true}}}
	}
	for _, r := range req.Resources {
		out.Sync.Resources = append(out.Sync.Resources, v1alpha1.SyncOperationResource{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	}
	return out
}

// answers reports whether a sync is the one that was asked for.
func answers(done, asked rutter.SyncRequest) bool {
	return done.Automated == asked.Automated && done.InitiatedBy == asked.InitiatedBy && done.Revision == asked.Revision &&
		done.Prune == asked.Prune && done.DryRun == asked.DryRun && done.Force == asked.Force &&
		slices.Equal(done.Resources, asked.Resources) && slices.Equal(done.Options, asked.Options)
}

func retryStrategy(r rutter.Retry) v1alpha1.RetryStrategy {
	out := v1alpha1.RetryStrategy{Limit: r.Limit}
	if r.Duration != 0 || r.Factor != 0 || r.MaxDuration != 0 {
		out.Backoff = &v1alpha1.Backoff{}
		if r.Duration != 0 {
			out.Backoff.Duration = r.Duration.String()
		}
		if r.MaxDuration != 0 {
			out.Backoff.MaxDuration = r.MaxDuration.String()
		}
		if r.Factor != 0 {
			out.Backoff.Factor = &r.Factor
		}
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

func refs(in []v1alpha1.SyncOperationResource) []rutter.Ref {
	var out []rutter.Ref
	for _, r := range in {
		out = append(out, rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	}
	return out
}

// lastOperation reads the last completed operation back from the status, so
// that a restart does not try again what was tried.
func lastOperation(app *v1alpha1.Application) *rutter.OperationReport {
	st := app.Status.OperationState
	if st == nil || !rutter.OperationPhase(st.Phase).Completed() || st.SyncResult == nil {
		return nil
	}
	if !reflect.DeepEqual(st.SyncResult.Source, app.Spec.Source) && len(app.Spec.Sources) == 0 ||
		len(app.Spec.Sources) > 0 && !reflect.DeepEqual(st.SyncResult.Sources, app.Spec.Sources) {
		return nil // of another declaration: what is declared now has not been tried
	}
	asked := *app
	asked.Operation = &st.Operation
	out := &rutter.OperationReport{Request: SyncRequest(&asked), Phase: rutter.OperationPhase(st.Phase), Message: st.Message,
		StartedAt: st.StartedAt.Time, RetryCount: st.RetryCount, Revisions: st.SyncResult.Revisions}
	out.Partial = len(out.Request.Resources) > 0
	out.Request.Revision = ""
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
