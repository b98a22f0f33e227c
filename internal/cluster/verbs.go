package cluster

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/rutterhq/rutter"
)

const (
	applyType = "application/apply-patch+yaml"
	jsonType  = "application/json"
)

// Apply implements rutter.Cluster.
func (m *member) Apply(ctx context.Context, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	gvk := rutter.GVKOf(obj)
	body, err := obj.MarshalJSON()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "encode %s: %w", describe(gvk, obj.GetNamespace(), obj.GetName()), err)
	}
	release, err := m.writers.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if obj.GetName() == "" {
		return m.create(ctx, gvk, obj, body, opts)
	}
	if opts.Replace {
		if told, err := m.replace(ctx, gvk, obj, opts); err != nil || opts.DryRun {
			return told, err
		}
	}
	if opts.Takeover != nil && !opts.DryRun && !opts.KeepFormer {
		if live, ok := m.takeOver(ctx, obj, body, opts.Takeover); ok {
			m.discovery.applied(gvk, live) //nolint:contextcheck // it goes on after the apply
			return live, nil
		}
	}
	live, path, err := m.patchApply(ctx, gvk, obj, body, opts)
	if unserved(err) {
		m.discovery.forget(gvk)
		live, path, err = m.patchApply(ctx, gvk, obj, body, opts)
	}
	switch {
	case err != nil:
		return nil, withoutSecrets(err, obj)
	case opts.DryRun:
		return live, nil
	}
	m.discovery.applied(gvk, live) //nolint:contextcheck // it goes on after the apply
	if opts.KeepFormer || opts.Part != "" || !hasFormer(live, opts.Former) {
		return live, nil
	}
	return m.adopt(ctx, path, obj, body, live, opts)
}

// patchApply is one server-side apply; path is where it went.
func (m *member) patchApply(ctx context.Context, gvk rutter.GVK, obj *unstructured.Unstructured, body []byte, opts rutter.ApplyOptions) (live *unstructured.Unstructured, path string, err error) {
	if path, err = m.path(ctx, gvk, obj.GetNamespace(), obj.GetName()); err != nil {
		return nil, "", err
	}
	q := writeQuery(opts)
	q.Set("force", "true")
	if opts.DryRun {
		m.requests.dryRun.Add(1)
	} else {
		m.requests.apply.Add(1)
	}
	answer, err := m.do(ctx, request{method: http.MethodPatch, path: path, query: q, body: body, contentType: applyType})
	if err != nil {
		return nil, path, err
	}
	live, err = decode(answer)
	return live, path, err
}

func writeQuery(opts rutter.ApplyOptions) url.Values {
	q := url.Values{"fieldManager": {rutter.FieldManager}, "fieldValidation": {"Strict"}}
	if opts.Part != "" {
		q.Set("fieldManager", rutter.FieldManager+"-"+opts.Part)
	}
	if opts.Unvalidated {
		q.Set("fieldValidation", "Ignore")
	}
	if opts.DryRun {
		q.Set("dryRun", "All")
	}
	return q
}

// create is for an object that leaves its name to the server, as hooks may.
func (m *member) create(ctx context.Context, gvk rutter.GVK, obj *unstructured.Unstructured, body []byte, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	if obj.GetGenerateName() == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "an object of kind %s has no name: set metadata.name", gvk.Kind)
	}
	path, err := m.path(ctx, gvk, obj.GetNamespace(), "")
	if err != nil {
		return nil, err
	}
	m.requests.other.Add(1)
	answer, err := m.do(ctx, request{method: http.MethodPost, path: path, query: writeQuery(opts), body: body, contentType: jsonType, once: true})
	if err != nil {
		return nil, withoutSecrets(err, obj)
	}
	return decode(answer)
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
		if unserved(err) {
			m.discovery.forget(gvk)
		}
		return nil, err
	}
	return decode(answer)
}

// Delete implements rutter.Cluster.
func (m *member) Delete(ctx context.Context, gvk rutter.GVK, namespace, name string, opts rutter.DeleteOptions) error {
	path, err := m.path(ctx, gvk, namespace, name)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		return nil // where the kind is gone, so are its objects
	}
	if err != nil {
		return err
	}
	body, err := deleteBody(opts)
	if err != nil {
		return err
	}
	release, err := m.writers.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	m.requests.remove.Add(1)
	_, err = m.do(ctx, request{method: http.MethodDelete, path: path, body: body, contentType: jsonType})
	if unserved(err) {
		m.discovery.forget(gvk)
	}
	if code := rutter.CodeOf(err); code == rutter.CodeNotFound || code == rutter.CodeConflict && opts.UID != "" {
		return nil // gone, or another object by that name
	}
	return err
}

func deleteBody(opts rutter.DeleteOptions) ([]byte, error) {
	del := metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}}
	policy := metav1.DeletePropagationForeground
	switch opts.Propagation {
	case "", "foreground":
	case "background":
		policy = metav1.DeletePropagationBackground
	case "orphan":
		policy = metav1.DeletePropagationOrphan
	default:
		return nil, rutter.Errorf(rutter.CodeInvalid, "deletion propagation %q is none of foreground, background, orphan", opts.Propagation)
	}
	del.PropagationPolicy = &policy
	if opts.UID != "" {
		uid := types.UID(opts.UID)
		del.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	body, err := stdjson.Marshal(del)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode the request: %w", err)
	}
	return body, nil
}

func decode(data []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "decode the server's answer: %w", err)
	}
	if u.Object == nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "the server's answer is empty")
	}
	return u, nil
}
