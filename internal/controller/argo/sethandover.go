package argo

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// handsOver says whether an Application whose objects another one has is given
// up without deleting them.
const handsOver = false

// releaseRetry is when a hand-over that waits is looked at again though nothing
// was heard of the Application that takes over.
const releaseRetry = time.Minute

// siblings are the ApplicationSets of a namespace that are not being deleted.
func (s *applicationSets) siblings(ctx context.Context, namespace string) ([]string, error) {
	var list v1alpha1.ApplicationSetList
	if err := s.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ApplicationSets of namespace %s: %w", namespace, err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// elsewhere names, for Applications, another set that generates them.
func (s *applicationSets) elsewhere(types.NamespacedName) map[string]string { return nil }

// handOver turns deletions into releases where another set has the same objects.
func (s *applicationSets) handOver(context.Context, *v1alpha1.ApplicationSet, *outcome) error {
	return nil
}

// release gives an Application up once the one that takes over has its objects;
// false when that is not so yet.
func (s *applicationSets) release(context.Context, *v1alpha1.ApplicationSet, generate.Change) (bool, error) {
	return false, rutter.Errorf(rutter.CodeUnsupported, "hand-overs are not carried out")
}
