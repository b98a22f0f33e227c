package generate

import (
	"fmt"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/gosimple/slug"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// maxText bounds every text that a template handles, and maxSteps the loops
// and calls of one rendering: text/template cannot be stopped from outside.
const (
	maxText  = 1 << 20
	maxSteps = 1_000_000
)

// templateFuncs are the functions of Go templates: sprig's without those that
// look at the machine, the dialect's own, and bounded forms of those that
// could grow without end.
func templateFuncs() template.FuncMap {
	funcs := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(funcs, name)
	}
	boundFuncs(funcs)
	funcs["normalize"] = normalize
	funcs["slugify"] = slugify
	funcs["toYaml"] = toYAML
	funcs["fromYaml"] = fromYAML
	funcs["fromYamlArray"] = fromYAMLArray
	return funcs
}

// boundFuncs replaces the functions whose result has no relation to the size
// of what they are given.
func boundFuncs(funcs template.FuncMap) {
	funcs["repeat"] = func(count int, text string) (string, error) {
		if count < 0 || count > maxText || count*len(text) > maxText {
			return "", tooLarge("repeat")
		}
		return strings.Repeat(text, count), nil
	}
	funcs["replace"] = func(old, with, text string) (string, error) {
		if len(text)+strings.Count(text, old)*len(with) > maxText {
			return "", tooLarge("replace")
		}
		return strings.ReplaceAll(text, old, with), nil
	}
	indent := func(spaces int, text string) (string, error) {
		if spaces < 0 || spaces > maxText || (strings.Count(text, "\n")+1)*spaces > maxText {
			return "", tooLarge("indent")
		}
		pad := strings.Repeat(" ", spaces)
		return pad + strings.ReplaceAll(text, "\n", "\n"+pad), nil
	}
	funcs["indent"] = indent
	funcs["nindent"] = func(spaces int, text string) (string, error) {
		out, err := indent(spaces, text)
		return "\n" + out, err
	}
	funcs["until"] = func(count int) ([]int, error) { return steps(0, count, sign(count)) }
	funcs["untilStep"] = steps
	funcs["seq"] = seq
}

func tooLarge(what string) error {
	return rutter.Errorf(rutter.CodeInvalid, "%s: the result is larger than %d", what, maxText)
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// steps are the numbers from start towards stop, which is not included.
func steps(start, stop, step int) ([]int, error) {
	out := []int{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(out) == maxSteps {
			return nil, tooLarge("until")
		}
		out = append(out, i)
	}
	return out, nil
}

// seq writes numbers as the command of that name does: last, first last, or
// first increment last, all inclusive.
func seq(args ...int) (string, error) {
	first, step := 1, 0
	var last int
	switch len(args) {
	case 0:
		return "", nil
	case 1:
		last = args[0]
	case 2:
		first, last = args[0], args[1]
	case 3:
		first, step, last = args[0], args[1], args[2]
		if step == 0 || sign(last-first) != sign(step) && last != first {
			return "", nil
		}
	default:
		return "", rutter.Errorf(rutter.CodeInvalid, "seq: takes at most three numbers, has %d", len(args))
	}
	if step == 0 {
		step = sign(last - first)
	}
	numbers, err := steps(first, last+sign(step), step)
	if err != nil {
		return "", err
	}
	return strings.Trim(fmt.Sprint(numbers), "[]"), nil
}

// slugify makes a DNS-like label: slugify NAME, slugify MAX NAME, or
// slugify MAX SMART NAME, where SMART cuts between words.
func slugify(args ...any) (string, error) {
	limit, smart := 50, true
	if len(args) == 0 || len(args) > 3 {
		return "", rutter.Errorf(rutter.CodeInvalid, "slugify: takes one to three arguments, has %d", len(args))
	}
	if len(args) > 1 {
		n, ok := args[0].(int)
		if !ok || n < 0 {
			return "", rutter.Errorf(rutter.CodeInvalid, "slugify: the maximum length is %v, want a number", args[0])
		}
		limit = n
	}
	if len(args) > 2 {
		b, ok := args[1].(bool)
		if !ok {
			return "", rutter.Errorf(rutter.CodeInvalid, "slugify: smart truncation is %v, want true or false", args[1])
		}
		smart = b
	}
	text := slug.Make(fmt.Sprint(args[len(args)-1]))
	if len(text) > limit {
		cut := limit
		if smart {
			if i := strings.LastIndexByte(text[:limit+1], '-'); i > 0 {
				cut = i
			}
		}
		text = text[:cut]
	}
	return strings.Trim(text, "-_"), nil
}

func toYAML(value any) (string, error) {
	raw, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(raw), "\n"), err
}

func fromYAML(text string) (map[string]any, error) {
	out := map[string]any{}
	err := unmarshalYAML(text, &out)
	return out, err
}

func fromYAMLArray(text string) ([]any, error) {
	var out []any
	err := unmarshalYAML(text, &out)
	return out, err
}

// unmarshalYAML reads YAML with whole numbers as int64.
func unmarshalYAML(text string, out any) error {
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return err //nolint:wrapcheck // the template engine names the function
	}
	return utiljson.Unmarshal(raw, out) //nolint:wrapcheck // the template engine names the function
}
