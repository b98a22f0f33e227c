package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/matrix"
)

// settings are the values that are in force for a source: of a chart each with the
// layer that set it, which may be a file that all clusters have and one of them uses.
func (o *observer) settings(ctx context.Context, u rutter.Unit, i int, req rutter.RenderRequest, m rutter.Manifests) []matrix.Setting {
	field := u.SourceField(i)
	if m.SourceType != "Helm" {
		return settingsOf(field, u.Sources[i])
	}
	e, err := o.rendering.renderer.Explain(ctx, req, m)
	if err != nil {
		return settingsOf(field, u.Sources[i]) // the layers are for people; the objects are known
	}
	inForce := map[string]matrix.Setting{}
	for _, l := range e.Values {
		if l.Removed {
			delete(inForce, l.Path)
		} else if text, ok := scalar(l.Value); ok {
			inForce[l.Path] = matrix.Setting{Field: l.Path, Value: text, Where: layerPlace(field, u.ID.Name, l)}
		}
	}
	return slices.SortedFunc(maps.Values(inForce), func(a, b matrix.Setting) int { return cmp.Compare(a.Field, b.Field) })
}

// layerPlace names where a layer sets a value.
func layerPlace(field, app string, l rutter.ValueLayer) string {
	if l.File != "" {
		return fmt.Sprintf("%s:%d", l.File, max(1, l.Line))
	}
	layer := l.Layer
	if strings.HasSuffix(strings.ToLower(layer), "parameter") {
		layer += "s"
	}
	return field + ".helm." + layer + "." + l.Path + " of Application " + app
}

// scalar is a single value as text.
func scalar(v any) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case nil, map[string]any, []any:
		return "", false
	default:
		raw, err := json.Marshal(x)
		return string(raw), err == nil
	}
}

// settingsOf are the values that an Application gives the tool of a source.
func settingsOf(field string, src rutter.Source) []matrix.Setting {
	var out []matrix.Setting
	if h := src.Helm; h != nil {
		for _, p := range h.Parameters {
			out = append(out, matrix.Setting{Field: field + ".helm.parameters." + p.Name, Value: p.Value})
		}
		out = append(out, values(field+".helm.values", []byte(h.Values))...)
		out = append(out, values(field+".helm.valuesObject", h.ValuesObject)...)
	}
	if k := src.Kustomize; k != nil {
		for _, image := range k.Images {
			_, tag, _ := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
			out = append(out, matrix.Setting{Field: field + ".kustomize.images", Value: cmp.Or(tag, image)})
		}
		for _, r := range k.Replicas {
			out = append(out, matrix.Setting{Field: field + ".kustomize.replicas", Value: strconv.FormatInt(r.Count, 10)})
		}
		for key, value := range k.CommonAnnotations {
			out = append(out, matrix.Setting{Field: field + ".kustomize.commonAnnotations." + key, Value: value})
		}
		for key, value := range k.CommonLabels {
			out = append(out, matrix.Setting{Field: field + ".kustomize.commonLabels." + key, Value: value})
		}
		for _, s := range []matrix.Setting{{Field: ".kustomize.namePrefix", Value: k.NamePrefix}, {Field: ".kustomize.nameSuffix", Value: k.NameSuffix}} {
			if s.Value != "" {
				out = append(out, matrix.Setting{Field: field + s.Field, Value: s.Value})
			}
		}
	}
	slices.SortFunc(out, func(a, b matrix.Setting) int { return cmp.Compare(a.Field, b.Field) })
	return out
}

// values are the leaves of Helm values.
func values(field string, text []byte) []matrix.Setting {
	var tree any
	if len(text) == 0 || yaml.Unmarshal(text, &tree) != nil {
		return nil
	}
	var out []matrix.Setting
	var walk func(field string, v any)
	walk = func(field string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for k, e := range x {
				walk(field+"."+k, e)
			}
		case []any:
			for i, e := range x {
				walk(fmt.Sprintf("%s[%d]", field, i), e)
			}
		default:
			if text, ok := scalar(x); ok {
				out = append(out, matrix.Setting{Field: field, Value: text})
			}
		}
	}
	walk(field, tree)
	slices.SortFunc(out, func(a, b matrix.Setting) int { return cmp.Compare(a.Field, b.Field) })
	return out
}
