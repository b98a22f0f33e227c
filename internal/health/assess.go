package health

import (
	"slices"
	"strings"
	"time"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/cel"
	"github.com/rutterhq/rutter/internal/lua"
)

// Assessor judges objects with the operator's own scripts and expressions before
// the rules that are built in (reference 4.1). The zero value has none. It never
// changes, and may be used by many at one time.
type Assessor struct {
	exact map[string]assessment
	globs []wildcard
	// groups are expressions for every kind of a group.
	groups map[string]assessment
}

// assessment says how an object does at a time. What failed is in the health.
type assessment func(obj map[string]any, now time.Time) rutter.Health

// wildcard is a script for many kinds.
type wildcard struct {
	pattern string
	match   glob.Glob
	assess  assessment
}

// NewAssessor compiles the operator's scripts and expressions. Those that cannot be
// compiled are in the errors, and make their kinds Unknown: a check that was asked
// for and cannot be made is no reason to call something healthy. Of a script and
// an expression for one kind the script counts, and that is an error too.
func NewAssessor(scripts []rutter.HealthScript, exprs []rutter.HealthExpr) (*Assessor, []error) {
	a := &Assessor{exact: map[string]assessment{}, groups: map[string]assessment{}}
	errs := append(a.addScripts(scripts), a.addExprs(exprs)...)
	return a, errs
}

func (a *Assessor) addExprs(exprs []rutter.HealthExpr) (errs []error) {
	for _, e := range exprs {
		h, err := cel.CompileHealth(e)
		if err != nil {
			errs = append(errs, err)
		}
		in, key := a.exact, e.Group+"/"+e.Kind
		if e.Kind == "" {
			in, key = a.groups, e.Group
		}
		if in[key] != nil {
			errs = append(errs, rutter.Errorf(rutter.CodeInvalid, "%s: the health of %s is assessed otherwise already, and so it stays: remove one of the two", e.Source, key))
			continue
		}
		in[key] = func(obj map[string]any, _ time.Time) rutter.Health {
			out, _ := h.Of(obj) // what failed is in the health
			return out
		}
	}
	return errs
}

func (a *Assessor) addScripts(scripts []rutter.HealthScript) (errs []error) {
	for _, s := range scripts {
		script, err := lua.Compile(s.Source, s.Script, s.OpenLibs)
		if err != nil {
			errs = append(errs, err)
			script = lua.Broken(s.Source, err)
		}
		assess := func(obj map[string]any, now time.Time) rutter.Health {
			out, _ := script.Health(obj, now) // what failed is in the health
			return out
		}
		kind := s.Group + "/" + s.Kind
		if !strings.ContainsAny(kind, "*?[{") {
			a.exact[kind] = assess
			continue
		}
		match, err := glob.Compile(kind)
		if err != nil {
			errs = append(errs, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a pattern: %w", s.Source, kind, err))
			continue
		}
		a.globs = append(a.globs, wildcard{kind, match, assess})
	}
	// The longest pattern says most; the reference takes any.
	slices.SortFunc(a.globs, func(x, y wildcard) int {
		if len(x.pattern) != len(y.pattern) {
			return len(y.pattern) - len(x.pattern)
		}
		return strings.Compare(x.pattern, y.pattern)
	})
	return errs
}

// Assesses reports whether an operator says how a kind does.
func (a *Assessor) Assesses(group, kind string) bool {
	return a != nil && a.of(group, kind) != nil
}

// Of is the health of a live object at a time, which scripts may ask for.
func (a *Assessor) Of(obj *unstructured.Unstructured, now time.Time) rutter.Health {
	if a == nil || obj == nil || obj.Object == nil || len(a.exact)+len(a.globs)+len(a.groups) == 0 {
		return Of(obj)
	}
	o := newObject(obj)
	assess := a.of(o.group, o.kind)
	if assess == nil || o.pendingDeletion() {
		return Of(obj)
	}
	return assess(obj.Object, now)
}

// of is the assessment of a kind, nil when there is none. The narrower counts.
func (a *Assessor) of(group, kind string) assessment {
	name := group + "/" + kind
	if s := a.exact[name]; s != nil {
		return s
	}
	for _, g := range a.globs {
		if g.match.Match(name) {
			return g.assess
		}
	}
	return a.groups[group]
}
