package generate

import (
	"regexp"
	"strings"
	"testing"
	"text/template"
)

// changing are functions that answer differently each time, or slowly.
var changing = regexp.MustCompile(`rand|uuid|now|date|ago|gen|crypt|htpasswd|derive|shuffle|encrypt|keys|values|pick|omit|seq|until|repeat`)

// FuzzGoTemplate holds that what rewrite puts into templates changes nothing
// in what a sound template prints, and that no template panics.
func FuzzGoTemplate(f *testing.F) {
	for _, s := range []string{
		`{{.name}} {{.m.k}} {{index .l 0}}`,
		`{{range $i, $e := .l}}{{$i}}={{$e}};{{else}}none{{end}}`,
		`{{with .m}}{{.k | upper | quote}}{{end}}{{define "x"}}{{.}}{{end}}{{template "x" .name}}`,
		`{{if and .name (eq (len .l) 2)}}yes{{else if .m}}no{{end}}`,
		`{{$x := printf "%s-%d" .name 3}}{{$x = upper $x}}{{$x}}`,
		`{{.missing | default "d"}} {{default .name .missing}} {{ (dict "a" 1).a }}`,
		`{{- range .m }} {{ break }} {{ end -}}{{ block "b" . }}{{ .name }}{{ end }}`,
		`{{range 3}}{{.}}{{continue}}{{end}}{{ coalesce .missing .name }}{{ .m.none.deeper | default 1 }}`,
	} {
		f.Add(s)
	}
	params := func() map[string]any {
		return map[string]any{"name": "a", "n": int64(3), "m": map[string]any{"k": "v"}, "l": []any{"x", int64(2)}}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if changing.MatchString(text) || len(text) > 500 {
			return
		}
		e := newGoEngine(nil)
		got, _, err := e.render(text, params())
		if err != nil {
			return
		}
		plain, perr := template.New("").Funcs(templateFuncs()).Parse(text)
		if perr != nil {
			t.Fatalf("%q renders and does not parse: %v", text, perr)
		}
		var want strings.Builder
		if err := plain.Execute(&want, params()); err != nil {
			// Only what tolerates absence may be sounder than the original.
			if !strings.Contains(text, "default") && !strings.Contains(text, "coalesce") && !strings.Contains(text, "empty") {
				t.Fatalf("%q renders %q, and without rewriting fails: %v", text, got, err)
			}
			return
		}
		if got != want.String() {
			t.Fatalf("%q renders %q, without rewriting %q", text, got, want.String())
		}
	})
}

func BenchmarkGenerateGoTemplate(b *testing.B) {
	e := newGoEngine([]string{"missingkey=error"})
	params := map[string]any{"name": "a", "path": map[string]any{"path": "apps/a"}}
	for b.Loop() {
		if _, _, err := e.render(`{{.path.path}}/{{.name | default "x"}}`, params); err != nil {
			b.Fatal(err)
		}
	}
}
