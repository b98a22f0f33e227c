package argo

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Keys of argocd-cm that are Rutter's own.
const (
	// KeyClusterGone is what becomes of Applications that are deleted while their
	// cluster is not one of the fleet: "release" (default) or "wait".
	KeyClusterGone = "rutter.deletion.cluster-gone"
	// KeyPruneBudget is how many objects of an Application one sync may prune without
	// being asked, such as "50% min 10", where it does not say so itself.
	KeyPruneBudget = "rutter.prune.budget"
)

const (
	// AnnotationBudget on an Application is its own budget, as of KeyPruneBudget.
	AnnotationBudget = "rutter.dev/deletion-budget"
	// AnnotationApprove on an Application is the digest of prunes that are held and may go.
	AnnotationApprove = "rutter.dev/approve"
)

// RemovalSettings are what the operator sets about removing objects.
type RemovalSettings struct {
	// WaitForCluster keeps Applications whose cluster is gone, until it is back.
	WaitForCluster bool
	// PruneBudget is how many objects of an Application one sync may prune without
	// being asked; nil is the default.
	PruneBudget *rutter.Budget
}

// ParseRemoval reads them; what cannot be read is named and has no effect.
func ParseRemoval(cm *corev1.ConfigMap) (s RemovalSettings, problems []error) {
	switch v := cm.Data[KeyClusterGone]; v {
	case "", "release":
	case "wait":
		s.WaitForCluster = true
	default:
		problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s: data[%q]: %q: write release or wait", ConfigMapName, KeyClusterGone, v))
	}
	if text, ok := cm.Data[KeyPruneBudget]; ok {
		b, err := rutter.ParseBudget(text, rutter.DefaultPruneBudget().Min)
		if err != nil {
			return s, append(problems, rutter.Errorf(rutter.CodeInvalid, "%s: data[%q]: %w", ConfigMapName, KeyPruneBudget, err))
		}
		s.PruneBudget = &b
	}
	return s, problems
}

// budget is how many objects one sync of the Application may prune without being
// asked. One that cannot be read must not let through more than the operator's, so
// that one holds then.
func (t *translation) budget() *rutter.Budget {
	text, ok := t.app.Annotations[AnnotationBudget]
	if !ok {
		return t.cfg.PruneBudget
	}
	own, err := rutter.ParseBudget(text, rutter.DefaultPruneBudget().Min)
	if err != nil {
		t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondUnsupported, Message: fmt.Sprintf("metadata.annotations[%s]: %v", AnnotationBudget, err)})
		return t.cfg.PruneBudget
	}
	return &own
}

// earlier stands for sources or a target that the Application had before.
const earlier = "earlier"

// lastDeclared is what the status records of what the sources declared, and at
// which commits: what is pruned after a restart is justified by that.
func lastDeclared(app *v1alpha1.Application, u rutter.Unit) *rutter.Declaration {
	sync := &app.Status.Sync
	revisions := sync.Revisions
	if sync.Revision != "" {
		revisions = []string{sync.Revision}
	}
	if len(revisions) == 0 {
		return nil
	}
	sources := earlier
	one, several := declared(app)
	if equality.Semantic.DeepEqual(sync.ComparedTo.Source, one) && equality.Semantic.DeepEqual(sync.ComparedTo.Sources, several) &&
		sync.ComparedTo.Destination == app.Spec.Destination {
		sources = u.SourcesDigest()
	}
	d := &rutter.Declaration{Stamp: rutter.Stamp(revisions, sources)}
	for _, r := range app.Status.Resources {
		ref := rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
		if !r.RequiresPruning {
			d.Refs = append(d.Refs, ref)
			continue
		}
		if d.Undeclared == nil {
			d.Undeclared = map[rutter.Ref]string{}
		}
		d.Undeclared[ref] = r.DeclaredAt
	}
	return d
}
