package preview

import (
	"fmt"
	"strconv"
	"strings"
)

// sign marks a line by its verb.
func (v Verb) sign() string {
	switch v {
	case Delete:
		return "-"
	case Leave:
		return "."
	case Move:
		return ">"
	case Add:
		return "+"
	case Change:
	}
	return "~"
}

// title heads the changes of a verb.
func (v Verb) title() string {
	switch v {
	case Delete:
		return "Deleted"
	case Leave:
		return "No longer declared, and left in place"
	case Move:
		return "Handed over"
	case Add:
		return "Added"
	case Change:
	}
	return "Changed"
}

// words are counts as people read them: "2 deleted, 1 moved".
func (c Counts) words() string {
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{{c.Delete, "deleted"}, {c.Leave, "left in place"}, {c.Move, "moved"}, {c.Change, "changed"}, {c.Add, "added"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.word))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// some names the first of a list and counts the rest.
func some(list []string, total, most int) string {
	if len(list) > most {
		list = list[:most]
	}
	text := strings.Join(list, ", ")
	if rest := total - len(list); rest > 0 {
		if text == "" {
			return strconv.Itoa(rest)
		}
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// headline says of a group what and where: "50 Deployment.apps in 50
// applications on 3 clusters".
func (g Group) headline() string {
	if g.Of == ofUnits {
		text := plural(g.Count, "application")
		if g.Count == 1 {
			text = "application " + g.Names[0]
		}
		return text + on(g.Clusters)
	}
	if g.Count == 1 {
		return g.Of + " " + g.Names[0] + " of application " + g.Applications[0] + on(g.Clusters)
	}
	in := " of application " + g.Applications[0]
	if len(g.Applications) > 1 {
		in = " in " + plural(len(g.Applications), "application")
	}
	return fmt.Sprintf("%d %s", g.Count, g.Of) + in + on(g.Clusters)
}

func on(clusters []string) string {
	if len(clusters) == 1 {
		return " on " + clusters[0]
	}
	return " on " + plural(len(clusters), "cluster")
}

// members names who is in a group, unless its headline does.
func (g Group) members(most int) string {
	if g.Count == 1 {
		return ""
	}
	if g.Of != ofUnits && len(g.Applications) == 1 {
		return some(g.Names, g.Count, most)
	}
	return some(g.Applications, len(g.Applications), most)
}

// change shows both values of a field.
func (f Field) change() string {
	switch {
	case f.Old == "":
		return "+ " + f.New
	case f.New == "":
		return "- " + f.Old
	}
	return f.Old + " → " + f.New
}

func (s SetChange) sentence() string {
	switch s.Verb {
	case Delete:
		return fmt.Sprintf("set %s goes, with %s", s.Name, plural(s.Before, "application"))
	case Add:
		return fmt.Sprintf("set %s comes, with %s", s.Name, plural(s.After, "application"))
	case Leave, Move, Change:
	}
	if s.Before == s.After {
		return fmt.Sprintf("set %s changes, and has %s", s.Name, plural(s.After, "application"))
	}
	return fmt.Sprintf("set %s changes, from %d to %s", s.Name, s.Before, plural(s.After, "application"))
}

func (p ProjectChange) sentence() string {
	switch p.Verb {
	case Delete:
		return "project " + p.Name + " goes"
	case Add:
		return "project " + p.Name + " comes"
	case Leave, Move, Change:
	}
	return "project " + p.Name + " changes"
}

// declaration is what becomes of a project or a set.
type declaration struct {
	verb     Verb
	sentence string
	fields   []Field
}

// declarations are the projects and the sets that change.
func (p Plan) declarations() []declaration {
	var out []declaration
	for _, c := range p.Projects {
		out = append(out, declaration{c.Verb, c.sentence(), c.Fields})
	}
	for _, c := range p.Sets {
		out = append(out, declaration{c.Verb, c.sentence(), c.Fields})
	}
	return out
}

// sides names what is compared.
func (p Plan) sides() string { return p.Base.text() + " → " + p.Head.text() }

func (r Revision) text() string {
	const n = 7
	if len(r.Commit) != 40 || r.Commit == strings.Repeat("0", 40) || strings.HasPrefix(r.Commit, r.Name) {
		return r.Name
	}
	return r.Name + " (" + r.Commit[:n] + ")"
}

// ofVerb are the groups of one verb.
func (p Plan) ofVerb(v Verb) []Group {
	var out []Group
	for _, g := range p.Groups {
		if g.Verb == v {
			out = append(out, g)
		}
	}
	return out
}

// verbs in the order in which they are shown.
func verbs() []Verb { return []Verb{Delete, Leave, Move, Change, Add} }

// refusals are those that the change brings, and how many were there before.
func (p Plan) refusals() (news []Refusal, known int) {
	for _, r := range p.Refused {
		if r.Known {
			known++
		} else {
			news = append(news, r)
		}
	}
	return news, known
}

// before counts what was wrong in the base and still is; empty when nothing was.
func (p Plan) before() string {
	_, errors := p.news()
	_, refusals := p.refusals()
	var parts []string
	if errors > 0 {
		parts = append(parts, plural(errors, "error"))
	}
	if refusals > 0 {
		parts = append(parts, plural(refusals, "refusal"))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " and ") + " of the base still there"
}

// nothing says that nothing changes, as far as can be said.
func (p Plan) nothing() string {
	if len(p.Problems) > 0 {
		return "Nothing changes, as far as it could be looked at."
	}
	return "Nothing changes."
}

// old names what was wrong in the base and still is, one line each.
func (p Plan) old() []string {
	var out []string
	for _, e := range p.Problems {
		if e.Known {
			out = append(out, e.Where+": "+e.Message)
		}
	}
	for _, r := range p.Refused {
		if r.Known {
			out = append(out, where(r.Application, r.Object)+": "+r.Reason)
		}
	}
	return out
}

// news are the problems that the change brings, and how many were there before.
func (p Plan) news() (news []Problem, known int) {
	for _, e := range p.Problems {
		if e.Known {
			known++
		} else {
			news = append(news, e)
		}
	}
	return news, known
}

// risksOf names what is risky of what is held back, one line each: the first few.
func (h Held) risksOf(most int) []string {
	var out []string
	for i, r := range h.Risks {
		if i == most {
			return append(out, fmt.Sprintf("if they go: %s more", plural(len(h.Risks)-i, "risk")))
		}
		out = append(out, fmt.Sprintf("if they go: %s (application %s on %s)", r.Message, r.Application, r.Cluster))
	}
	return out
}

// approve says how what is held back is let go.
func (p Plan) approve() string {
	return "To let exactly these go: this plan again, with --live --approve " + p.Digest
}
