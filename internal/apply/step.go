package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// step carries out one step and says what became of it.
func (r *run) step(ctx context.Context, s rutter.Step) rutter.StepResult {
	if s.Action == rutter.ActionPrune {
		return r.prune(ctx, s)
	}
	res := rutter.StepResult{Step: s}
	obj, err := r.Object(s.Index)
	if err != nil {
		return failed(res, fmt.Errorf("load the desired object: %w", err))
	}
	gvk := rutter.GVKOf(obj)
	res.Version, res.Images = gvk.Version, plan.Images(obj)
	if s.Hook {
		this := r.asHook(s, obj)
		if !r.DryRun {
			switch live, err := r.earlierHook(ctx, s, gvk, obj, this); {
			case err != nil:
				return failed(res, err)
			case live != nil:
				res.Message = "runs since before a restart"
				return r.sentOff(res, live)
			}
		}
	}
	live, err := r.write(ctx, s, gvk, obj)
	switch {
	case err == nil:
	case rutter.CodeOf(err) == rutter.CodeNotFound && r.kindMissing(s):
		res.Status, res.Message = statusWaiting, "WaitingForKind: the cluster does not serve "+gvk.Kind+" in "+groupVersion(gvk)
		return res
	default:
		return failed(res, err)
	}
	if res.Message = "serverside-applied"; r.Manner(s.Index).Replace {
		res.Message = "replaced"
	}
	if r.DryRun {
		res.Status, res.Message = StatusSynced, res.Message+" (server dry run)"
		return res
	}
	return r.sentOff(res, live)
}

// sentOff records what is on the cluster by now for a step.
func (r *run) sentOff(res rutter.StepResult, live *unstructured.Unstructured) rutter.StepResult {
	res.Status = StatusSynced
	r.Live.Applied(res.Step, live)
	key := stepKey{res.Index, res.Phase}
	res.Step = withName(res.Step, live)
	if res.Hook {
		res.HookPhase = string(rutter.OperationRunning)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[key] = Awaited{Ref: res.Ref, UID: string(live.GetUID()), Hook: res.Hook, gvk: rutter.GVKOf(live)}
	return res
}

// kindMissing reports whether the cluster does not serve the step's kind.
func (r *run) kindMissing(s rutter.Step) bool { return r.Missing != nil && r.Missing(s.Index) }

func groupVersion(gvk rutter.GVK) string {
	if gvk.Group == "" {
		return gvk.Version
	}
	return gvk.Group + "/" + gvk.Version
}

func (r *run) prune(ctx context.Context, s rutter.Step) rutter.StepResult {
	res := rutter.StepResult{Step: s}
	if r.DryRun {
		res.Status, res.Message = StatusPruned, "pruned (dry run)"
		return res
	}
	gvk := rutter.GVK{Group: s.Ref.Group, Version: s.Version, Kind: s.Ref.Kind}
	live, err := r.Cluster.Get(ctx, gvk, s.Ref.Namespace, s.Ref.Name)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		res.Status, res.Message = StatusPruned, "is gone already"
		return res
	}
	if err == nil && live.GetLabels()[rutter.LabelUnit] != r.Mark {
		res.Status, res.Message = StatusPruneSkipped, "ignored (another application has taken it over)"
		return res
	}
	if r.Spare != nil {
		if why := r.Spare(ctx, s.Ref); why != "" {
			res.Status, res.Message = StatusPruneSkipped, "ignored ("+why+")"
			return res
		}
	}
	if r.stopped() {
		res.Status, res.Message = StatusPruneSkipped, "ignored (a newer revision waits, which may declare it again)"
		return res
	}
	err = r.Cluster.Delete(ctx, gvk, s.Ref.Namespace, s.Ref.Name, rutter.DeleteOptions{UID: s.UID, Propagation: r.Propagation})
	if err != nil {
		return failed(res, err)
	}
	r.Live.Removed(s)
	res.Status, res.Message = StatusPruned, "pruned: "+s.Reason
	return res
}

func withName(s rutter.Step, obj *unstructured.Unstructured) rutter.Step {
	s.Ref = rutter.RefOf(obj)
	return s
}

func failed(res rutter.StepResult, err error) rutter.StepResult {
	res.Status, res.Message = StatusFailed, err.Error()
	return res
}
