package helm

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// precheck looks at the arguments of a function before it is called, for
// functions whose result can be far larger than their arguments.
type precheck func(g *guard, args []any)

// prechecks returns the checks by the name of the function.
func prechecks() map[string]precheck { return checks }

//nolint:gochecknoglobals // a constant table
var checks = map[string]precheck{
	"repeat":  func(g *guard, a []any) { g.product("repeat", number(a, 0), size(a, 1)) },
	"indent":  func(g *guard, a []any) { g.product("indent", number(a, 0), lines(a, 1)) },
	"nindent": func(g *guard, a []any) { g.product("nindent", number(a, 0), lines(a, 1)) },
	"replace": func(g *guard, a []any) {
		if len(a) == 3 {
			g.product("replace", strings.Count(text(a, 2), text(a, 0)), size(a, 1))
		}
	},
	"join":                       func(g *guard, a []any) { g.weighTree(a); g.product("join", length(a, 1), size(a, 0)) },
	"wrapWith":                   func(g *guard, a []any) { g.product("wrapWith", size(a, 2), size(a, 1)) },
	"regexReplaceAll":            regexReplace,
	"mustRegexReplaceAll":        regexReplace,
	"regexReplaceAllLiteral":     regexReplace,
	"mustRegexReplaceAllLiteral": regexReplace,
	"until":                      func(g *guard, a []any) { g.product("until", number(a, 0), 1) },
	"untilStep":                  func(g *guard, a []any) { g.steps("untilStep", number(a, 0), number(a, 1), number(a, 2)) },
	"seq": func(g *guard, a []any) {
		switch len(a) {
		case 1:
			g.steps("seq", 1, number(a, 0), 1)
		case 2:
			g.steps("seq", number(a, 0), number(a, 1), 1)
		case 3:
			g.steps("seq", number(a, 0), number(a, 2), number(a, 1))
		}
	},
	"randAlphaNum": random, "randAlpha": random, "randAscii": random, "randNumeric": random, "randBytes": random,
	"printf": func(g *guard, a []any) {
		if f := text(a, 0); strings.ContainsAny(f, "*0123456789") && wideVerb.MatchString(f) {
			g.stop("printf: the format asks for a width that is too large or computed")
		}
		g.weighTree(a)
	},
	"print": tree, "println": tree, "cat": tree, "toString": tree, "toStrings": tree, "quote": tree, "squote": tree, "html": tree, "js": tree, "urlquery": tree,
	"toYaml": tree, "mustToYaml": tree, "toYamlPretty": tree, "toJson": tree, "mustToJson": tree,
	"toPrettyJson": tree, "mustToPrettyJson": tree, "toRawJson": tree, "mustToRawJson": tree, "toToml": tree, "mustToToml": tree,
	"deepCopy": tree, "mustDeepCopy": tree, "merge": tree, "mustMerge": tree, "mergeOverwrite": tree, "mustMergeOverwrite": tree,
	"sortAlpha": tree, "deepEqual": tree,
	"uniq": quadratic, "mustUniq": quadratic, "without": quadratic, "mustWithout": quadratic,
}

// wideVerb matches a verb of printf with five digits of width, or with a computed one.
var wideVerb = regexp.MustCompile(`%[-+# 0.\[\]]*(?:\d{5,}|\*)|%[-+# 0\[\]]*\d*\.(?:\d{5,}|\*)`)

func tree(g *guard, args []any) { g.weighTree(args) }

func random(g *guard, args []any) { g.product("random text", number(args, 0), 16) }

func regexReplace(g *guard, args []any) {
	g.product("replacing by pattern", size(args, 1)+1, max(size(args, 2), 1))
}

func quadratic(g *guard, args []any) {
	for i := range args {
		if length(args, i) > maxList {
			g.stop("a list of more than %d items is compared each with each", maxList)
		}
	}
}

// product refuses a result of n times m.
func (g *guard) product(what string, n, m int) {
	if n > 0 && m > 0 && n > maxString/m {
		g.stop("%s makes more than %d MiB", what, maxString>>20)
	}
}

func (g *guard) steps(what string, from, to, step int) {
	if step == 0 {
		return
	}
	if n := (float64(to) - float64(from)) / float64(step); n > maxNodes {
		g.stop("%s makes a list of more than %d numbers", what, maxNodes)
	}
}

func text(args []any, i int) string {
	if i >= len(args) {
		return ""
	}
	s, ok := args[i].(string)
	if !ok {
		return ""
	}
	return s
}

func size(args []any, i int) int {
	if s := text(args, i); s != "" {
		return len(s)
	}
	return 0
}

func lines(args []any, i int) int { return strings.Count(text(args, i), "\n") + 1 }

func number(args []any, i int) int {
	if i >= len(args) {
		return 0
	}
	switch v := reflect.ValueOf(args[i]); {
	case v.CanInt():
		return int(v.Int())
	case v.CanUint():
		return int(min(v.Uint(), 1<<62))
	case v.CanFloat():
		return int(v.Float())
	}
	var n int
	_, _ = fmt.Sscan(fmt.Sprint(args[i]), &n) // what is no number is the function's own problem
	return n
}

func length(args []any, i int) int {
	if i >= len(args) {
		return 0
	}
	v := reflect.ValueOf(args[i])
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return v.Len()
	}
	return 0
}
