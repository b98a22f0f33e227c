package generate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/internal/generate"
)

// TestBooleanWords: words that YAML takes for booleans are said, and nothing else is.
func TestBooleanWords(t *testing.T) {
	for text, want := range map[string][]string{
		"country: no\n":                      {"country: no is read as false"},
		"country: NO # Norway\n":             {"country: NO is read as false"},
		"{country: no, answer: y}":           {"country: no is read as false", "answer: y is read as true"},
		"switch: on\r\nother: Off\r\n":       {"switch: on is read as true", "other: Off is read as false"},
		"countries:\n- se\n- no\n":           {"an item: no is read as false"},
		"a: {country: no}\nb: {country: no}": {"country: no is read as false"},
		"n: 3\n":                             {"the key n is read as false"},
		"a: {x: 1, y: 2}\non: 3":             {"the key y is read as true", "the key on is read as true"},
		"'n': 3\ntext: \"x, n: 2\"\n":        nil,
		"country: 'no'\n":                    nil,
		"country: \"no\"\nreally: true\n":    nil,
		"country: norway\n":                  nil,
		"text: |\n  country: no\n":           nil,
		"text: |\n  - no\nlist: [true]\n":    nil,
		"enabled: true\nother: false\n":      nil,
		"":                                   nil,
	} {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, w := range generate.BooleanWords([]byte(text), value) {
			said, _, _ := strings.Cut(w, ", as in")
			got = append(got, said)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q:\n%s", text, diff)
		}
	}
	res := generate.Generate(setOf(t, goTemplated(withTemplate("- list: {elementsYaml: \"[{name: a, country: no}]\"}\n- git: {repoURL: 'https://git.example.com/fleet', files: [{path: 'a.yaml'}]}", "{{.name}}", "{{.country}}"))),
		&facts{repos: singleRepo(map[string]string{"a.yaml": "name: b\ncountry: no\n"})})
	if w := strings.Join(res.Warnings, "\n"); len(res.Applications) != 2 || !strings.Contains(w, "generators[0].list.elementsYaml: country: no is read as false") || !strings.Contains(w, "generators[1].git: a.yaml: country: no") {
		t.Errorf("%d Applications: %s\n%s", len(res.Applications), w, problems(res))
	}
}
