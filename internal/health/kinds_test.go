package health

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	rutter "github.com/rutterhq/rutter"
)

// TestKinds: the examples of each kind are judged as they are meant.
func TestKinds(t *testing.T) {
	raw, err := os.ReadFile("testdata/kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]map[rutter.HealthState]bool{}
	examples := 0
	for line := range strings.Lines(string(raw)) {
		kind, rest, ok := strings.Cut(strings.TrimSpace(line), " | ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		want, text, _ := strings.Cut(rest, " | ")
		group, name, _ := strings.Cut(kind, "/")
		obj := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		obj["apiVersion"], obj["kind"] = group+"/v1", name
		examples++
		h := Of(&unstructured.Unstructured{Object: obj})
		if string(h.Status) != want {
			t.Errorf("%s: %s (%s), want %s: %s", kind, h.Status, h.Message, want, text)
		}
		if h.Status != rutter.Healthy && h.Message == "" {
			t.Errorf("%s: %s without a word: %s", kind, h.Status, text)
		}
		if states[kind] == nil {
			states[kind] = map[rutter.HealthState]bool{}
		}
		states[kind][h.Status] = true
	}
	listed, err := os.ReadFile("testdata/listed.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for kind := range strings.FieldsSeq(string(listed)) {
		n++
		if len(states[kind]) == 0 {
			t.Errorf("%s has no examples", kind)
		}
	}
	fmt.Printf("health: %d examples of %d kinds, %d kinds listed by the contract\n", examples, len(states), n)
}
