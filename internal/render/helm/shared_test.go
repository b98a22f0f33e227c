package helm_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
)

// TestSharedChartIsNotChanged renders one chart at the same time with many
// different values: none sees another's, and the shared chart stays as it was.
func TestSharedChartIsNotChanged(t *testing.T) {
	files := chart(map[string]string{
		"values.yaml": "db: {enabled: false, x: 1}\nlist: [a]\nm: {k: v}\n",
		"templates/x.yaml": `{{- $_ := set .Values "seen" "yes" }}{{ $_ := set .Values.m .Release.Name "own" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {v: {{ omit .Values "db" | toJson | quote }}, n: '{{ tpl .Values.t . }}'}
`,
	})
	files["chart/Chart.yaml"] = head + "- {name: db, version: 1.x, condition: db.enabled, alias: store}\n"
	for f, data := range subchart("db", "1.0.0") {
		files["chart/charts/db/"+f] = data
	}
	r := helm.New(helm.Limits{})
	one := func(i int) (string, error) {
		in := input(t, files, rutter.HelmOptions{ReleaseName: fmt.Sprintf("r%d", i%7), Parameters: []rutter.HelmParameter{
			{Name: "db.enabled", Value: fmt.Sprint(i%2 == 0)}, {Name: "store.x", Value: fmt.Sprint(i % 7)}, {Name: "t", Value: `is {{ .Release.Name }}`}}})
		objs, _, err := r.Render(t.Context(), in)
		if err != nil {
			return "", err
		}
		text, err := json.Marshal(contentsOf(objs))
		return string(text), err
	}
	want := map[int]string{}
	for i := range 14 {
		var err error
		if want[i], err = one(i); err != nil {
			t.Fatal(err)
		}
	}
	if len(uniq(maps.Values(want))) < 7 {
		t.Fatalf("the renders are not different: %v", want)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 70 {
				n := (i + w) % 14
				if got, err := one(n); err != nil || got != want[n] {
					t.Errorf("render %d: got %s, want %s, %v", n, got, want[n], err)
					return
				}
			}
		})
	}
	wg.Wait()
}
