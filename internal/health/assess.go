package health

import (
	"slices"
	"strings"
	"time"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/lua"
)

// Assessor judges objects with the operator's own scripts before the rules that
// are built in (reference 4.1). The zero value has none. It never changes, and
// may be used by many at one time.
type Assessor struct {
	exact map[string]*lua.Script
	globs []wildcard
}

// wildcard is a script for many kinds.
type wildcard struct {
	pattern string
	match   glob.Glob
	script  *lua.Script
}

// NewAssessor compiles the operator's scripts. Those that cannot be compiled are
// in the errors, and make their kinds Unknown: a check that was asked for and
// cannot be made is no reason to call something healthy.
func NewAssessor(scripts []rutter.HealthScript) (*Assessor, []error) {
	a := &Assessor{exact: map[string]*lua.Script{}}
	var errs []error
	for _, s := range scripts {
		script, err := lua.Compile(s.Source, s.Script, s.OpenLibs)
		if err != nil {
			errs = append(errs, err)
			script = lua.Broken(s.Source, err)
		}
		kind := s.Group + "/" + s.Kind
		if !strings.ContainsAny(kind, "*?[{") {
			a.exact[kind] = script
			continue
		}
		match, err := glob.Compile(kind)
		if err != nil {
			errs = append(errs, rutter.Errorf(rutter.CodeInvalid, "%s: %q is not a pattern: %w", s.Source, kind, err))
			continue
		}
		a.globs = append(a.globs, wildcard{kind, match, script})
	}
	// The longest pattern says most; the reference takes any.
	slices.SortFunc(a.globs, func(x, y wildcard) int {
		if len(x.pattern) != len(y.pattern) {
			return len(y.pattern) - len(x.pattern)
		}
		return strings.Compare(x.pattern, y.pattern)
	})
	return a, errs
}

// Assesses reports whether an operator says how a kind does.
func (a *Assessor) Assesses(group, kind string) bool {
	return a != nil && a.script(group+"/"+kind) != nil
}

// Of is the health of a live object at a time, which scripts may ask for.
func (a *Assessor) Of(obj *unstructured.Unstructured, now time.Time) rutter.Health {
	if a == nil || obj == nil || obj.Object == nil || len(a.exact)+len(a.globs) == 0 {
		return Of(obj)
	}
	o := newObject(obj)
	script := a.script(o.group + "/" + o.kind)
	if script == nil || o.pendingDeletion() {
		return Of(obj)
	}
	h, _ := script.Health(obj.Object, now) // what failed is in the health
	return h
}

// script is the one for a kind, nil when there is none.
func (a *Assessor) script(kind string) *lua.Script {
	if s := a.exact[kind]; s != nil {
		return s
	}
	for _, g := range a.globs {
		if g.match.Match(kind) {
			return g.script
		}
	}
	return nil
}
