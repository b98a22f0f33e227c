package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	helmengine "helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// functions returns Helm's template functions behind the guard. Nothing here
// reaches the environment, the network or a cluster.
func (e *engine) functions(root *template.Template) template.FuncMap {
	f := sprig.TxtFuncMap()
	delete(f, "env")
	delete(f, "expandenv")
	maps.Copy(f, e.text())
	for _, name := range helmOnly() {
		f[name] = e.fromHelm(name)
	}
	f["print"], f["printf"], f["println"] = fmt.Sprint, fmt.Sprintf, fmt.Sprintln
	f["html"], f["js"], f["urlquery"] = template.HTMLEscaper, template.JSEscaper, template.URLQueryEscaper
	f["getHostByName"] = func(string) string { return "" }
	f["lookup"] = e.lookup
	maps.Copy(f, ordered())
	maps.Copy(f, e.clockFunctions())
	f["fail"] = func(msg string) (string, error) { return "", &userError{msg} }
	f["required"] = required
	f["include"], f["tpl"] = e.include(root), e.tpl(root)
	f = e.guard.wrap(f)
	f[tickFunc], f[printFunc] = e.guard.tick, e.guard.print //nolint:forbidigo // the name of a template function
	f[clusterFunc] = e.guard.seesCluster
	e.names = maps.Clone(f)
	for _, name := range builtins() {
		e.names[name] = true
	}
	return f
}

// builtins are the functions of text/template itself.
func builtins() []string {
	return []string{"and", "call", "eq", "ge", "gt", "html", "index", "js", "le", "len", "lt", "ne", "not", "or", "print", "printf", "println", "slice", "urlquery"}
}

// lookup reads the target cluster, where an operator allows it. What it found
// once it finds again in the same run, and templates may change their copy.
func (e *engine) lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	if e.run.lookup == nil {
		return map[string]any{}, nil
	}
	obj, err := e.run.lookup(apiVersion, kind, namespace, name)
	if err != nil || obj == nil {
		return map[string]any{}, err
	}
	return runtime.DeepCopyJSON(obj), nil
}

// ordered are functions that go through a mapping in any order in Helm; here
// they go through it by key, because equal inputs must render the same.
func ordered() template.FuncMap {
	return template.FuncMap{
		"keys": func(dicts ...map[string]any) []string {
			out := []string{}
			for _, d := range dicts {
				out = append(out, slices.Sorted(maps.Keys(d))...)
			}
			return out
		},
		"values": func(d map[string]any) []any {
			out := make([]any, 0, len(d))
			for _, k := range slices.Sorted(maps.Keys(d)) {
				out = append(out, d[k])
			}
			return out
		},
	}
}

// userError is what a chart says with fail or required.
type userError struct{ msg string }

// Error implements error.
func (e *userError) Error() string { return e.msg }

func required(msg string, v any) (any, error) {
	if v == nil || v == "" {
		return v, &userError{msg}
	}
	return v, nil
}

// text are the functions that read and write YAML and JSON. As in Helm, those
// without "must" answer a failure with an empty text, or with an Error key.
func (e *engine) text() template.FuncMap {
	toYAML := func(v any) (string, error) {
		out, err := yaml.Marshal(v)
		return strings.TrimSuffix(string(out), "\n"), err
	}
	toJSON := func(v any) (string, error) {
		out, err := json.Marshal(v)
		return string(out), err
	}
	lenient := func(write func(any) (string, error)) func(any) string {
		return func(v any) string {
			out, err := write(v)
			if err != nil {
				return ""
			}
			return out
		}
	}
	return template.FuncMap{
		"toYaml": lenient(toYAML), "mustToYaml": toYAML,
		"toJson": lenient(toJSON), "mustToJson": toJSON,
		"fromYaml":      func(s string) map[string]any { return readMap(s, yamlUnmarshal) },
		"fromYamlArray": func(s string) []any { return readList(s, yamlUnmarshal) },
		"fromJson":      func(s string) map[string]any { return readMap(s, json.Unmarshal) },
		"fromJsonArray": func(s string) []any { return readList(s, json.Unmarshal) },
	}
}

func yamlUnmarshal(data []byte, v any) error { return yaml.Unmarshal(data, v) } //nolint:wrapcheck // its text becomes a value

func readMap(s string, read func([]byte, any) error) map[string]any {
	m := map[string]any{}
	if err := read([]byte(s), &m); err != nil {
		if m == nil {
			m = map[string]any{}
		}
		m["Error"] = err.Error()
	}
	return m
}

func readList(s string, read func([]byte, any) error) []any {
	l := []any{}
	if err := read([]byte(s), &l); err != nil {
		return []any{err.Error()}
	}
	return l
}

// helmOnly are functions that only Helm has and that charts rarely use.
func helmOnly() []string {
	return []string{"toToml", "mustToToml", "fromToml", "toYamlPretty", "mustToDuration",
		"durationSeconds", "durationMilliseconds", "durationMicroseconds", "durationNanoseconds", "durationMinutes",
		"durationHours", "durationDays", "durationWeeks", "durationRoundTo", "durationTruncateTo"}
}

// fromHelm calls a function of Helm's engine, which does not export them: a
// template of one action hands over the result.
func (e *engine) fromHelm(name string) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		var action strings.Builder
		action.WriteString("{{ " + name)
		for i := range args {
			fmt.Fprintf(&action, " (index .Values.args %d)", i)
		}
		action.WriteString(" | take }}")
		var got any
		h := helmengine.Engine{CustomTemplateFuncs: template.FuncMap{"take": func(v any) string { got = v; return "" }}}
		c := &chart.Chart{Metadata: &chart.Metadata{Name: "call"}, Templates: []*common.File{{Name: "templates/call", Data: []byte(action.String())}}}
		if _, err := h.RenderWithContext(e.run.ctx, c, common.Values{"Values": common.Values{"args": args}}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return got, nil
	}
}
