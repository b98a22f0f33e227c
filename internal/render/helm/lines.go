package helm

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lineIndex holds the lines of the keys of a YAML text, by path.
type lineIndex map[string]int

// maxLines bounds how many places of one text are found; maxLineNest how deep.
const (
	maxLines    = 100_000
	maxLineNest = 100
)

// linesOf finds where each value of a text stands. What cannot be read has no lines.
func linesOf(text []byte) lineIndex {
	l := lineIndex{}
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var doc yaml.Node
		if in.Decode(&doc) != nil {
			return l
		}
		l.walk(&doc, nil, maxLineNest)
	}
}

func (l lineIndex) walk(n *yaml.Node, at tokens, depth int) {
	if depth == 0 || len(l) > maxLines {
		return
	}
	switch n.Kind {
	case yaml.DocumentNode:
		for _, c := range n.Content {
			l.walk(c, at, depth-1)
		}
	case yaml.AliasNode:
		l.walk(n.Alias, at, depth-1)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if k.Tag == "!!merge" {
				l.walk(v, at, depth-1)
				continue
			}
			p := at.key(k.Value)
			l[p.String()] = k.Line
			l.walk(v, p, depth-1)
		}
	case yaml.SequenceNode:
		for i, v := range n.Content {
			p := at.index(i)
			l[p.String()] = v.Line
			l.walk(v, p, depth-1)
		}
	}
}

// nearest returns the line of a value, or of the innermost mapping or list
// around it; 0 when it is unknown.
func (l lineIndex) nearest(at tokens) int {
	for ; len(at) > 0; at = at[:len(at)-1] {
		if n, ok := l[at.String()]; ok {
			return n
		}
	}
	return 0
}

// moved returns the lines of what lies under child as if it lay under parent.
func (l lineIndex) moved(child, parent tokens) lineIndex {
	out, from, to := lineIndex{}, child.String()+".", parent.String()
	for p, n := range l {
		rest, ok := strings.CutPrefix(p, from)
		if !ok {
			continue
		}
		if to != "" {
			rest = to + "." + rest
		}
		out[rest] = n
	}
	return out
}
