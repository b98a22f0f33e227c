package helm

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/rutterhq/rutter"
)

// The bounds of one value in a template.
const (
	maxString = 8 << 20
	maxNodes  = 1 << 20
	maxNest   = 200
	maxList   = 20_000 // for functions that compare each with each
)

// guard stops templates: when their time is up, and when they build something
// that would not fit into memory. It is not safe for concurrent use.
type guard struct {
	ctx     context.Context //nolint:containedctx // lives as long as one render
	stopped error
	chance  *chance
	// cluster is called when a template sees what differs between clusters.
	cluster func()
}

// stop ends the execution. text/template turns the panic of a function into
// the template's error.
func (g *guard) stop(format string, args ...any) {
	if g.stopped == nil {
		g.stopped = rutter.Errorf(rutter.CodeInvalid, format, args...)
	}
	panic(g.stopped)
}

func (g *guard) tick() string {
	if g.ctx.Err() != nil {
		g.stop("stopped: %w", context.Cause(g.ctx))
	}
	return ""
}

// seesCluster notes that the output depends on the target cluster.
func (g *guard) seesCluster() string {
	if g.cluster != nil {
		g.cluster()
	}
	return g.tick()
}

// print passes on what an action is about to print, unless it is endless. It
// takes a reflect.Value so that the value stays addressable: how a value prints
// depends on that.
func (g *guard) print(v reflect.Value) reflect.Value {
	g.tick()
	g.weighValue(v)
	return v
}

// wrap puts the guard around functions; their types stay as they are.
func (g *guard) wrap(funcs template.FuncMap) template.FuncMap {
	out := make(template.FuncMap, len(funcs))
	for name, fn := range funcs {
		if isHarmless(name) {
			out[name] = fn
			continue
		}
		v := reflect.ValueOf(fn)
		before, byChance := prechecks()[name], isChance(name)
		run := v.Call
		if v.Type().IsVariadic() {
			run = v.CallSlice
		}
		out[name] = reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
			g.tick()
			if before != nil {
				before(g, flat(v.Type(), args))
			}
			res := run(args)
			if byChance {
				res = g.chance.noted(name, res, func() []reflect.Value { return run(args) })
			}
			g.result(name, res[0])
			return res
		}).Interface()
	}
	return out
}

// isHarmless names functions that charts call all the time and that cannot make
// much of little: what goes round and round is stopped elsewhere.
func isHarmless(name string) bool {
	switch name {
	case "default", "empty", "coalesce", "ternary", "required", "trunc", "trim", "trimAll", "trimSuffix", "trimPrefix", "contains", "hasPrefix", "hasSuffix",
		"lower", "upper", "int", "int64", "float64", "atoi", "add", "add1", "sub", "mul", "div", "mod", "get", "set", "unset", "hasKey", "list", "dict",
		"kindIs", "kindOf", "typeIs", "typeOf", "first", "last", "sha256sum", "semverCompare", "base", "dir":
		return true
	}
	return false
}

// flat returns the arguments of a call, those of a variadic function one by one.
func flat(t reflect.Type, args []reflect.Value) []any {
	var out []any
	for i, a := range args {
		if t.IsVariadic() && i == len(args)-1 {
			for j := range a.Len() {
				out = append(out, a.Index(j).Interface())
			}
			continue
		}
		out = append(out, a.Interface())
	}
	return out
}

// result refuses values that are too large to go on with.
func (g *guard) result(name string, v reflect.Value) {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() > maxString {
			g.stop("%s makes a text of more than %d MiB", name, maxString>>20)
		}
	case reflect.Slice, reflect.Map:
		if v.Len() > maxNodes {
			g.stop("%s makes a collection of more than %d items", name, maxNodes)
		}
	}
}

// weighTree refuses a value that would be endless or too large when it is
// written out: one that holds itself, or holds the same parts over and over.
func (g *guard) weighTree(v any) { g.weighValue(reflect.ValueOf(v)) }

func (g *guard) weighValue(v reflect.Value) {
	nodes, bytes := maxNodes, 4*maxString
	if !g.weigh(v, maxNest, &nodes, &bytes) {
		g.stop("a value that holds itself, or is too large, is written")
	}
}

func (g *guard) weigh(v reflect.Value, depth int, nodes, bytes *int) bool {
	*nodes--
	if depth == 0 || *nodes < 0 || *bytes < 0 {
		return false
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.Type() == reflect.TypeFor[*common.Capabilities]() {
			g.seesCluster()
		}
		return v.IsNil() || g.weigh(v.Elem(), depth-1, nodes, bytes)
	case reflect.String:
		*bytes -= v.Len()
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !g.weigh(it.Key(), depth-1, nodes, bytes) || !g.weigh(it.Value(), depth-1, nodes, bytes) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			*bytes -= v.Len()
			return *bytes >= 0
		}
		for i := range v.Len() {
			if !g.weigh(v.Index(i), depth-1, nodes, bytes) {
				return false
			}
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !g.weigh(field, depth-1, nodes, bytes) {
				return false
			}
		}
	}
	return true
}

// meter counts what all templates of a render write.
type meter struct {
	guard *guard
	left  int64
}

type meteredWriter struct {
	strings.Builder

	meter *meter
}

func (m *meter) writer() *meteredWriter { return &meteredWriter{meter: m} }

// Write implements io.Writer.
func (w *meteredWriter) Write(p []byte) (int, error) {
	w.meter.left -= int64(len(p))
	if w.meter.left < 0 && w.meter.guard.stopped == nil {
		w.meter.guard.stopped = rutter.Errorf(rutter.CodeInvalid, "stopped: the templates write too much")
	}
	if err := w.meter.guard.stopped; err != nil {
		return 0, err
	}
	n, err := w.Builder.Write(p)
	if err != nil {
		return n, fmt.Errorf("write: %w", err)
	}
	return n, nil
}
