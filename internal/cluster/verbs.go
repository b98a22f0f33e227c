package cluster

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/rutterhq/rutter"
)

const applyType = "application/apply-patch+yaml"

// Apply implements rutter.Cluster.
func (m *member) Apply(ctx context.Context, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	gvk := gvkOf(obj)
	path, err := m.path(ctx, gvk, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return nil, err
	}
	if obj.GetName() == "" {
		return m.create(ctx, gvk, obj, opts)
	}
	body, err := obj.MarshalJSON()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "encode %s: %w", describe(gvk, obj.GetNamespace(), obj.GetName()), err)
	}
	release, err := m.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	live, err := m.patchApply(ctx, path, body, opts)
	if err != nil || opts.DryRun {
		return live, err
	}
	if gvk.Group == "apiextensions.k8s.io" && gvk.Kind == "CustomResourceDefinition" || gvk.Kind == "APIService" {
		m.discovery.expect(obj)
	}
	return m.adopt(ctx, path, body, live)
}

func (m *member) patchApply(ctx context.Context, path string, body []byte, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	q := url.Values{"fieldManager": {rutter.FieldManager}, "force": {"true"}, "fieldValidation": {"Strict"}}
	if opts.DryRun {
		q.Set("dryRun", "All")
		m.requests.dryRun.Add(1)
	} else {
		m.requests.apply.Add(1)
	}
	answer, err := m.do(ctx, request{method: http.MethodPatch, path: path, query: q, body: body, contentType: applyType})
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

// create is for an object that leaves its name to the server, as hooks may.
func (m *member) create(ctx context.Context, gvk rutter.GVK, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	path, err := m.path(ctx, gvk, obj.GetNamespace(), "")
	if err != nil {
		return nil, err
	}
	body, err := obj.MarshalJSON()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "encode %s: %w", describe(gvk, obj.GetNamespace(), obj.GetGenerateName()), err)
	}
	q := url.Values{"fieldManager": {rutter.FieldManager}, "fieldValidation": {"Strict"}}
	if opts.DryRun {
		q.Set("dryRun", "All")
	}
	m.requests.other.Add(1)
	answer, err := m.do(ctx, request{method: http.MethodPost, path: path, query: q, body: body, contentType: "application/json"})
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

// formerManagers wrote objects by client-side apply before Rutter did. While
// they own a field, removing it from Git would not remove it from the object.
var formerManagers = sets.New("kubectl-client-side-apply", "argocd-controller", "argocd-application-controller", "before-first-apply")

// adopt takes over what a former client-side manager owns, and applies once
// more so that what Git does not declare goes. It costs a request only for an
// object on which such a manager is found.
func (m *member) adopt(ctx context.Context, path string, body []byte, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !hasFormer(live) {
		return live, nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, formerManagers, rutter.FieldManager)
	if err != nil || len(patch) == 0 {
		return live, nil //nolint:nilerr // the object is applied; its old owners stay, as before
	}
	m.requests.patch.Add(1)
	if _, err := m.do(ctx, request{method: http.MethodPatch, path: path, body: patch, contentType: string(types.JSONPatchType)}); err != nil {
		if rutter.CodeOf(err) == rutter.CodeConflict || rutter.CodeOf(err) == rutter.CodeInvalid {
			return live, nil // changed meanwhile: the next apply takes it over
		}
		return nil, fmt.Errorf("take over the fields of a former manager: %w", err)
	}
	return m.patchApply(ctx, path, body, rutter.ApplyOptions{})
}

func hasFormer(live *unstructured.Unstructured) bool {
	for _, e := range live.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationUpdate && formerManagers.Has(e.Manager) && e.Subresource == "" {
			return true
		}
	}
	return false
}

// Get implements rutter.Cluster.
func (m *member) Get(ctx context.Context, gvk rutter.GVK, namespace, name string) (*unstructured.Unstructured, error) {
	path, err := m.path(ctx, gvk, namespace, name)
	if err != nil {
		return nil, err
	}
	m.requests.get.Add(1)
	answer, err := m.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

// Delete implements rutter.Cluster.
func (m *member) Delete(ctx context.Context, gvk rutter.GVK, namespace, name string, opts rutter.DeleteOptions) error {
	path, err := m.path(ctx, gvk, namespace, name)
	if err != nil {
		return err
	}
	policy := map[string]metav1.DeletionPropagation{"background": metav1.DeletePropagationBackground, "orphan": metav1.DeletePropagationOrphan}[opts.Propagation]
	if policy == "" {
		policy = metav1.DeletePropagationForeground
	}
	del := metav1.DeleteOptions{PropagationPolicy: &policy, TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	if opts.UID != "" {
		uid := types.UID(opts.UID)
		del.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	body, err := encodeJSON(del)
	if err != nil {
		return err
	}
	release, err := m.slot(ctx)
	if err != nil {
		return err
	}
	defer release()
	m.requests.remove.Add(1)
	_, err = m.do(ctx, request{method: http.MethodDelete, path: path, body: body, contentType: "application/json"})
	if code := rutter.CodeOf(err); code == rutter.CodeNotFound || code == rutter.CodeConflict && opts.UID != "" {
		return nil // gone, or another object by that name
	}
	return err
}

// slot waits for one of the writes that may be in flight.
func (m *member) slot(ctx context.Context) (release func(), err error) {
	select {
	case m.writers <- struct{}{}:
		return func() { <-m.writers }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a turn to write: %w", ctx.Err())
	}
}

func decode(data []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "decode the server's answer: %w", err)
	}
	if u.Object == nil {
		return nil, errors.New("the server's answer is empty")
	}
	return u, nil
}

func gvkOf(u *unstructured.Unstructured) rutter.GVK {
	gvk := u.GroupVersionKind()
	return rutter.GVK{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

func encodeJSON(v any) ([]byte, error) {
	data, err := stdjson.Marshal(v)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode the request: %w", err)
	}
	return data, nil
}
