package helm_test

import (
	"encoding/json"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// TestB14NullRemovesADefault is scenario B14: whoever sets a limit to null, and
// whether it is the chart's or a sub-chart's that is on by default, by a
// condition, by a tag or under another name: what is rendered lacks the limit,
// and keeps the other one. The null lasts through the API's JSON.
func TestB14NullRemovesADefault(t *testing.T) {
	const defaults = "resources: {limits: {cpu: 1, memory: 1Gi}}\n"
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ dir .Template.BasePath | replace \"/charts/\" \".\" }}}\ndata: {v: {{ toJson .Values.resources.limits | quote }}}\n"
	files := chart(map[string]string{
		"Chart.yaml": head + "- {name: always, version: 1.x}\n- {name: gated, version: 1.x, condition: gated.enabled}\n- {name: lit, version: 1.x, condition: lit.enabled}\n" +
			"- {name: tagged, version: 1.x, tags: [extra]}\n- {name: always, version: 1.x, alias: other}\n",
		"values.yaml":       defaults + "gated: {enabled: false}\nlit: {enabled: true}\ntags: {extra: false}\n",
		"templates/cm.yaml": cm,
	})
	for _, at := range []string{"always", "gated", "lit", "tagged", "always/charts/leaf"} {
		dir := "chart/charts/" + at + "/"
		files[dir+"Chart.yaml"] = "apiVersion: v2\nname: " + path.Base(at) + "\nversion: 1.0.0\n"
		files[dir+"values.yaml"], files[dir+"templates/cm.yaml"] = defaults, cm
	}
	null := map[string]any{"limits": map[string]any{"cpu": nil}}
	object, err := json.Marshal(map[string]any{"resources": null, "always": map[string]any{"resources": null, "leaf": map[string]any{"resources": null}}, "lit": map[string]any{"resources": null},
		"gated": map[string]any{"enabled": true, "resources": null}, "tagged": map[string]any{"resources": null}, "other": map[string]any{"resources": null}, "tags": map[string]any{"extra": true}})
	if err != nil {
		t.Fatal(err)
	}
	files["chart/nulls.yaml"] = string(object)
	params := []rutter.HelmParameter{{Name: "gated.enabled", Value: "true"}, {Name: "tags.extra", Value: "true"}}
	for _, p := range []string{"", "always.", "always.leaf.", "gated.", "lit.", "tagged.", "other."} {
		params = append(params, rutter.HelmParameter{Name: p + "resources.limits.cpu", Value: "null"})
	}
	const without = `{"memory":"1Gi"}`
	want := map[string]string{"web": without, "web.always": without, "web.always.leaf": without, "web.gated": without, "web.lit": without, "web.tagged": without, "web.other": without,
		"web.other.leaf": `{"cpu":1,"memory":"1Gi"}`} // nobody said anything of this one
	for by, opts := range map[string]rutter.HelmOptions{
		"valuesObject": {ValuesObject: object}, "values": {Values: string(object)}, "a file": {ValueFiles: []string{"nulls.yaml"}}, "parameters": {Parameters: params},
	} {
		t.Run(by, func(t *testing.T) {
			text, err := json.Marshal(opts) // stored and read again
			if err != nil {
				t.Fatal(err)
			}
			var stored rutter.HelmOptions
			if err := json.Unmarshal(text, &stored); err != nil {
				t.Fatal(err)
			}
			objs, _, err := render(t, input(t, files, stored))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, contents(objs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
