package preview

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TextOptions bound a text. Zero values mean the defaults.
type TextOptions struct {
	// Width is that of the terminal; default 120.
	Width int
	// Groups is how many groups of a kind are shown; default 8, negative all.
	Groups int
}

// shownOld is how many errors of the base a text shows.
const shownOld = 3

// shownFields is how many fields of a group a text shows.
const shownFields = 6

// Text is the plan for a terminal: deletions first, equal changes folded.
func Text(p Plan, o TextOptions) string {
	if o.Width <= 0 {
		o.Width = 120
	}
	if o.Groups == 0 {
		o.Groups = 8
	}
	t := &texter{o: o}
	t.line("%s", p.sides())
	t.line("sets: %s; applications: %s (of %d); objects: %s%s", p.Summary.Sets.words(), p.Summary.Applications.words(), p.Summary.Total,
		p.Summary.Objects.words(), clustersOf(p))
	t.warnings(p)
	if all := p.declarations(); len(all) > 0 {
		t.head("Projects and sets")
		for _, d := range bounded(t, all) {
			t.line("  %s %s", d.verb.sign(), d.sentence)
			t.fields(d.fields)
		}
	}
	for _, v := range verbs() {
		groups := p.ofVerb(v)
		if len(groups) == 0 {
			continue
		}
		t.head("%s", v.title())
		for _, g := range bounded(t, groups) {
			t.group(g)
		}
	}
	if p.Empty() {
		t.line("")
		t.line("%s", p.nothing())
	}
	if len(p.Drift) > 0 {
		t.head("Not as declared on the clusters now")
		for _, d := range bounded(t, p.Drift) {
			t.line("  * %s", d.sentence())
			t.drifted(d.Fields)
		}
	}
	for _, n := range p.Notes {
		t.line("")
		t.warn("%s", n)
	}
	t.line("")
	t.line("digest %s", p.Digest)
	return t.b.String()
}

type texter struct {
	b strings.Builder
	o TextOptions
}

// line writes one line, no wider than the terminal.
func (t *texter) line(format string, args ...any) {
	s := strings.Map(printable, fmt.Sprintf(format, args...))
	if r := []rune(s); len(r) > t.o.Width {
		s = string(r[:t.o.Width-1]) + "…"
	}
	t.b.WriteString(strings.TrimRight(s, " ") + "\n")
}

// warn writes what must not be cut: it goes on in the next line.
func (t *texter) warn(format string, args ...any) {
	const mark, indent = "  ! ", "    "
	line := mark
	for word := range strings.FieldsSeq(fmt.Sprintf(format, args...)) {
		if n := utf8.RuneCountInString(line); n > len(indent) && n+1+utf8.RuneCountInString(word) > t.o.Width {
			t.line("%s", line)
			line = indent
		}
		if !strings.HasSuffix(line, " ") {
			line += " "
		}
		line += word
	}
	t.line("%s", line)
}

// printable takes out what would steer a terminal, or make a line read otherwise
// than it is.
func printable(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
		return -1
	}
	return r
}

func (t *texter) head(format string, args ...any) {
	t.b.WriteString("\n")
	t.line(format, args...)
}

// bounded are the first of a list; what is left out is counted at the end.
func bounded[T any](t *texter, list []T) []T {
	if t.o.Groups < 0 || len(list) <= t.o.Groups {
		return list
	}
	t.line("  (the first %d of %d; --all or -o json shows the rest)", t.o.Groups, len(list))
	return list[:t.o.Groups]
}

func (t *texter) warnings(p Plan) {
	if len(p.Held) > 0 {
		t.head("Held back by the deletion budget")
		for _, h := range bounded(t, p.Held) {
			t.warn("set %s: %s", h.Set, h.Reason)
			t.line("      %s", some(h.Applications, len(h.Applications), 5))
			most := t.o.Groups
			if most < 0 {
				most = len(h.Risks)
			}
			for _, r := range h.risksOf(most) {
				t.warn("%s", r)
			}
			if h.Digest != "" {
				t.line("      %s", p.approve())
			}
		}
	}
	if refused, _ := p.refusals(); len(refused) > 0 {
		t.head("Refused by the rules of projects")
		for _, r := range bounded(t, refused) {
			t.warn("%s: %s", where(r.Application, r.Object), r.Reason)
		}
	}
	if len(p.Risks) > 0 {
		t.head("Look at this before you merge")
		for _, r := range bounded(t, p.Risks) {
			t.warn("%s (application %s on %s)", r.Message, r.Application, r.Cluster)
		}
	}
	if news, _ := p.news(); len(news) > 0 {
		t.head("Errors")
		for _, e := range bounded(t, news) {
			t.warn("%s: %s", e.Where, e.Message)
		}
	}
	if before := p.before(); before != "" {
		t.head("%s", before)
		old := p.old()
		if t.o.Groups >= 0 {
			old = old[:min(len(old), shownOld)]
		}
		for _, o := range old {
			t.line("  . %s", o)
		}
	}
}

func where(application, object string) string {
	if object == "" {
		return application
	}
	return application + ": " + object
}

func (t *texter) group(g Group) {
	head := "  " + g.Verb.sign() + " " + g.headline()
	if m := g.members(4); m != "" {
		head += ": " + m
	}
	t.line("%s", head)
	if g.Reason != "" {
		t.line("      %s", g.Reason)
	}
	t.fields(g.Fields)
}

func (t *texter) fields(fields []Field) {
	for i, f := range fields {
		if i == shownFields && t.o.Groups >= 0 {
			t.line("      and %s more", plural(len(fields)-i, "field"))
			return
		}
		line := "      " + f.Path + "  " + f.change()
		if f.Old == "" || f.New == "" || utf8.RuneCountInString(line) <= t.o.Width {
			t.line("%s", line)
			continue
		}
		t.line("      %s", f.Path)
		t.line("        - %s", f.Old)
		t.line("        + %s", f.New)
	}
}

func (t *texter) drifted(fields []DriftField) {
	for i, f := range fields {
		if i == shownFields && t.o.Groups >= 0 {
			t.line("      and %s more", plural(len(fields)-i, "field"))
			return
		}
		t.line("      %s  %s", f.Path, f.words())
	}
}

func clustersOf(p Plan) string {
	if p.Summary.Clusters == 0 {
		return ""
	}
	return " on " + plural(p.Summary.Clusters, "cluster")
}
