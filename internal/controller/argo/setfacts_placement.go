package argo

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/generate"
)

// ConfigMap implements generate.DecisionFacts.
func (f *facts) ConfigMap(name string) (map[string]string, error) {
	return once(f, "configMap "+name, func() (map[string]string, error) {
		var cm corev1.ConfigMap
		key := types.NamespacedName{Namespace: f.set.opts.Namespace, Name: name}
		if err := f.set.client.Get(f.ctx, key, &cm); err != nil {
			return nil, lookedUp(err, "ConfigMap", key)
		}
		return cm.Data, nil
	})
}

// lookedUp is an error of reading an object of the control plane.
func lookedUp(err error, kind string, key types.NamespacedName) error {
	code := rutter.CodeUnavailable
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		code = rutter.CodeNotFound
	case apierrors.IsForbidden(err):
		code = rutter.CodeForbidden
	}
	return rutter.Errorf(code, "%s %s: %w", kind, key, err)
}

// Resources implements generate.DecisionFacts.
func (f *facts) Resources(q generate.ResourceQuery) ([]map[string]any, error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode a question: %w", err)
	}
	return once(f, "resources "+string(raw), func() ([]map[string]any, error) { return f.resources(q) })
}

func (f *facts) resources(q generate.ResourceQuery) ([]map[string]any, error) {
	gv, err := schema.ParseGroupVersion(q.APIVersion)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "apiVersion %q: %w", q.APIVersion, err)
	}
	gvr := gv.WithResource(q.Resource)
	gvk, err := f.set.mapper.KindFor(gvr)
	if err == nil {
		gvr, err = f.set.mapper.ResourceFor(gvr)
	}
	if err != nil {
		return nil, lookedUp(err, q.Resource+"."+gv.String(), types.NamespacedName{Namespace: f.set.opts.Namespace, Name: q.Name})
	}
	f.kinds = append(f.kinds, gvr)
	f.set.placements.use(f.key, gvr) // before they are read, so that no change is missed
	if q.Name != "" {
		key := types.NamespacedName{Namespace: f.set.opts.Namespace, Name: q.Name}
		one := &unstructured.Unstructured{}
		one.SetGroupVersionKind(gvk)
		if err := f.set.reader.Get(f.ctx, key, one); err != nil {
			return nil, lookedUp(err, q.Resource, key)
		}
		return []map[string]any{one.Object}, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&q.Selector)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "labelSelector: %w", err)
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(gvk)
	if err := f.set.reader.List(f.ctx, &list, client.InNamespace(f.set.opts.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, lookedUp(err, q.Resource, types.NamespacedName{Namespace: f.set.opts.Namespace})
	}
	out := make([]map[string]any, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, list.Items[i].Object)
	}
	return out, nil
}

// PluginParameters implements generate.PluginFacts.
func (f *facts) PluginParameters(q generate.PluginQuery) ([]map[string]any, error) {
	f.plugins = true
	f.set.listeners.notePlugin(f.key)
	raw, err := json.Marshal(q)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode a question: %w", err)
	}
	return once(f, "plugin "+string(raw), func() ([]map[string]any, error) {
		if f.set.opts.Sets.Parameters == nil {
			return nil, rutter.Errorf(rutter.CodeUnsupported, "%w", errNoServices)
		}
		service, err := f.service(q.ConfigMap)
		if err != nil {
			return nil, err
		}
		return f.set.opts.Sets.Parameters.Ask(f.ctx, service, q.Set, q.Input)
	})
}

// service reads where a service of parameters is and how to log in (reference 5.8).
func (f *facts) service(name string) (ParameterService, error) {
	data, err := f.ConfigMap(name)
	if err != nil {
		return ParameterService{}, err
	}
	s := ParameterService{BaseURL: strings.TrimRight(strings.TrimSpace(data["baseUrl"]), "/")}
	if s.BaseURL == "" {
		return s, rutter.Errorf(rutter.CodeInvalid, "ConfigMap %s has no baseUrl", name)
	}
	if text := strings.TrimSpace(data["requestTimeout"]); text != "" {
		if s.TimeoutSeconds, err = strconv.Atoi(text); err != nil || s.TimeoutSeconds < 1 {
			return s, rutter.Errorf(rutter.CodeInvalid, "ConfigMap %s: requestTimeout: %q is no number of seconds", name, text)
		}
	}
	token := strings.TrimSpace(data["token"])
	ref, ok := strings.CutPrefix(token, "$")
	if !ok {
		if token != "" {
			return s, rutter.Errorf(rutter.CodeInvalid, "ConfigMap %s: token: write $key for a key of the Secret argocd-secret, or $secret:key; not the token itself", name)
		}
		return s, nil
	}
	s.Token, err = f.pluginToken(ref)
	if err != nil {
		return s, rutter.Errorf(rutter.CodeOf(err), "ConfigMap %s: token: %w", name, err)
	}
	return s, nil
}

// pluginToken looks up "key" in argocd-secret, or "secret:key" in a Secret
// that is a part of Argo CD.
func (f *facts) pluginToken(ref string) (string, error) {
	name, key, ok := strings.Cut(ref, ":")
	if !ok {
		name, key = "argocd-secret", ref
	}
	var secret corev1.Secret
	at := types.NamespacedName{Namespace: f.set.opts.Namespace, Name: name}
	if err := f.set.reader.Get(f.ctx, at, &secret); err != nil {
		return "", lookedUp(err, "Secret", at)
	}
	if ok && secret.Labels["app.kubernetes.io/part-of"] != "argocd" {
		return "", rutter.Errorf(rutter.CodeForbidden, "Secret %s has no label app.kubernetes.io/part-of: argocd, so it is not given to services", at)
	}
	value, ok := secret.Data[key]
	if !ok {
		return "", rutter.Errorf(rutter.CodeNotFound, "Secret %s has no key %q", at, key)
	}
	return strings.TrimSpace(string(value)), nil
}
