package cluster

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// replaceTries is how often an object that changes at the same moment is replaced.
const replaceTries = 5

// replace puts obj in the place of what is there, whose version it names, and
// creates it where there is nothing. What is there is never deleted for it. Apply
// then sends the same once more, so that it is recorded which fields are ours.
func (m *member) replace(ctx context.Context, gvk rutter.GVK, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	for try := 1; ; try++ {
		told, err := m.replaceOnce(ctx, gvk, obj, opts)
		if rutter.CodeOf(err) != rutter.CodeConflict || try == replaceTries {
			return told, withoutSecrets(err, obj)
		}
	}
}

func (m *member) replaceOnce(ctx context.Context, gvk rutter.GVK, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	live, err := m.Get(ctx, gvk, obj.GetNamespace(), obj.GetName())
	req := request{method: http.MethodPut, query: writeQuery(opts), contentType: jsonType, once: true}
	name, next := obj.GetName(), obj.DeepCopy()
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound:
		req.method, name = http.MethodPost, ""
	case err != nil:
		return nil, err
	default:
		next.SetResourceVersion(live.GetResourceVersion())
		next.SetUID(live.GetUID())
		keepTies(next, live)
	}
	if req.path, err = m.path(ctx, gvk, obj.GetNamespace(), name); err != nil {
		return nil, err
	}
	if req.body, err = next.MarshalJSON(); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "encode %s: %w", describe(gvk, obj.GetNamespace(), obj.GetName()), err)
	}
	if opts.DryRun {
		m.requests.dryRun.Add(1)
	} else {
		m.requests.other.Add(1)
	}
	answer, err := m.do(ctx, req)
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

// keepTies keeps what ties an object to others, where the declaration has no say in
// it: without a finalizer or an owner the object might outlive, or be outlived by,
// what depends on it.
func keepTies(next, live *unstructured.Unstructured) {
	if len(next.GetFinalizers()) == 0 && len(live.GetFinalizers()) > 0 {
		next.SetFinalizers(live.GetFinalizers())
	}
	if len(next.GetOwnerReferences()) == 0 && len(live.GetOwnerReferences()) > 0 {
		next.SetOwnerReferences(live.GetOwnerReferences())
	}
}
