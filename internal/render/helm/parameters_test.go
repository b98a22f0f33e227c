package helm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
)

// TestC4ParameterValues: a value is a value or a list; it never becomes
// parameters of its own, whose names could hold any index.
func TestC4ParameterValues(t *testing.T) {
	files := chart(map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: Custom\nmetadata: {name: x}\nspec: {{ toJson .Values }}\n"})
	const refusal = "refused"
	tests := map[string]struct {
		name, value string
		// want is the JSON of the values; refusal means an error.
		want string
	}{
		"a list":                         {name: "a", value: "{x,y}", want: `{"a":["x","y"]}`},
		"a list with an escaped brace":   {name: "a", value: `{x\},y}`, want: `{"a":["x}","y"]}`},
		"a text with commas":             {name: "a", value: "x,,y,b[60000]=c", want: `{"a":"x,,y,b[60000]=c"}`},
		"escaped commas":                 {name: "a", value: `x\,y`, want: `{"a":"x,y"}`},
		"a backslash before a comma":     {name: "a", value: `x\\,b[60000]=c`, want: `{"a":"x\\,b[60000]=c"}`},
		"a list and more in braces":      {name: "a", value: "{x},b0[60000]={c},b1[60000]={c}", want: refusal},
		"a list that does not end":       {name: "a", value: `{x,b[60000]={c\}`, want: refusal},
		"a name that hides its end":      {name: `a\`, value: "b[60000]=c", want: refusal},
		"a name that opens a list":       {name: "a={x", value: "},b[60000]=c", want: refusal},
		"a name with an index in sign":   {name: "a[+60000]", value: "x", want: refusal},
		"a name with an escape in index": {name: `a[6\0000]`, value: "x", want: refusal},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, asString := range []bool{false, true} {
				in := input(t, files, rutter.HelmOptions{Parameters: []rutter.HelmParameter{{Name: tt.name, Value: tt.value, ForceString: asString}}})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				objs, _, err := helm.New(helm.Limits{}).Render(ctx, in)
				got := refusal
				if err == nil {
					text, _ := json.Marshal(objs[0].Object["spec"])
					got = string(text)
				} else if rutter.CodeOf(err) != rutter.CodeInvalid {
					t.Error(err)
				}
				if len(got) > 1000 || strings.Contains(got, "null") {
					t.Fatalf("as a string %t: %d bytes of values", asString, len(got))
				}
				if one := tt.want == refusal && strings.Contains(got, `"a":"`) && strings.Count(got, `":`) == 1; got != tt.want && !one {
					t.Errorf("as a string %t: got %s (%v), want %s", asString, got, err, tt.want)
				}
			}
		})
	}
}
