package preview

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// maxNames is how many members a group names.
const maxNames = 50

// member is one change that may be like others.
type member struct {
	verb                 Verb
	of, name             string
	application, cluster string
	namespace            string
	reason               string
	fields               []Field
}

func groupUnits(changes []UnitChange) []Group {
	members := make([]member, 0, len(changes))
	for _, c := range changes {
		if c.Verb == Change && len(c.Fields) == 0 {
			continue // its objects say what changes
		}
		reason := c.Reason
		if c.Verb == Move {
			reason = moved(c)
		}
		members = append(members, member{verb: c.Verb, of: ofUnits, name: c.Name, application: c.Name, cluster: c.Cluster, reason: reason, fields: c.Fields})
	}
	return fold(members)
}

// moved says from where an Application comes.
func moved(c UnitChange) string {
	switch {
	case c.From != c.Name && c.FromSet != "":
		return "it has another name and another set; its objects stay"
	case c.From != c.Name:
		return "it has another name; its objects stay"
	case c.Set == "":
		return "it leaves set " + c.FromSet + "; its objects stay"
	case c.FromSet == "":
		return "set " + c.Set + " takes it over; its objects stay"
	}
	return "it goes from set " + c.FromSet + " to set " + c.Set + "; its objects stay"
}

func groupObjects(changes []ObjectChange) []Group {
	members := make([]member, 0, len(changes))
	for _, c := range changes {
		of := c.Kind
		if c.Group != "" {
			of += "." + c.Group
		}
		members = append(members, member{verb: c.Verb, of: hookPrefix(c.Hook) + of, name: c.Name, application: c.Application, cluster: c.Cluster,
			namespace: c.Namespace, reason: c.Reason, fields: c.Fields})
	}
	return fold(members)
}

// fold puts equal changes together; the groups keep the order of their verbs,
// and the largest of a verb comes first.
func fold(members []member) []Group {
	byKey := map[string]*Group{}
	seen := map[string]map[string]bool{}
	var order []*Group
	for _, m := range members {
		fields := m.normal()
		text, err := json.Marshal([]any{m.verb, m.of, m.reason, fields})
		if err != nil {
			continue // strings always encode
		}
		key := string(text)
		g := byKey[key]
		if g == nil {
			g = &Group{Verb: m.verb, Of: m.of, Fields: fields, Reason: m.reason, Applications: []string{}, Clusters: []string{}}
			byKey[key], seen[key] = g, map[string]bool{}
			order = append(order, g)
		}
		switch g.Count {
		case 0:
			g.Fields = m.fields // alone, it is shown as it is
		case 1:
			g.Fields = fields
		}
		g.Count++
		if len(g.Names) < maxNames {
			g.Names = append(g.Names, m.name)
		}
		g.Applications = once(seen[key], "a/", g.Applications, m.application)
		g.Clusters = once(seen[key], "c/", g.Clusters, m.cluster)
	}
	out := make([]Group, 0, len(order))
	for _, g := range order {
		slices.Sort(g.Applications)
		slices.Sort(g.Clusters)
		out = append(out, *g)
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(rank(a.Verb), rank(b.Verb)), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Of, b.Of))
	})
	return out
}

func once(seen map[string]bool, prefix string, list []string, v string) []string {
	if seen[prefix+v] {
		return list
	}
	seen[prefix+v] = true
	return append(list, v)
}

// normal are the fields with what is the member's own taken out, so that equal
// changes of different Applications look equal.
func (m member) normal() []Field {
	if len(m.fields) == 0 {
		return nil
	}
	own := []struct{ text, stands string }{{m.name, "<name>"}, {m.application, "<application>"}, {m.namespace, "<namespace>"}, {m.cluster, "<cluster>"}}
	slices.SortStableFunc(own, func(a, b struct{ text, stands string }) int { return cmp.Compare(len(b.text), len(a.text)) })
	out := make([]Field, len(m.fields))
	for i, f := range m.fields {
		for _, o := range own {
			f.Path, f.Old, f.New = word(f.Path, o.text, o.stands), word(f.Old, o.text, o.stands), word(f.New, o.text, o.stands)
		}
		out[i] = f
	}
	return out
}

// minOwn is the length below which a name is too likely to be a word like any other.
const minOwn = 3

// word replaces a name where it stands as a word of its own.
func word(in, name, stands string) string {
	if len(name) < minOwn || !strings.Contains(in, name) {
		return in
	}
	var b strings.Builder
	written := 0
	for from := 0; ; {
		at := strings.Index(in[from:], name)
		if at < 0 {
			b.WriteString(in[written:])
			return b.String()
		}
		at += from
		end := at + len(name)
		if at > 0 && alnum(in[at-1]) || end < len(in) && alnum(in[end]) {
			from = at + 1
			continue
		}
		b.WriteString(in[written:at] + stands)
		written, from = end, end
	}
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
