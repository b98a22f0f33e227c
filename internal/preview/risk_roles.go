package preview

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbacGroup = "rbac.authorization.k8s.io"

// right is one thing that a role allows.
type right struct{ verb, group, resource, name, url string }

// rightsOf takes the rules of a role apart.
func rightsOf(role *unstructured.Unstructured) []right {
	if role == nil {
		return nil
	}
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	var out []right
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		for _, verb := range texts(rule["verbs"]) {
			for _, url := range texts(rule["nonResourceURLs"]) {
				out = append(out, right{verb: verb, url: url})
			}
			for _, group := range texts(rule["apiGroups"]) {
				for _, resource := range texts(rule["resources"]) {
					names := texts(rule["resourceNames"])
					if len(names) == 0 {
						names = []string{"*"}
					}
					for _, name := range names {
						out = append(out, right{verb: verb, group: group, resource: resource, name: name})
					}
				}
			}
		}
	}
	return out
}

func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// covers reports whether a right includes another.
func (r right) covers(o right) bool {
	wild := func(a, b string) bool { return a == b || a == "*" }
	if o.url != "" || r.url != "" {
		prefix, star := strings.CutSuffix(r.url, "*")
		return wild(r.verb, o.verb) && r.url != "" && o.url != "" && (r.url == o.url || star && strings.HasPrefix(o.url, prefix))
	}
	return wild(r.verb, o.verb) && wild(r.group, o.group) && wild(r.resource, o.resource) && wild(r.name, o.name)
}

func (r right) String() string {
	if r.url != "" {
		return r.verb + " " + r.url
	}
	s := r.verb + " " + r.resource
	if r.group != "" {
		s += "." + r.group
	}
	if r.name != "*" {
		s += "/" + r.name
	}
	return s
}

// maxRights is how many rights a message names.
const maxRights = 5

// widened names what a role allows that it did not; a new role counts only for
// what reaches everywhere, since it is nobody's yet.
func widened(before, after *unstructured.Unstructured) string {
	had := rightsOf(before)
	var more []string
	for _, r := range rightsOf(after) {
		everything := r.verb == "*" || r.resource == "*" || r.url == "*"
		if before == nil && !everything {
			continue
		}
		if !slices.ContainsFunc(had, func(h right) bool { return h.covers(r) }) {
			more = append(more, r.String())
		}
	}
	slices.Sort(more)
	more = slices.Compact(more)
	if len(more) > maxRights {
		more = append(more[:maxRights], "…")
	}
	return strings.Join(more, ", ")
}

func roleOf(binding *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	if kind != "ClusterRole" {
		return ""
	}
	return name
}

// newSubjects names whom a binding binds that it did not bind to this role.
func newSubjects(before, after *unstructured.Unstructured) string {
	had := []string{}
	if before != nil && roleOf(before) == roleOf(after) {
		had = subjectsOf(before)
	}
	var out []string
	for _, s := range subjectsOf(after) {
		if !slices.Contains(had, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

func subjectsOf(binding *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	var out []string
	for _, item := range list {
		s, _ := item.(map[string]any)
		kind, _ := s["kind"].(string)
		namespace, _ := s["namespace"].(string)
		name, _ := s["name"].(string)
		if namespace != "" {
			name = namespace + "/" + name
		}
		out = append(out, kind+" "+name)
	}
	return out
}
