package argo

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one YAML document and the number of lines before it.
type document struct {
	text   string
	before int
}

// documents splits a file at its document markers, which YAML allows nowhere
// else at the beginning of a line.
func documents(data string) []document {
	var docs []document
	var text strings.Builder
	before, lines := 0, 0
	flush := func() {
		docs = append(docs, document{text: text.String(), before: before})
		text.Reset()
		before = lines
	}
	for line := range strings.Lines(data) {
		switch {
		case marks(line, "---"):
			flush()
			line = "   " + line[len("---"):] // content may follow the marker
		case marks(line, "..."):
			flush()
			line = "\n"
		case strings.HasPrefix(line, "%") && strings.TrimSpace(text.String()) == "":
			line = "\n" // a directive, which concerns the parser only
		}
		text.WriteString(line)
		lines++
	}
	flush()
	return docs
}

// marks reports whether a line is a document marker.
func marks(line, marker string) bool {
	rest, ok := strings.CutPrefix(line, marker)
	return ok && (rest == "" || strings.ContainsRune(" \t\r\n", rune(rest[0])))
}

// tree is a document's nodes, for the lines of its fields.
type tree struct {
	root   *yaml.Node
	before int
}

// parseTree returns nil for a document without content.
func parseTree(doc document) (*tree, error) {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(doc.text), &n); err != nil {
		return nil, err //nolint:wrapcheck // worded by syntaxProblem
	}
	if len(n.Content) == 0 || n.Content[0].Tag == "!!null" {
		return nil, nil //nolint:nilnil // said in the comment
	}
	return &tree{root: n.Content[0], before: doc.before}, nil
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// syntaxProblem takes the line out of an error of the YAML parser, which counts
// from the beginning of the document.
func syntaxProblem(err error, doc document) (line int, what string) {
	what = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: ")
	if m := yamlLine.FindStringSubmatch(what); m != nil {
		n, _ := strconv.Atoi(m[1])
		line, what = doc.before+n, strings.Replace(what, m[0], "", 1)
	}
	return line, "not valid YAML: " + strings.ReplaceAll(what, "\n", " ")
}

// line is where a field is written, or else the nearest that holds it. Keys may
// have dots in them, so the longest that fits is taken.
func (t *tree) line(path string) int {
	n, line := t.root, t.root.Line
	for path != "" && n != nil {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		n, path = step(n, path, &line)
	}
	return t.before + line
}

// step descends by the first part of path; nil when there is no such field.
func step(n *yaml.Node, path string, line *int) (next *yaml.Node, rest string) {
	switch n.Kind {
	case yaml.SequenceNode:
		index, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(index)
		if !ok || err != nil || i < 0 || i >= len(n.Content) {
			return nil, ""
		}
		*line = n.Content[i].Line
		return n.Content[i], strings.TrimPrefix(rest, ".")
	case yaml.MappingNode:
		best := -1
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i].Value
			rest, ok := strings.CutPrefix(path, k)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') && (best < 0 || len(k) > len(n.Content[best].Value)) {
				best = i
			}
		}
		if best < 0 {
			return nil, ""
		}
		*line = n.Content[best].Line
		return n.Content[best+1], strings.TrimPrefix(path[len(n.Content[best].Value):], ".")
	default:
		return nil, ""
	}
}

// repetition is a key that a mapping has twice.
type repetition struct {
	key, path   string
	line, first int
}

// repeated finds the keys that are written more than once in one mapping.
func (t *tree) repeated() []repetition {
	var out []repetition
	t.walk(t.root, "", &out)
	return out
}

func (t *tree) walk(n *yaml.Node, path string, out *[]repetition) {
	switch n.Kind { //nolint:exhaustive // aliases repeat what has been walked
	case yaml.SequenceNode:
		for i, c := range n.Content {
			t.walk(c, fmt.Sprintf("%s[%d]", path, i), out)
		}
	case yaml.MappingNode:
		first := map[string]int{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			at := join(path, k.Value)
			if line, ok := first[k.Value]; ok && k.Tag != "!!merge" {
				*out = append(*out, repetition{key: k.Value, path: at, line: t.before + k.Line, first: t.before + line})
			} else {
				first[k.Value] = k.Line
			}
			t.walk(n.Content[i+1], at, out)
		}
	}
}
