package preview

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// detail is how much of a plan a comment shows.
type detail struct {
	// groups and fields bound what is shown of each kind, names the members of a
	// group that are named.
	groups, fields, names int
}

// details from all to nothing but numbers.
var details = []detail{{1000, 200, 1000}, {200, 50, 50}, {60, 20, 20}, {30, 8, 8}, {15, 4, 3}, {6, 2, 0}, {3, 0, 0}, {0, 0, 0}}

// DefaultMarkdownBytes is below what GitHub and GitLab take as a comment.
const DefaultMarkdownBytes = 60_000

// Markdown is the plan as a comment of at most maxBytes bytes. What does not fit
// is folded into numbers and never cut; the summary and the digest are always
// whole, even where that takes more.
func Markdown(p Plan, maxBytes int) string {
	if maxBytes <= 0 {
		maxBytes = DefaultMarkdownBytes
	}
	out := ""
	for _, d := range details {
		m := &markdown{d: d}
		m.plan(p)
		if out = m.b.String(); len(out) <= maxBytes {
			break
		}
	}
	return out
}

type markdown struct {
	b strings.Builder
	d detail
}

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

func (m *markdown) plan(p Plan) {
	m.line("### Fleet plan: %s", code(p.sides()))
	m.line("")
	if p.Empty() {
		m.line("%s", p.nothing())
		m.line("")
	} else {
		m.summary(p.Summary)
	}
	m.warnings(p)
	all := p.declarations()
	m.section("Projects and sets", len(all), false, func(i int) {
		m.line("- `%s` %s", all[i].verb.sign(), code(all[i].sentence))
		m.fields(all[i].fields)
	})
	for _, v := range verbs() {
		groups := p.ofVerb(v)
		m.section(v.title(), len(groups), v == Delete, func(i int) { m.group(groups[i]) })
	}
	if len(p.Drift) > 0 {
		m.line("<details><summary>Not as declared on the clusters now (%s)</summary>", plural(len(p.Drift), "object"))
		m.line("")
		m.items(len(p.Drift), func(i int) { m.drifted(p.Drift[i]) })
		m.line("")
		m.line("</details>")
		m.line("")
	}
	for _, n := range p.Notes {
		m.line("> %s", html.EscapeString(oneLine(n)))
		m.line("")
	}
	m.line("<sub>digest %s</sub>", code(p.Digest))
}

func (m *markdown) summary(s Summary) {
	m.line("| | deleted | left | moved | changed | added |")
	m.line("|---|---|---|---|---|---|")
	for _, row := range []struct {
		name string
		c    Counts
	}{{"projects", s.Projects}, {"sets", s.Sets}, {"applications", s.Applications}, {"objects", s.Objects}} {
		if row.c.total() == 0 {
			continue
		}
		deleted := strconv.Itoa(row.c.Delete)
		if row.c.Delete > 0 {
			deleted = "**" + deleted + "**"
		}
		m.line("| %s | %s | %d | %d | %d | %d |", row.name, deleted, row.c.Leave, row.c.Move, row.c.Change, row.c.Add)
	}
	m.line("")
}

// warnings are never behind a fold: they are why somebody reads this.
func (m *markdown) warnings(p Plan) {
	m.list(":no_entry: Held back by the deletion budget", len(p.Held), func(i int) {
		h := p.Held[i]
		m.line("- set %s: %s: %s", code(h.Set), html.EscapeString(oneLine(h.Reason)), code(some(h.Applications, len(h.Applications), m.d.names)))
		for _, r := range h.risksOf(m.d.groups) {
			m.line("  - :warning: %s", code(r))
		}
		if h.Digest != "" {
			m.line("  %s", html.EscapeString(p.approve()))
		}
	})
	refused, _ := p.refusals()
	m.list(":no_entry: Refused by the rules of projects", len(refused), func(i int) {
		r := refused[i]
		m.line("- %s: %s", code(where(r.Application, r.Object)), code(r.Reason))
	})
	m.list(":warning: Look at this before you merge", len(p.Risks), func(i int) {
		r := p.Risks[i]
		m.line("- %s (application %s on %s)", code(r.Message), code(r.Application), code(r.Cluster))
	})
	news, _ := p.news()
	m.list(":x: Errors", len(news), func(i int) { m.line("- %s: %s", code(news[i].Where), code(news[i].Message)) })
	if before := p.before(); before != "" {
		old := p.old()
		m.line("<details><summary>%s</summary>", html.EscapeString(before))
		m.line("")
		m.items(len(old), func(i int) { m.line("- %s", code(old[i])) })
		m.line("")
		m.line("</details>")
		m.line("")
	}
}

func (m *markdown) list(title string, n int, item func(int)) {
	if n == 0 {
		return
	}
	m.line("**%s** (%d)", title, n)
	m.line("")
	m.items(n, item)
	m.line("")
}

func (m *markdown) section(title string, n int, open bool, item func(int)) {
	if n == 0 {
		return
	}
	attribute := ""
	if open {
		attribute = " open"
	}
	m.line("<details%s><summary>%s (%s)</summary>", attribute, html.EscapeString(title), plural(n, "kind")+" of change")
	m.line("")
	m.items(n, item)
	m.line("")
	m.line("</details>")
	m.line("")
}

func (m *markdown) items(n int, item func(int)) {
	for i := range min(n, m.d.groups) {
		item(i)
	}
	if rest := n - m.d.groups; rest > 0 {
		m.line("- and %d more", rest)
	}
}

func (m *markdown) group(g Group) {
	head := fmt.Sprintf("- `%s` %s", g.Verb.sign(), code(g.headline()))
	if names := g.members(m.d.names); names != "" && m.d.names > 0 {
		head += ": " + code(names)
	}
	m.line("%s", head)
	if g.Reason != "" {
		m.line("  %s", html.EscapeString(oneLine(g.Reason)))
	}
	m.fields(g.Fields)
}

func (m *markdown) fields(fields []Field) {
	for i, f := range fields {
		if i == m.d.fields {
			m.line("  - %s", "and "+plural(len(fields)-i, "field")+" more")
			return
		}
		m.line("  - %s %s", code(f.Path), code(f.change()))
	}
}

func (m *markdown) drifted(d Drift) {
	m.line("- %s", code(d.sentence()))
	for i, f := range d.Fields {
		if i == m.d.fields {
			m.line("  - %s", "and "+plural(len(d.Fields)-i, "field")+" more")
			return
		}
		m.line("  - %s %s", code(f.Path), code(f.words()))
	}
}

// code is a text as inline code, whatever is in it: nothing in a repository
// becomes a heading, a link or a mention.
func code(s string) string {
	s = oneLine(s)
	fence := "`"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	if len(fence) == 1 {
		return "`" + s + "`"
	}
	return fence + " " + s + " " + fence
}

func oneLine(s string) string {
	return strings.Map(printable, strings.NewReplacer("\r", " ", "\n", " ").Replace(s))
}
