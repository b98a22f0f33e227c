package substitute_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/substitute"
)

// values are the variables of the table.
func values() map[string]string {
	return map[string]string{
		"v": "value", "w": "World", "empty": "", "n": "3", "path": "a/b/c.tar.gz", "utf": "äöü", "up": "LOUD",
		"lines": "one\ntwo\n", "dollar": "$5 ${v} $$", "stars": "a*b*c", "q": `"`, "back": `a\b/c`, "_x": "under", "a1": "digit", "long": strings.Repeat("x", 9000),
	}
}

// TestText holds every form and trap of the contract (flux-semantics 2.5).
func TestText(t *testing.T) {
	tests := []struct{ in, want, err, lenient string }{
		// Text that is none of our business.
		{in: "", want: ""},
		{in: "plain", want: "plain"},
		{in: "$", want: "$"},
		{in: "a $ b", want: "a $ b"},
		{in: "$v", want: "$v"},
		{in: "cost $5", want: "cost $5"},
		{in: "$(v)", want: "$(v)"},
		{in: "a}b", want: "a}b"},
		{in: `\\something ${v}`, want: `\\something value`},
		{in: `a\$b`, want: `a\$b`},
		{in: "ends with $", want: "ends with $"},
		// Escapes: each pair of dollars is one, and opens nothing.
		{in: "$$", want: "$"},
		{in: "a$$b", want: "a$b"},
		{in: "$${v}", want: "${v}"},
		{in: "$$${v}", want: "$value"},
		{in: "$$$${v}", want: "$${v}"},
		{in: "$$$$${v}", want: "$$value"},
		{in: "$${v", want: "${v"},
		{in: "x $${v} ${v}", want: "x ${v} value"},
		// Values and lengths.
		{in: "${v}", want: "value"},
		{in: "-${v}-${w}-", want: "-value-World-"},
		{in: "${_x}${a1}", want: "underdigit"},
		{in: "${empty}", want: ""},
		{in: "${lines}", want: "onetwo"},
		{in: "${dollar}", want: "$5 ${v} $$"},
		{in: "${#v}", want: "5"},
		{in: "${#empty}", want: "0"},
		{in: "${#utf}", want: "6"},
		{in: "${#lines}", want: "6"},
		{in: "${unset}", err: "variable not set (strict mode)", lenient: ""},
		{in: "${#unset}", err: "variable not set (strict mode)", lenient: "0"},
		{in: "${1a}", err: `not set (strict mode): "1a"`, lenient: ""},
		{in: "${ä}", err: `not set (strict mode): "ä"`, lenient: ""},
		// Case.
		{in: "${v^}", want: "Value"},
		{in: "${v^^}", want: "VALUE"},
		{in: "${up,}", want: "lOUD"},
		{in: "${up,,}", want: "loud"},
		{in: "${utf^}", want: "Äöü"},
		{in: "${empty^}", want: ""},
		{in: "${v^^^}", err: "bad substitution"},
		{in: "${unset^^}", err: "strict mode", lenient: ""},
		// Substrings, in bytes.
		{in: "${v:1}", want: "alue"},
		{in: "${v:0:2}", want: "va"},
		{in: "${v:1:2}", want: "al"},
		{in: "${v:3:99}", want: "ue"},
		{in: "${v:5}", want: ""},
		{in: "${v:99}", want: ""},
		{in: "${v:99:2}", want: ""},
		{in: "${v:0:0}", want: ""},
		{in: "${utf:0:1}", want: "\xc3"},
		{in: "${v: -1}", want: "value"},
		{in: "${v:x}", want: "value"},
		{in: "${v:1:x}", want: "value"},
		{in: "${v:${n}}", want: "ue"},
		{in: "${v:0:${n}}", want: "val"},
		{in: "${v::2}", err: "unable to parse substitution within function"},
		{in: "${v:}", err: "unable to parse substitution within function"},
		{in: "${v:1:}", err: "unable to parse substitution within function"},
		{in: "${v:0:-1}", err: "length of -1 is negative"},
		{in: "${v:-1}", want: "value"}, // the operator of a default
		{in: "${unset:1}", err: "strict mode", lenient: ""},
		// Prefixes and suffixes, by patterns.
		{in: "${path#*/}", want: "b/c.tar.gz"},
		{in: "${path##*/}", want: "c.tar.gz"},
		{in: "${path%.*}", want: "a/b/c.tar"},
		{in: "${path%%.*}", want: "a/b/c"},
		{in: "${path#a/}", want: "b/c.tar.gz"},
		{in: "${path#b}", want: "a/b/c.tar.gz"},
		{in: "${path%gz}", want: "a/b/c.tar."},
		{in: "${path##*}", want: ""},
		{in: "${path#?}", want: "/b/c.tar.gz"},
		{in: "${path#[a-c]/}", want: "b/c.tar.gz"},
		{in: "${path#[}", want: "a/b/c.tar.gz"},
		{in: "${v#${empty}}", want: "value"},
		{in: "${v#${v}}", want: ""},
		{in: "${utf%ü}", want: "äö"},
		{in: "${v#}", err: "unable to parse substitution within function"},
		{in: "${v###x}", want: "value"},
		{in: "${long#x*}", err: "too long for a pattern"},
		{in: "${unset%x}", err: "strict mode", lenient: ""},
		// Replacements, literal.
		{in: "${v/a/b}", want: "vblue"},
		{in: "${stars/b/x}", want: "a*x*c"},
		{in: "${stars//*/-}", want: "a-b-c"},
		{in: "${stars/*/-}", want: "a-b*c"},
		{in: "${v/#va/X}", want: "Xlue"},
		{in: "${v/#lue/X}", want: "value"},
		{in: "${v/%ue/X}", want: "valX"},
		{in: "${v/%va/X}", want: "value"},
		{in: "${v/e/}", want: "valu"},
		{in: "${v/e}", err: "bad substitution"},
		{in: "${v/e} and a slash / later}", want: "value"}, // the pattern is what comes before the slash
		{in: "${v/#va/}", want: "value"},
		{in: `${path/\//-}`, want: "a-b/c.tar.gz"},
		{in: `${path//\//-}`, want: "a-b-c.tar.gz"},
		{in: `${back/\\/+}`, want: "a+b/c"},
		{in: `${v/a/\/}`, want: "v/lue"},
		{in: "${v/a/$$}", want: "v$lue"},
		{in: "${v/${n}/x}", want: "value"},
		{in: "${v/a/${w}}", want: "vWorldlue"},
		{in: "${unset/a/b}", err: "strict mode", lenient: ""},
		// Defaults.
		{in: "${v:=d}", want: "value"},
		{in: "${unset:=d}", want: "d"},
		{in: "${unset:-d}", want: "d"},
		{in: "${unset=d}", want: "d"},
		{in: "${empty:=d}", want: "d"},
		{in: "${empty:-d}", want: "d"},
		{in: "${empty=d}", want: "d"},
		{in: "${unset:=}", want: ""},
		{in: "${unset:-}", want: ""},
		{in: "${unset:?e}", want: "e"},
		{in: "${unset:+d}", want: "d"},
		{in: "${v:?e}", want: "value"},
		{in: "${v:+d}", want: "value"},
		{in: "${v-d}", err: "missing closing brace"},
		{in: "${v+d}", err: "missing closing brace"},
		{in: "${v?e}", err: "missing closing brace"},
		{in: "${unset:=${w}}", want: "World"},
		{in: "${unset=${w}-x}", want: "World-x"},
		{in: "${unset:=a ${v} b ${w} c}", want: "a value b World c"},
		{in: "${unset:=${other:=${v}}}", want: "value"},
		{in: "${unset:=${other}}", err: `strict mode): "other"`, lenient: ""},
		{in: "${v:=${other}}", err: `strict mode): "other"`, lenient: "value"}, // even where it is not used
		{in: "${unset:=a\nb}", want: "a\nb"},
		{in: "${unset:={a}}", want: "{a}"}, // ends at the first brace
		{in: "${unset:=a$$b}", want: "a$$b"},
		{in: "${unset:=http://x/?a=b}", want: "http://x/?a=b"},
		// What cannot be read.
		{in: "${v", err: "missing closing brace"},
		{in: "${", err: "unable to parse variable name"},
		{in: "${}", err: "unable to parse variable name"},
		{in: "${ v }", err: "unable to parse variable name"},
		{in: "${-v}", err: "unable to parse variable name"},
		{in: "${a.b}", err: "missing closing brace"},
		{in: "${a-b}", err: "missing closing brace"},
		{in: "${#}", err: "bad substitution"},
		{in: "${#v-}", err: "bad substitution"},
		{in: "${unset:=a", err: "unable to parse substitution within function"},
		{in: "${v/a/b", err: "bad substitution"},
		{in: "${v,x}", err: "bad substitution"},
		{in: "${v#${w}x}", err: "bad substitution"},
		{in: strings.Repeat("${u:=", 100), err: "nested too deeply"},
		// Results are not looked at again.
		{in: "${unset:=$}{v}", want: "${v}"},
	}
	if len(tests) < 60 {
		t.Fatalf("only %d cases", len(tests))
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%.40q", tt.in), func(t *testing.T) {
			got, err := substitute.Variables{Values: values()}.Text(tt.in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || rutter.CodeOf(err) != rutter.CodeInvalid {
					t.Fatalf("want an error that says %q, got %q, %v", tt.err, got, err)
				}
			} else if err != nil || got != tt.want {
				t.Fatalf("got %q, %v; want %q", got, err, tt.want)
			}
			lenient, err := substitute.Variables{Values: values(), Lenient: true}.Text(tt.in)
			switch strict := strings.Contains(tt.err, "strict mode"); {
			case tt.err == "" && (err != nil || lenient != tt.want), strict && (err != nil || lenient != tt.lenient), tt.err != "" && !strict && err == nil:
				t.Errorf("leniently: %q, %v", lenient, err)
			}
		})
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestObject holds what happens to whole objects.
func TestObject(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%s}\n"
	meta := func(s string) string { return fmt.Sprintf(head, s) }
	many := map[string]string{"n": "3", "yes": "true", "text": "hello", "q": `"`, "map": "{a: 1}", "bad": ": :"}
	tests := map[string]struct {
		vars substitute.Variables
		in   string
		want string
		err  string
	}{
		"a number":              {vars: substitute.Variables{Values: many}, in: meta("") + "spec: {replicas: '${n}'}\n", want: meta("") + "spec: {replicas: 3}\n"},
		"a boolean":             {vars: substitute.Variables{Values: many}, in: meta("") + "spec: {on: '${yes}'}\n", want: meta("") + "spec: {on: true}\n"},
		"text stays text":       {vars: substitute.Variables{Values: many}, in: meta("") + "data: {k: '${text}'}\n", want: meta("") + "data: {k: hello}\n"},
		"the idiom of quotes":   {vars: substitute.Variables{Values: many}, in: meta("") + "data: {k: '${q}${n}${q}'}\n", want: meta("") + "data: {k: \"3\"}\n"},
		"keys":                  {vars: substitute.Variables{Values: many}, in: meta("") + "data: {'${text}': x}\n", want: meta("") + "data: {hello: x}\n"},
		"names":                 {vars: substitute.Variables{Values: many}, in: strings.Replace(meta(""), "name: c", "name: 'c-${n}'", 1), want: strings.Replace(meta(""), "name: c", "name: c-3", 1)},
		"a map":                 {vars: substitute.Variables{Values: many}, in: meta("") + "spec: '${map}'\n", want: meta("") + "spec: {a: 1}\n"},
		"no variables":          {in: meta("") + "data: {k: '${x}'}\n", want: meta("") + "data: {k: '${x}'}\n"},
		"no variables, always":  {vars: substitute.Variables{Always: true}, in: meta("") + "data: {k: '${x:=d}'}\n", want: meta("") + "data: {k: d}\n"},
		"always and strict":     {vars: substitute.Variables{Always: true}, in: meta("") + "data: {k: '${x}'}\n", err: "strict mode"},
		"opted out by label":    {vars: substitute.Variables{Values: many}, in: meta(", labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}") + "data: {k: '${x}'}\n", want: meta(", labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}") + "data: {k: '${x}'}\n"},
		"opted out by note":     {vars: substitute.Variables{Values: many}, in: meta(", annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}") + "data: {k: '${x}'}\n", want: meta(", annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}") + "data: {k: '${x}'}\n"},
		"not by another case":   {vars: substitute.Variables{Values: many}, in: meta(", labels: {kustomize.toolkit.fluxcd.io/substitute: Disabled}") + "data: {k: '${text}'}\n", want: meta(", labels: {kustomize.toolkit.fluxcd.io/substitute: Disabled}") + "data: {k: hello}\n"},
		"an invalid name":       {vars: substitute.Variables{Values: map[string]string{"a-b": "x"}}, in: meta(""), err: `"a-b" is no name of a variable`},
		"one with a digit":      {vars: substitute.Variables{Values: map[string]string{"1a": "x"}}, in: meta(""), err: `"1a" is no name`},
		"a value that does not": {vars: substitute.Variables{Values: many}, in: meta("") + "data: {k: '${bad}'}\n", err: "no valid YAML"},
		"not strict":            {vars: substitute.Variables{Values: many, Lenient: true}, in: meta("") + "data: {k: 'a${x}b'}\n", want: meta("") + "data: {k: ab}\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := object(t, tt.in)
			before := in.DeepCopy()
			got, err := tt.vars.Object(in)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("want an error that says %q, got %v", tt.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			gotText, _ := yaml.Marshal(got.Object)
			wantText, _ := yaml.Marshal(object(t, tt.want).Object)
			if diff := cmp.Diff(string(wantText), string(gotText)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before.Object, in.Object); diff != "" {
				t.Errorf("the argument has changed: %s", diff)
			}
		})
	}
}

// TestErrorsHoldNoValues: values may be secret.
func TestErrorsHoldNoValues(t *testing.T) {
	const secret = "hunter2"
	for _, in := range []string{"a: ${s}\nb: ${unset}", "${s:0:-1}", "${s#${s}x}", "a: ${s", "${s}", "${n}"} {
		u := object(t, "apiVersion: v1\nkind: X\nmetadata: {name: x}\n")
		u.Object["text"] = in
		_, err := substitute.Variables{Values: map[string]string{"s": secret + ": [", "n": "\x00" + secret}}.Object(u)
		if err == nil {
			t.Errorf("%s: no error", in)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestGrowthIsBounded: values in values cannot fill the memory.
func TestGrowthIsBounded(t *testing.T) {
	v := substitute.Variables{Values: map[string]string{"big": strings.Repeat("x", 1<<20)}}
	if _, err := v.Text(strings.Repeat("${big}", 64)); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("got %v", err)
	}
}

// FuzzText: nothing panics, text without a dollar is left alone, and what is
// escaped comes back as it was.
func FuzzText(f *testing.F) {
	for _, s := range []string{"${v}", "$${v}", "${v:=${w}}", "${v/a/b}", "${v:1:2}", "${v##*/}", "${v^^}", "${#v}", "${v:0:-1}", `${v/\//\\}`, "${v%[}", "$$$", "${ä:?b}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		v := substitute.Variables{Values: map[string]string{"v": "a/b.c", "w": "ü"}, Lenient: true}
		out, err := v.Text(in)
		if !strings.Contains(in, "$") && (err != nil || out != in) {
			t.Errorf("%q became %q, %v", in, out, err)
		}
		back, err := v.Text(strings.ReplaceAll(in, "$", "$$"))
		if err != nil || back != in {
			t.Errorf("%q, escaped, became %q, %v", in, back, err)
		}
	})
}
