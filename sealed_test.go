package rutter_test

import (
	"testing"

	"github.com/rutterhq/rutter"
)

func TestSealed(t *testing.T) {
	const value = "ENC[AES256_GCM,data:Tr7o=,iv:1=,tag:2=,type:str]"
	for _, c := range []struct {
		name string
		obj  map[string]any
		want bool
	}{
		{"nothing", map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "ENC[something else]"}}, false},
		{"an envelope", map[string]any{"kind": "ConfigMap", "sops": map[string]any{"mac": "x", "version": "3"}}, true},
		{"a field of another meaning", map[string]any{"kind": "Tool", "sops": map[string]any{"enabled": true}}, false},
		{"a value", map[string]any{"kind": "Tool", "spec": map[string]any{"list": []any{"a", map[string]any{"b": value}}}}, true},
		{"a value within a text", map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "password: " + value}}, false},
		{"a Secret's base64", map[string]any{"kind": "Secret", "data": map[string]any{"a": "RU5DW0FFUzI1Nl9HQ00sZGF0YTpUcjdvPSxpdjoxPSx0YWc6Mj0sdHlwZTpzdHJd"}}, true},
	} {
		if got := rutter.Sealed(c.obj); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
