package cue

import (
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/token"
)

// places tells where a package's files write each field, by path. cue knows
// where a value comes from, which for most objects is the schema that they all
// share; a user looks for the place where the one object is named.
type places map[string]token.Pos

// written walks the files' fields with fixed names. Of several places the
// first counts, in the order of the files.
func written(files []*ast.File) places {
	p := places{}
	for _, f := range files {
		p.decls(f.Decls, "", 0)
	}
	return p
}

func (p places) decls(decls []ast.Decl, above string, depth int) {
	for _, d := range decls {
		f, ok := d.(*ast.Field)
		if !ok || depth > maxNesting {
			continue
		}
		name, _, err := ast.LabelName(f.Label)
		if err != nil {
			continue // a pattern, or a name that is computed
		}
		path := above + "\x00" + name
		if _, known := p[path]; !known {
			p[path] = f.Pos()
		}
		if s, ok := f.Value.(*ast.StructLit); ok {
			p.decls(s.Elts, path, depth+1)
		}
	}
}

// of returns the place of a value, cue's where no file names it.
func (p places) of(v cue.Value) (string, int) {
	path := ""
	var pathSb47 strings.Builder
	for _, s := range v.Path().Selectors() {
		if s.LabelType() != cue.StringLabel {
			return place(v.Pos())
		}
		pathSb47.WriteString("\x00" + s.Unquoted())
	}
	path += pathSb47.String()
	if pos, ok := p[path]; ok {
		return place(pos)
	}
	return place(v.Pos())
}
