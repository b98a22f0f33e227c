package schema

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// FromDefinition reads the kinds that a CustomResourceDefinition declares, in
// each of its versions. One without a schema declares types that nothing is
// known of.
func FromDefinition(u *unstructured.Unstructured) (*Schemas, error) {
	var crd struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Kind string `json:"kind"`
			} `json:"names"`
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					Types *definition `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	data, err := json.Marshal(u.Object)
	if err == nil {
		err = json.Unmarshal(data, &crd)
	}
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "CustomResourceDefinition %s: %w", u.GetName(), err)
	}
	out := &Schemas{kinds: map[rutter.GVK]*Type{}, named: map[string]*Type{}}
	b := &builder{made: map[string]*Type{}}
	for _, v := range crd.Spec.Versions {
		if t := b.make(v.Schema.Types); t != nil {
			out.kinds[rutter.GVK{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}] = t
		}
	}
	return out, nil
}
