package argo_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// TestSeeds decodes the manifests that people write: each is accepted, or
// refused with the file, the line and the field.
func TestSeeds(t *testing.T) {
	refused := map[string]string{
		"gitops-advanced-04.yaml": `gitops-advanced-04.yaml:13: strict decoding error: unknown field "spec.generators[0].scmProvider.github.filters": write it as spec.generators[0].scmProvider.filters`,
		"gitops-advanced-05.yaml": `gitops-advanced-05.yaml:33: key "automated" already set in map (field spec.template.spec.syncPolicy.automated, first on line 30): write it once
gitops-advanced-05.yaml:35: key "syncPolicy" already set in map (field spec.template.spec.syncPolicy, first on line 29): write it once`,
	}
	files, err := filepath.Glob("../../../test/seeds/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d seeds, %v", len(files), err)
	}
	for _, f := range files {
		base := filepath.Base(f)
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		objs, err := argo.Decode(raw, base)
		if want := refused[base]; want != "" {
			if err == nil || err.Error() != want || len(objs) > 0 {
				t.Errorf("%s: %d objects, %v\nwant %s", base, len(objs), err, want)
			}
			continue
		}
		if err != nil || len(objs) != 1 {
			t.Errorf("%s: %d objects, %v", base, len(objs), err)
			continue
		}
		if s, ok := objs[0].(*corev1.Secret); ok {
			if info, _, err := argo.ParseCluster(s, nil); err != nil || info.Server == "" {
				t.Errorf("%s: %+v, %v", base, info, err)
			}
		}
	}
}

// TestNothingLost: every field of the reference survives our types.
func TestNothingLost(t *testing.T) {
	for _, f := range []string{"application", "applicationset", "appproject"} {
		t.Run(f, func(t *testing.T) {
			raw, err := os.ReadFile("../../../deploy/testdata/" + f + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			objs, err := argo.Decode(raw, f)
			if err != nil || len(objs) != 1 {
				t.Fatalf("%d objects, %v", len(objs), err)
			}
			got, want := map[string]any{}, map[string]any{}
			encoded, err := json.Marshal(objs[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(encoded, &got); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the types lose or add fields (-written +kept):\n%s", diff)
			}
		})
	}
}
