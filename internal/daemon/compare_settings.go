package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/matrix"
)

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
			out = append(out, matrix.Setting{Field: field + ".kustomize.replicas", Value: fmt.Sprint(r.Count)})
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
		case string:
			out = append(out, matrix.Setting{Field: field, Value: x})
		default:
			if raw, err := json.Marshal(x); err == nil && x != nil {
				out = append(out, matrix.Setting{Field: field, Value: string(raw)})
			}
		}
	}
	walk(field, tree)
	slices.SortFunc(out, func(a, b matrix.Setting) int { return cmp.Compare(a.Field, b.Field) })
	return out
}
