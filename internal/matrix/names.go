package matrix

import (
	"regexp"
	"strings"

	"github.com/rutterhq/rutter"
)

// What stands for names that are another on every cluster by their nature.
const (
	standsForApp       = "{app}"
	standsForNamespace = "{namespace}"
	standsForHash      = "{hash}"
)

// hashed matches the names that kustomize gives what it generates: another content has
// another name.
var hashed = regexp.MustCompile(`^(.+-)[2456789bcdfghkmt]{10}$`)

// names takes an Application's own name, which charts put in front of the names of
// their objects, and its namespace for the same on all clusters.
type names struct{ app, namespace string }

// namesOf are the names of a column; an Application that is called the same
// everywhere needs no other name.
func namesOf(c *Column, columns []Column) names {
	n := names{namespace: c.Namespace}
	for _, other := range columns {
		if other.Problem == "" && other.Release != c.Release {
			n.app = c.Release
		}
	}
	return n
}

// plain is the key of an object that is known by its own name.
func (n names) plain(ref rutter.Ref) objectKey {
	k := objectKey{ref.Group, ref.Kind, ref.Namespace, ref.Name}
	if ref.Namespace == n.namespace {
		k.namespace = ""
	}
	return k
}

// key is what makes objects of several clusters the same one. An object in the
// destination's namespace is the same wherever that is.
func (n names) key(ref rutter.Ref) objectKey {
	k := n.plain(ref)
	if k.name = n.in(ref.Name); ref.Group == "" && (ref.Kind == "ConfigMap" || ref.Kind == "Secret") {
		k.name = unhashed(k.name)
	}
	if ref.Kind == "Namespace" && ref.Group == "" && ref.Name == n.namespace {
		k.name = standsForNamespace
	}
	return k
}

// unhashed is a name without the hash of a content.
func unhashed(name string) string { return hashed.ReplaceAllString(name, "${1}"+standsForHash) }

// in replaces the Application's name where it stands as a word.
func (n names) in(text string) string {
	if n.app == "" || !strings.Contains(text, n.app) {
		return text
	}
	var b strings.Builder
	for rest, before := text, byte(0); ; {
		i := strings.Index(rest, n.app)
		if i < 0 {
			b.WriteString(rest)
			return b.String()
		}
		if i > 0 {
			before = rest[i-1]
		}
		end := i + len(n.app)
		b.WriteString(rest[:i])
		if letter(before) || end < len(rest) && letter(rest[end]) {
			b.WriteString(n.app)
		} else {
			b.WriteString(standsForApp)
		}
		before, rest = n.app[len(n.app)-1], rest[end:]
	}
}

func letter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// object replaces them in the fields that name objects, in place. Other fields are
// left: that one says prod and the other dev is a difference.
func (n names) object(name string, v any, labels bool) any {
	switch x := v.(type) {
	case map[string]any:
		within := labels || name == "labels" || name == "matchLabels" || name == "selector"
		for k, e := range x {
			x[k] = n.object(k, e, within)
		}
	case []any:
		for i, e := range x {
			x[i] = n.object(name, e, labels)
		}
	case string:
		switch {
		case strings.EqualFold(name, "namespace") && x == n.namespace && x != "":
			return standsForNamespace
		case labels:
			return n.in(x)
		case name == "name" || strings.HasSuffix(name, "Name"):
			return unhashed(n.in(x))
		}
	}
	return v
}
