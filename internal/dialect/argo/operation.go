package argo

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/plan"
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
	case op.Retry.Limit != 0 || op.Retry.Backoff != nil || op.Retry.Refresh:
		req.Retry = t.retry("operation.retry", op.Retry)
	case app.Spec.SyncPolicy != nil && app.Spec.SyncPolicy.Retry != nil:
		req.Retry = t.retry("spec.syncPolicy.retry", *app.Spec.SyncPolicy.Retry)
	}
	s := op.Sync
	if s == nil {
		return req
	}
	req.Revision, req.Prune, req.DryRun = s.Revision, s.Prune, s.DryRun
	for _, o := range s.SyncOptions {
		if plan.OptionProblem(o, false) == "" {
			req.Options = append(req.Options, o)
		}
	}
	switch {
	case s.Revision == "" && len(s.Revisions) == 1:
		req.Revision = s.Revisions[0]
	case len(s.Revisions) > 1:
		req.Revision, req.Revisions = "", s.Revisions
	}
	if st := s.SyncStrategy; st != nil {
		req.Force = st.Apply != nil && st.Apply.Force || st.Hook != nil && st.Hook.Force
		req.SkipHooks = st.Apply != nil
	}
	req.Sources, req.Manifests, req.Attempt = t.operationSources(), s.Manifests, s.AutoHealAttemptsCount
	req.Resources = refs(s.Resources)
	return req
}

// operationSources are the sources that a requested sync names in the place of the
// application's own.
func (t *translation) operationSources() []rutter.Source {
	s := t.app.Operation.Sync
	if s.Source == nil && len(s.Sources) == 0 {
		return nil
	}
	asked := *t.app
	asked.Spec.Source, asked.Spec.Sources, asked.Spec.SourceHydrator = s.Source, s.Sources, nil
	own := &translation{app: &asked, cfg: t.cfg}
	sources := own.sources()
	t.problem = cmp.Or(t.problem, own.problem)
	return sources
}

// CheckOperation reports why the requested sync cannot be carried out as it is
// asked for.
func CheckOperation(app *v1alpha1.Application) error {
	if app.Operation == nil || app.Operation.Sync == nil {
		return nil
	}
	s := app.Operation.Sync
	t := &translation{app: app}
	t.operationSources()
	automated := app.Spec.SyncPolicy != nil && app.Spec.SyncPolicy.Automated != nil && t.policy().Automated
	sources := max(len(s.Sources), len(app.Spec.Sources), 1)
	switch {
	case t.problem != nil:
		return rutter.Errorf(rutter.CodeInvalid, "operation.sync: its sources cannot be used: %w", t.problem)
	case len(s.Revisions) > 1 && len(s.Revisions) != sources:
		return rutter.Errorf(rutter.CodeInvalid, "operation.sync.revisions: there are %d, and %d sources", len(s.Revisions), sources)
	case len(s.Manifests) > 0 && automated && !s.DryRun:
		return rutter.Errorf(rutter.CodeInvalid, "operation.sync.manifests: auto-sync is on, and would undo it: only a dry run of them is possible")
	}
	return nil
}

// operationProblems says what of a requested sync has no effect.
func operationProblems(app *v1alpha1.Application) []string {
	if app.Operation == nil || app.Operation.Sync == nil {
		return nil
	}
	var out []string
	for i, o := range app.Operation.Sync.SyncOptions {
		if problem := plan.OptionProblem(o, false); problem != "" {
			out = append(out, fmt.Sprintf("operation.sync.syncOptions[%d]: %s", i, problem))
		}
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
		Sync:        &v1alpha1.SyncOperation{Prune: req.Prune, DryRun: req.DryRun, SyncOptions: req.Options, AutoHealAttemptsCount: req.Attempt},
	}
	if sp := app.Spec.SyncPolicy; sp != nil && req.Automated {
		out.Sync.SyncOptions = sp.SyncOptions
	}
	out.Sync.Revision, out.Sync.Revisions = split(app, o.Revisions)
	switch {
	case req.SkipHooks:
		out.Sync.SyncStrategy = &v1alpha1.SyncStrategy{Apply: &v1alpha1.SyncStrategyApply{Force: req.Force}}
	case req.Force:
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
		done.Prune == asked.Prune && done.DryRun == asked.DryRun && done.Force == asked.Force && done.SkipHooks == asked.SkipHooks &&
		slices.Equal(done.Resources, asked.Resources) && slices.Equal(done.Options, asked.Options) && slices.Equal(done.Revisions, asked.Revisions) &&
		slices.Equal(done.Manifests, asked.Manifests) && reflect.DeepEqual(done.Sources, asked.Sources)
}

func retryStrategy(r rutter.Retry) v1alpha1.RetryStrategy {
	out := v1alpha1.RetryStrategy{Limit: r.Limit, Refresh: r.Refresh}
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
	return splitFor(len(app.Spec.Sources) > 0, revisions)
}

func splitFor(plural bool, revisions []string) (string, []string) {
	if plural {
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

// lastOperation reads the last operation, or the one that runs, back from the status, so
// that a restart does not try again what was tried.
func lastOperation(app *v1alpha1.Application) *rutter.OperationReport {
	st := app.Status.OperationState
	if st == nil || st.SyncResult == nil {
		return nil
	}
	runs := !rutter.OperationPhase(st.Phase).Completed()
	if !runs && !reflect.DeepEqual(st.SyncResult.Source, app.Spec.Source) && len(app.Spec.Sources) == 0 ||
		!runs && len(app.Spec.Sources) > 0 && !reflect.DeepEqual(st.SyncResult.Sources, app.Spec.Sources) {
		return nil // of another declaration: what is declared now has not been tried
	}
	asked := *app
	asked.Operation = st.Operation.DeepCopy()
	out := &rutter.OperationReport{Request: SyncRequest(&asked), Phase: rutter.OperationPhase(st.Phase), Message: st.Message,
		StartedAt: st.StartedAt.Time, RetryCount: st.RetryCount, Revisions: st.SyncResult.Revisions}
	out.Partial = len(out.Request.Resources) > 0
	out.Request.Revision, out.Request.SelfHeal = "", out.Request.Automated && out.Partial
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
			Status: r.Status, Message: r.Message, HookPhase: r.HookPhase, Images: r.Images,
		})
	}
	return out
}
