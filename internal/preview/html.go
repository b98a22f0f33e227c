package preview

import (
	"fmt"
	"html/template"
	"strings"
)

// htmlSection is one verb's part of the page.
type htmlSection struct {
	Title, Class string
	Groups       []htmlGroup
}

type htmlGroup struct {
	Sign, Head, Members, Reason string
	Fields                      []Field
}

// HTML is the plan as one page that needs nothing else.
func HTML(p Plan) (string, error) {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return "", fmt.Errorf("read the page's template: %w", err)
	}
	var sections []htmlSection
	if all := p.declarations(); len(all) > 0 {
		s := htmlSection{Title: "Projects and sets", Class: "change"}
		for _, d := range all {
			s.Groups = append(s.Groups, htmlGroup{Sign: d.verb.sign(), Head: d.sentence, Fields: d.fields})
		}
		sections = append(sections, s)
	}
	for _, v := range verbs() {
		s := htmlSection{Title: v.title(), Class: string(v)}
		for _, g := range p.ofVerb(v) {
			s.Groups = append(s.Groups, htmlGroup{Sign: v.sign(), Head: g.headline(), Members: g.members(len(g.Applications) + g.Count), Reason: g.Reason, Fields: g.Fields})
		}
		if len(s.Groups) > 0 {
			sections = append(sections, s)
		}
	}
	if len(p.Drift) > 0 {
		s := htmlSection{Title: "Not as declared on the clusters now", Class: "leave"}
		for _, d := range p.Drift {
			g := htmlGroup{Sign: "*", Head: shortRef(d.ref()) + " on " + d.Cluster, Members: d.Application, Reason: d.words()}
			for _, f := range d.Fields {
				g.Fields = append(g.Fields, Field{Path: f.Path + f.note(), Old: f.Declared, New: f.Live})
			}
			s.Groups = append(s.Groups, g)
		}
		sections = append(sections, s)
	}
	news, _ := p.news()
	refused, _ := p.refusals()
	var b strings.Builder
	err = t.Execute(&b, map[string]any{"Plan": p, "Sides": p.sides(), "Sections": sections, "Errors": news, "Refused": refused, "Before": p.before(), "Old": p.old(), "Nothing": p.nothing(), "Empty": p.Empty(), "Approve": p.approve(),
		"Rows": []struct {
			Name string
			C    Counts
		}{{"projects", p.Summary.Projects}, {"sets", p.Summary.Sets}, {"applications", p.Summary.Applications}, {"objects", p.Summary.Objects}}})
	if err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	return b.String(), nil
}
