package decrypt

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/getsops/sops/v3"
	"go.yaml.in/yaml/v3"

	"github.com/rutterhq/rutter"
)

// yamlFile is a sealed YAML file. Opened values are written back into its
// nodes, so that comments, quotes and order stay.
type yamlFile struct {
	docs []*yaml.Node
	// comments tells, for each list, which elements of its tree are comments.
	comments map[*yaml.Node][]bool
}

func loadYAML(where place, data []byte) (document, error) {
	f := yamlFile{comments: map[*yaml.Node][]bool{}}
	var branches sops.TreeBranches
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return document{branches: branches, write: f.write}, nil
		}
		if err != nil {
			return document{}, where.errorAt(rutter.CodeInvalid, lineOf(err), "is sealed with SOPS but is no valid YAML: seal it again with the sops tool")
		}
		// An alias is a way to make a small file large, or endless.
		if line := aliasLine(&doc); line > 0 {
			return document{}, where.errorAt(rutter.CodeInvalid, line, "is sealed with SOPS and holds a YAML alias, which SOPS never writes: write the value out and seal it again")
		}
		content := doc.Content[0]
		switch {
		case content.Kind == yaml.MappingNode:
			branches = append(branches, f.branch(content))
		case content.Kind == yaml.ScalarNode && content.ShortTag() == "!!null":
			branches = append(branches, sops.TreeBranch{})
		default:
			return document{}, where.errorAt(rutter.CodeInvalid, content.Line, "is sealed with SOPS, but this document is no mapping: seal it again with the sops tool")
		}
		f.docs = append(f.docs, &doc)
	}
}

// aliasLine returns the line of the first alias below n, 0 when there is none.
func aliasLine(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return n.Line
	}
	for _, c := range n.Content {
		if line := aliasLine(c); line > 0 {
			return line
		}
	}
	return 0
}

// branch returns the tree of a mapping. Comments are part of it, before what
// they are about: some files choose by comments what is sealed.
func (f yamlFile) branch(n *yaml.Node) sops.TreeBranch {
	branch := sops.TreeBranch{}
	say := func(comments ...string) {
		for _, c := range commentLines(comments...) {
			branch = append(branch, sops.TreeItem{Key: c})
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		say(key.HeadComment, key.LineComment)
		if value.Kind == yaml.ScalarNode {
			say(value.HeadComment, value.LineComment)
		}
		branch = append(branch, sops.TreeItem{Key: scalar(key), Value: f.value(value)})
		if value.Kind == yaml.ScalarNode {
			say(value.FootComment)
		}
		say(key.FootComment)
	}
	return branch
}

// value returns the tree of any node.
func (f yamlFile) value(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		return f.branch(n)
	case yaml.SequenceNode:
		list, comments := []any{}, []bool{}
		add := func(v any, comment bool) { list, comments = append(list, v), append(comments, comment) }
		for _, e := range n.Content {
			for _, c := range commentLines(e.HeadComment, e.LineComment) {
				add(c, true)
			}
			add(f.value(e), false)
			for _, c := range commentLines(e.FootComment) {
				add(c, true)
			}
		}
		f.comments[n] = comments
		return list
	default: // a scalar, or an alias, which stands for its name
		return scalar(n)
	}
}

// scalar returns the value that a scalar stands for, as the MAC was made of it.
func scalar(n *yaml.Node) any {
	var v any
	if n.Kind != yaml.ScalarNode || n.Decode(&v) != nil {
		return n.Value
	}
	return v
}

func commentLines(texts ...string) []sops.Comment {
	var comments []sops.Comment
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") {
			if line != "" {
				comments = append(comments, sops.Comment{Value: line[1:]})
			}
		}
	}
	return comments
}

// write puts opened values in the place of sealed ones.
func (f yamlFile) write(branches sops.TreeBranches, comments map[string]string) ([]byte, error) {
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	for i, doc := range f.docs {
		content := doc.Content[0]
		if content.Kind != yaml.MappingNode {
			continue
		}
		for k := 0; k+1 < len(content.Content); {
			if content.Content[k].Value == "sops" {
				content.Content = append(content.Content[:k], content.Content[k+2:]...)
				continue
			}
			k += 2
		}
		if err := f.open(content, branches[i]); err != nil {
			return nil, err
		}
		openComments(doc, comments)
		if err := enc.Encode(doc); err != nil {
			return nil, err //nolint:wrapcheck // the caller replaces it
		}
	}
	err := enc.Close()
	return out.Bytes(), err
}

// open writes an opened value into its node.
func (f yamlFile) open(n *yaml.Node, v any) error {
	switch v := v.(type) {
	case sops.TreeBranch:
		return f.openBranch(n, v)
	case []any:
		return f.openList(n, v)
	case nil:
		return nil
	}
	if n.Kind != yaml.ScalarNode || !sealedValue.MatchString(n.Value) {
		return nil // it was not sealed
	}
	var plain yaml.Node
	if err := plain.Encode(v); err != nil {
		return err //nolint:wrapcheck // the caller replaces it
	}
	n.Kind, n.Tag, n.Value, n.Style = plain.Kind, plain.Tag, plain.Value, plain.Style
	return nil
}

func (f yamlFile) openBranch(n *yaml.Node, branch sops.TreeBranch) error {
	i := 0
	for _, item := range branch {
		if _, comment := item.Key.(sops.Comment); comment {
			continue
		}
		if i+1 >= len(n.Content) {
			return errShape
		}
		if err := f.open(n.Content[i+1], item.Value); err != nil {
			return err
		}
		i += 2
	}
	return nil
}

// openList also makes comments again of the elements that turn out to be some:
// that is how SOPS seals a comment in a list.
func (f yamlFile) openList(n *yaml.Node, list []any) error {
	comments := f.comments[n]
	if len(comments) != len(list) {
		return errShape
	}
	var kept []*yaml.Node
	var above []string
	i := 0
	for k, v := range list {
		if comments[k] {
			continue
		}
		e := n.Content[i]
		i++
		if comment, ok := v.(sops.Comment); ok {
			above = append(above, "#"+strings.ReplaceAll(comment.Value, "\n", " "))
			continue
		}
		if err := f.open(e, v); err != nil {
			return err
		}
		if len(above) > 0 {
			e.HeadComment = strings.Join(append(above, e.HeadComment), "\n")
			above = nil
		}
		kept = append(kept, e)
	}
	n.Content = kept
	return nil
}

// openComments puts what sealed comments say into the comments below n.
func openComments(n *yaml.Node, opened map[string]string) {
	if len(opened) == 0 {
		return
	}
	for _, text := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		if !strings.Contains(*text, "#ENC[") {
			continue
		}
		lines := strings.Split(*text, "\n")
		for i, line := range lines {
			if plain, ok := opened[strings.TrimPrefix(line, "#")]; ok {
				lines[i] = "#" + strings.ReplaceAll(plain, "\n", " ")
			}
		}
		*text = strings.Join(lines, "\n")
	}
	for _, c := range n.Content {
		openComments(c, opened)
	}
}

var errShape = errors.New("the opened values have another shape than the file")
