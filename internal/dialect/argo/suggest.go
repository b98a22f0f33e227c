package argo

import (
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// pathPart is a field, or an index, of a path such as spec.sources[0].helm.
var pathPart = regexp.MustCompile(`[^.\[\]]+|\[\d+\]`)

// suggest says how an unknown field may have been meant: in the one object beside
// it that has such a field, as a generator has its template; under an object that
// holds it, as samples often have one level too many; or under a name that is much
// like it. Empty when there is nothing to suggest.
func suggest(obj any, path string) string {
	parts := pathPart.FindAllString(path, -1)
	if len(parts) < 2 {
		return ""
	}
	name := parts[len(parts)-1]
	types := []reflect.Type{reflect.TypeOf(obj)}
	for _, p := range parts[:len(parts)-1] {
		types = append(types, below(types[len(types)-1], p))
	}
	if beside := besideIt(reflect.ValueOf(obj), parts); beside != "" {
		return "write it as " + joinParts(append(parts[:len(parts)-1:len(parts)-1], beside, name))
	}
	for i := len(types) - 2; i > 0; i-- {
		if t := types[i]; t != nil && fieldsOf(t)[name] != nil {
			return "write it as " + joinParts(append(parts[:i:i], name))
		}
	}
	parent := types[len(types)-1]
	if parent == nil {
		return ""
	}
	for known := range fieldsOf(parent) {
		if strings.EqualFold(known, name) || strings.EqualFold(known, name+"s") || strings.EqualFold(known+"s", name) {
			return "write it as " + joinParts(append(parts[:len(parts)-1:len(parts)-1], known))
		}
	}
	return ""
}

// besideIt names the only object that is written beside an unknown field and has a
// field of that name.
func besideIt(v reflect.Value, parts []string) string {
	for _, part := range parts[:len(parts)-1] {
		v = into(v, part)
	}
	v = pointed(v)
	if !v.IsValid() || v.Kind() != reflect.Struct {
		return ""
	}
	found := ""
	for name, t := range fieldsOf(v.Type()) {
		if x := into(v, name); fieldsOf(t)[parts[len(parts)-1]] == nil || !x.IsValid() || x.IsZero() {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// into is the value of a field, or of an item of a list; not valid where there is none.
func into(v reflect.Value, part string) reflect.Value {
	v = pointed(v)
	switch {
	case !v.IsValid():
	case v.Kind() == reflect.Slice && strings.HasPrefix(part, "["):
		if i, err := strconv.Atoi(strings.Trim(part, "[]")); err == nil && i < v.Len() {
			return v.Index(i)
		}
	case v.Kind() == reflect.Struct:
		for f, x := range v.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && (name == "" || strings.Contains(options, "inline")) {
				if x := into(x, part); x.IsValid() {
					return x
				}
			} else if name == part {
				return x
			}
		}
	}
	return reflect.Value{}
}

func pointed(v reflect.Value) reflect.Value {
	for v.IsValid() && v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

func joinParts(parts []string) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 && !strings.HasPrefix(p, "[") {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

// below is the type of a field, or of the items of a list.
func below(t reflect.Type, part string) reflect.Type {
	t = bare(t)
	if t == nil {
		return nil
	}
	if strings.HasPrefix(part, "[") {
		if t.Kind() == reflect.Slice {
			return t.Elem()
		}
		return nil
	}
	if t.Kind() == reflect.Map {
		return t.Elem()
	}
	return fieldsOf(t)[part]
}

func bare(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// fieldsOf are the fields of a struct by their JSON names, those of embedded
// structs among them.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	t = bare(t)
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && (name == "" || strings.Contains(options, "inline")) {
			maps.Copy(out, fieldsOf(f.Type))
			continue
		}
		if name != "" && name != "-" {
			out[name] = f.Type
		}
	}
	return out
}
