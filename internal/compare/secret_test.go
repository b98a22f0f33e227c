package compare_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

const canary = "CANARY-5ecret"

// Scenario B56: canaries in every place of a Secret, on every side, through
// every path out of the package.
func TestCanary(t *testing.T) {
	t.Parallel()
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	base := `{apiVersion: v1, kind: Secret, metadata: {name: s, annotations: {plain: "1"}}, type: Opaque, data: {k: b2s=}}`
	places := map[string]struct {
		value any
		at    []any
	}{
		"data":              {encoded, []any{"data", "k"}},
		"data, not encoded": {canary, []any{"data", "k"}},
		"a new key":         {encoded, []any{"data", "other"}},
		"stringData":        {map[string]any{"k": canary}, []any{"stringData"}},
		"stringData whole":  {canary, []any{"stringData"}},
		"an annotation":     {canary, []any{"metadata", "annotations", "plain"}},
		"last-applied":      {`{"data":{"k":"` + encoded + `"}}`, []any{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}},
		"a list":            {[]any{map[string]any{"name": canary}, canary}, []any{"data", "k"}},
		"a map":             {map[string]any{"x": canary}, []any{"data", "k"}},
		"data whole":        {canary, []any{"data"}},
		"a misspelt field":  {map[string]any{"k": canary}, []any{"stringdata"}},
		"annotations whole": {canary, []any{"metadata", "annotations"}},
		"a keyed list":      {[]any{map[string]any{"name": canary, "v": canary}}, []any{"containers"}},
	}
	for name, p := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clean, dirty := parse(t, base), parse(t, base)
			set(t, dirty, p.value, p.at...)
			dirtier := dirty.DeepCopy()
			set(t, dirtier, []any{canary, canary}, p.at...)
			for _, u := range []*unstructured.Unstructured{clean, dirty, dirtier} {
				foreign(t, u, rutter.FieldManager, "Apply", "", `{"f:data":{},"f:stringData":{"f:k":{}},"f:stringdata":{},"f:containers":{"k:{\"name\":\"`+canary+`\"}":{".":{}}},"f:metadata":{"f:annotations":{}}}`)
			}
			found := false
			for _, a := range []*unstructured.Unstructured{clean, dirty, dirtier, nil} {
				for _, b := range []*unstructured.Unstructured{clean, dirty, dirtier, nil} {
					for _, r := range []compare.Result{compare.Local(a, b, ours), compare.Predicted(a, b, ours)} {
						found = found || !r.Equal
						text := fmt.Sprintf("%+v", r)
						if strings.Contains(text, canary) || strings.Contains(text, encoded) || strings.Contains(text, "CANARY") {
							t.Errorf("shown: %s", text)
						}
					}
				}
			}
			if !found {
				t.Error("no difference was found, so that nothing was tried")
			}
		})
	}
}

func TestMaskShowsWhatDiffers(t *testing.T) {
	t.Parallel()
	desired := parse(t, `{apiVersion: v1, kind: Secret, stringData: {a: one, b: two}, type: Opaque}`)
	live := parse(t, `{apiVersion: v1, kind: Secret, data: {a: dHdv, b: eHg=}, type: Other}`)
	r := compare.Local(desired, live, ours)
	want := []rutter.FieldDiff{
		{Path: ".data.a", Desired: `"++++++++"`, Live: `"++++++++++++"`},
		{Path: ".data.b", Desired: `"++++++++++++"`, Live: `"++++++++++++++++"`},
		{Path: ".type", Desired: `"Opaque"`, Live: `"Other"`},
	}
	if got := fmt.Sprint(r.Diffs); got != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFoldSecret(t *testing.T) {
	t.Parallel()
	in := parse(t, `{apiVersion: v1, kind: Secret, data: {a: b2xk, b: eA==}, stringData: {a: new, n: 5}}`)
	out := compare.FoldSecret(in)
	want := parse(t, `{apiVersion: v1, kind: Secret, data: {a: bmV3, b: eA==}, stringData: {n: 5}}`)
	if compare.Hash(out) != compare.Hash(want) {
		t.Errorf("got %v, want %v", out.Object, want.Object)
	}
	other := parse(t, `{apiVersion: v1, kind: ConfigMap, stringData: {a: x}}`)
	if compare.FoldSecret(other) != other {
		t.Error("another kind was changed")
	}
}

// The server keeps no stringData; a change by hand of what it became is found.
func TestChangedSecretThatWasAppliedAsText(t *testing.T) {
	t.Parallel()
	s := sampleOf(t, "secret")
	before, _ := compare.OwnedHash(s.live, rutter.FieldManager, nil)
	edited := s.live.DeepCopy()
	set(t, edited, "b3RoZXI=", "data", "password")
	if after, _ := compare.OwnedHash(edited, rutter.FieldManager, nil); after == before {
		t.Error("OwnedHash didn't change")
	}
	if r := compare.Local(s.desired, edited, ours); r.Equal {
		t.Error("Local says equal")
	}
}
