package argo

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// keepers are the namespaces of sets, as owners of what outlives its set.
type keepers struct {
	mu sync.Mutex
	by map[string]*metav1.OwnerReference
}

// drop forgets a namespace; one that is made again is another owner.
func (k *keepers) drop(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.by, namespace)
}

// keeper is the namespace as an owner. It is nil where we may not read it: then
// only the finalizer keeps what outlives its set, which a deletion in the
// foreground does not wait for.
func (s *applicationSets) keeper(ctx context.Context, namespace string) (*metav1.OwnerReference, error) {
	k := &s.keepers
	k.mu.Lock()
	known, ok := k.by[namespace]
	k.mu.Unlock()
	if ok {
		return known, nil
	}
	var ns corev1.Namespace
	err := s.reader.Get(ctx, types.NamespacedName{Name: namespace}, &ns)
	var owner *metav1.OwnerReference
	switch {
	case apierrors.IsForbidden(err):
		s.opts.Logger.Warn("the namespace may not be read: deleting an ApplicationSet with --cascade=foreground deletes its Applications whatever its policy says", "namespace", namespace)
	case err != nil:
		return nil, fmt.Errorf("read namespace %s: %w", namespace, err)
	default:
		owner = &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, UID: ns.UID}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[string]*metav1.OwnerReference{}
	}
	k.by[namespace] = owner
	return owner, nil
}
