package compare

import (
	"strings"
	"time"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/schema"
)

// known is a field of custom resources that holds a built-in type.
type known struct {
	group, kind pattern
	path        []string
	typ         string
}

// Types that are no structures.
const (
	typeQuantity = "Quantity"
	typeDuration = "Duration"
)

// CheckKnown says what is wrong with a known field.
func CheckKnown(f rutter.KnownField) error {
	_, err := newKnown(f)
	return err
}

func newKnown(f rutter.KnownField) (k known, err error) {
	if k.group, err = newPattern(f.Group); err != nil {
		return k, err
	}
	if k.kind, err = newPattern(f.Kind); err != nil {
		return k, err
	}
	if f.Field == "" {
		return k, rutter.Errorf(rutter.CodeInvalid, "field is missing")
	}
	k.path = strings.Split(f.Field, ".")
	switch name, core := strings.CutPrefix(f.Type, "core/v1/"); {
	case f.Type == "core/Quantity" || f.Type == "core/v1/Quantity":
		k.typ = typeQuantity
	case f.Type == "meta/v1/Duration":
		k.typ = typeDuration
	case core && name != "":
		k.typ = "io.k8s.api.core.v1." + name
	default:
		return k, rutter.Errorf(rutter.CodeInvalid, "field %s: type %q is not known: use core/v1/<Type>, core/Quantity or meta/v1/Duration", f.Field, f.Type)
	}
	return k, nil
}

// rolloutPod is known without being told, as in the reference.
func rolloutPod() known {
	return known{
		group: pattern{text: "argoproj.io"}, kind: pattern{text: "Rollout"},
		path: []string{"spec", "template", "spec"}, typ: "io.k8s.api.core.v1.PodSpec",
	}
}

// knownFields are those of an object.
func (r *Rules) knownFields(ref rutter.Ref) (out []known) {
	if ref.Group == "argoproj.io" {
		out = append(out, rolloutPod())
	}
	if r == nil {
		return out
	}
	for _, k := range r.known {
		if k.group.matches(ref.Group) && k.kind.matches(ref.Kind) {
			out = append(out, k)
		}
	}
	return out
}

// inKnown returns the built-in type that the current place has by a known
// field, "" when there is none. Only what a known field holds, and not the
// field itself, may be empty.
func (w *localWalk) inKnown() (t *schema.Type, name string) {
	for _, k := range w.known {
		i, ok := w.within(k.path)
		if !ok {
			continue
		}
		if k.typ == typeQuantity || k.typ == typeDuration {
			if i == len(w.at) {
				return nil, k.typ
			}
			continue
		}
		t := w.builtins.Named(k.typ)
		for _, s := range w.at[i:] {
			if s.kind == stepField {
				t = t.Field(s.name)
			} else {
				t = t.Item()
			}
		}
		if t != nil {
			return t, k.typ
		}
	}
	return nil, ""
}

// within reports whether the current place is at a path of names, passing
// through lists, or below it, and how many steps lead there.
func (w *localWalk) within(names []string) (steps int, ok bool) {
	i := 0
	for ; i < len(w.at) && len(names) > 0; i++ {
		if w.at[i].kind != stepField {
			continue
		}
		if w.at[i].name != names[0] {
			return 0, false
		}
		names = names[1:]
	}
	for i < len(w.at) && w.at[i].kind != stepField {
		i++
	}
	return i, len(names) == 0
}

// keptOut reports whether the built-in type at the current place may have left
// an empty value out.
func (w *localWalk) keptOut() bool {
	if len(w.known) == 0 {
		return false
	}
	t, _ := w.inKnown()
	return t != nil
}

// sameKnown compares leaves by the type that a known field gives them.
func (w *localWalk) sameKnown(d, l any) bool {
	if len(w.known) == 0 {
		return false
	}
	switch t, name := w.inKnown(); {
	case name == typeQuantity || t != nil && t.Kind == schema.Quantity:
		return sameQuantity(d, l)
	case name == typeDuration:
		return sameDuration(d, l)
	}
	return false
}

func sameDuration(a, b any) bool {
	x, isText := a.(string)
	y, alsoText := b.(string)
	if !isText || !alsoText {
		return false
	}
	p, err := time.ParseDuration(x)
	if err != nil {
		return false
	}
	q, err := time.ParseDuration(y)
	return err == nil && p == q
}
