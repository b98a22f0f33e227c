package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/apply"
	"github.com/rutterhq/rutter/internal/compare"
)

// ensureNamespace is CreateNamespace=true (reference 2.10): the target namespace
// exists, with managedNamespaceMetadata, before anything goes into it. It
// carries no mark, so it is never pruned. A Namespace in the source wins.
func (e *Engine) ensureNamespace(ctx context.Context, c rutter.Cluster, unit rutter.Unit, d *desired, op *operation) ([]rutter.StepResult, error) {
	req := op.report.Request
	name := unit.Target.Namespace
	ref := rutter.Ref{Kind: "Namespace", Name: name}
	if _, declared := d.index[ref]; declared || !unit.Policy.CreateNamespace || name == "" {
		return nil, nil
	}
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	if len(unit.Policy.NamespaceLabels) > 0 {
		ns.SetLabels(unit.Policy.NamespaceLabels)
	}
	if len(unit.Policy.NamespaceAnnotations) > 0 {
		ns.SetAnnotations(unit.Policy.NamespaceAnnotations)
	}
	key := c.Info().Server + "|" + compare.Hash(ns)
	e.reachMu.Lock()
	known := e.namespaces[key]
	e.reachMu.Unlock()
	if known && req.Automated && op.report.RetryCount == 0 {
		return nil, nil
	}
	step := rutter.Step{Action: rutter.ActionApply, Ref: ref, Phase: rutter.PhasePreSync, Version: "v1", Index: -1, Reason: "CreateNamespace"}
	result := rutter.StepResult{Step: step, Status: apply.StatusSynced, Message: "namespace created or up to date"}
	if _, err := c.Apply(ctx, ns, rutter.ApplyOptions{DryRun: req.DryRun}); err != nil {
		result.Status, result.Message = apply.StatusFailed, err.Error()
		return []rutter.StepResult{result}, fmt.Errorf("create namespace %q: %w", name, err)
	}
	if !req.DryRun {
		e.reachMu.Lock()
		e.namespaces[key] = true
		e.reachMu.Unlock()
	}
	return []rutter.StepResult{result}, nil
}
