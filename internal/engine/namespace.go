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
// carries no mark, so it is never pruned. A Namespace in the source wins, and so
// does one of another application.
func (e *Engine) ensureNamespace(ctx context.Context, u *state, c rutter.Cluster, unit rutter.Unit, d *desired, op *operation) ([]rutter.StepResult, error) {
	ns := targetNamespace(unit, d)
	if ns == nil {
		return nil, nil
	}
	req := op.report.Request
	u.mu.Lock()
	known := u.namespace.as(c.Info().Server, ns)
	u.mu.Unlock()
	if known && req.Automated && op.report.RetryCount == 0 {
		return nil, nil
	}
	step := rutter.Step{Action: rutter.ActionApply, Ref: rutter.RefOf(ns), Phase: rutter.PhasePreSync, Version: "v1", Index: -1, Reason: "CreateNamespace"}
	result := rutter.StepResult{Step: step, Status: apply.StatusSynced, Message: "namespace created or up to date"}
	if err := e.writeNamespace(ctx, c, unit, ns, req.DryRun); err != nil {
		result.Status, result.Message = apply.StatusFailed, err.Error()
		return []rutter.StepResult{result}, fmt.Errorf("create namespace %q: %w", ns.GetName(), err)
	}
	if !req.DryRun {
		u.mu.Lock()
		u.namespace.settle(c.Info().Server, ns, true)
		u.mu.Unlock()
	}
	return []rutter.StepResult{result}, nil
}

// targetNamespace is the namespace that a unit wants to be there; nil for none.
func targetNamespace(unit rutter.Unit, d *desired) *unstructured.Unstructured {
	name := unit.Target.Namespace
	if d.declares(rutter.Ref{Kind: "Namespace", Name: name}) || !unit.Policy.CreateNamespace || name == "" {
		return nil
	}
	ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	if len(unit.Policy.NamespaceLabels) > 0 {
		ns.SetLabels(unit.Policy.NamespaceLabels)
	}
	if len(unit.Policy.NamespaceAnnotations) > 0 {
		ns.SetAnnotations(unit.Policy.NamespaceAnnotations)
	}
	return ns
}

// writeNamespace applies the namespace under a name of its own, for each unit: what
// another application, that declares the namespace or manages metadata of it too, has
// put there stays. A namespace that is there is not written where nothing is to be
// on it, and nothing was.
func (e *Engine) writeNamespace(ctx context.Context, c rutter.Cluster, unit rutter.Unit, ns *unstructured.Unstructured, dryRun bool) error {
	opts := rutter.ApplyOptions{DryRun: dryRun, Part: "namespace-" + unit.ID.Hash()}
	live, err := c.Get(ctx, namespaceKind, "", ns.GetName())
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound:
	case err != nil:
		return fmt.Errorf("look for it: %w", err)
	case !managesMetadata(ns) && !appliedPart(live, opts.Part):
		return nil
	}
	_, err = c.Apply(ctx, ns, opts)
	return err //nolint:wrapcheck // the caller says what for
}

var namespaceKind = rutter.GVK{Version: "v1", Kind: "Namespace"}

func managesMetadata(ns *unstructured.Unstructured) bool {
	return len(ns.GetLabels())+len(ns.GetAnnotations()) > 0
}

// appliedPart reports whether that part of ours has applied the object before.
func appliedPart(live *unstructured.Unstructured, part string) bool {
	for _, f := range live.GetManagedFields() {
		if f.Manager == rutter.FieldManager+"-"+part {
			return true
		}
	}
	return false
}

// namespaceState is what is known of the namespace that a unit wants to be there.
type namespaceState struct {
	of string // the cluster and what is wanted
	so bool
}

func namespaceKey(server string, ns *unstructured.Unstructured) string {
	return server + "|" + compare.Hash(ns)
}

// as reports whether the namespace is known to be as it is wanted.
func (n *namespaceState) as(server string, ns *unstructured.Unstructured) bool {
	return n.so && n.of == namespaceKey(server, ns)
}

func (n *namespaceState) settle(server string, ns *unstructured.Unstructured, so bool) {
	n.of, n.so = namespaceKey(server, ns), so
}

// namespaceDue reports whether the namespace of a unit is known not to have the
// metadata that its policy wants: a change of it makes the unit OutOfSync (reference
// 1.10). u.mu is held.
func (u *state) namespaceDue() (ref rutter.Ref, due bool) {
	ns := targetNamespace(u.unit, u.desired)
	if ns == nil || !managesMetadata(ns) {
		return ref, false
	}
	return rutter.RefOf(ns), u.namespace.of == namespaceKey(u.server, ns) && !u.namespace.so
}

// checkNamespace looks at the namespace of a unit that manages metadata of it, once
// for each declaration.
func (e *Engine) checkNamespace(ctx context.Context, u *state, c rutter.Cluster) {
	u.mu.Lock()
	server := u.server
	var ns *unstructured.Unstructured
	if u.desired != nil && u.problem == nil && !e.isDown(server) {
		ns = targetNamespace(u.unit, u.desired)
	}
	known := ns == nil || !managesMetadata(ns) || u.namespace.of == namespaceKey(server, ns)
	u.mu.Unlock()
	if known {
		return
	}
	live, err := c.Get(ctx, namespaceKind, "", ns.GetName())
	if err != nil && rutter.CodeOf(err) != rutter.CodeNotFound {
		return // looked at again with the next comparison
	}
	so := err == nil && holdsAll(live.GetLabels(), ns.GetLabels()) && holdsAll(live.GetAnnotations(), ns.GetAnnotations())
	u.mu.Lock()
	u.namespace.settle(server, ns, so)
	u.mu.Unlock()
}

func holdsAll(live, want map[string]string) bool {
	for k, v := range want {
		if has, ok := live[k]; !ok || has != v {
			return false
		}
	}
	return true
}
