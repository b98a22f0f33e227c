package lint

import (
	"bytes"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

type node = yaml.Node

// repo is everything that is checked together.
type repo struct {
	files  []*file
	docs   []*document
	byDir  map[string][]*document
	byPath map[string]*file
}

// file is one YAML file.
type file struct {
	path  string
	lines []string
	// broken is the parser's complaint about a file that is no YAML.
	broken     string
	brokenLine int
	// values is true for Helm values.
	values bool
}

// document is one YAML document whose root is a mapping.
type document struct {
	file            *file
	root            *node
	apiVersion      string
	kind            string
	namespace, name string
}

// group returns the API group, "" for the core.
func (d *document) group() string {
	g, _, ok := strings.Cut(d.apiVersion, "/")
	if !ok {
		return ""
	}
	return g
}

// is tells whether the document is an object of this kind.
func (d *document) is(group, kind string) bool { return d.kind == kind && d.group() == group }

// object names the document's object, "" when it is none.
func (d *document) object() string {
	if d.kind == "" {
		return ""
	}
	name := d.name
	if d.namespace != "" {
		name = d.namespace + "/" + name
	}
	return strings.TrimSpace(d.kind + " " + name)
}

// parse reads all files that are YAML.
func parse(files []File) *repo {
	r := &repo{byDir: map[string][]*document{}, byPath: map[string]*file{}}
	charts := map[string]bool{}
	for _, f := range files {
		if path.Base(f.Path) == "Chart.yaml" {
			charts[path.Dir(f.Path)] = true
		}
	}
	for _, f := range files {
		if !isYAML(f.Path) || inTemplates(f.Path, charts) || isConfig(f.Path) {
			continue
		}
		parsed := &file{path: f.Path, lines: strings.Split(string(f.Content), "\n"), values: isValues(f.Path, charts)}
		r.files = append(r.files, parsed)
		r.byPath[f.Path] = parsed
		r.read(parsed, f.Content)
	}
	return r
}

// isYAML tells by its name whether a file is read.
func isYAML(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ".yaml") || strings.HasSuffix(base, ".yml") || base == "Kustomization"
}

// inTemplates tells whether a file belongs to the templates of a chart.
func inTemplates(name string, charts map[string]bool) bool {
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if path.Base(dir) == "templates" && charts[path.Dir(dir)] {
			return true
		}
	}
	return false
}

// isValues tells by its name or place whether a file holds Helm values.
func isValues(name string, charts map[string]bool) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "values") || strings.HasPrefix(base, ".values") || strings.HasSuffix(strings.TrimSuffix(base, path.Ext(base)), "values") ||
		slices.Contains(strings.Split(path.Dir(name), "/"), "values") || charts[path.Dir(name)] && base != "Chart.yaml" && base != "Chart.lock"
}

var templated = regexp.MustCompile(`\{\{.*\}\}`)

// read adds the documents of a file.
func (r *repo) read(f *file, content []byte) {
	dec := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var doc node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			// What holds template actions is some tool's template, not YAML.
			if !templated.Match(content) {
				f.broken, f.brokenLine = complaint(err)
			}
			return
		}
		for _, root := range expand(doc.Content[0]) {
			r.add(f, root)
		}
	}
}

// expand returns a document's mappings: itself, or the items of a List.
func expand(root *node) []*node {
	if root.Kind != yaml.MappingNode {
		return nil
	}
	items := get(root, "items")
	if text(root, "kind") != "List" || items == nil || items.Kind != yaml.SequenceNode {
		return []*node{root}
	}
	var out []*node
	for _, e := range items.Content {
		if e.Kind == yaml.MappingNode {
			out = append(out, e)
		}
	}
	return out
}

func (r *repo) add(f *file, root *node) {
	d := &document{
		file: f, root: root, apiVersion: text(root, "apiVersion"), kind: text(root, "kind"),
		namespace: text(root, "metadata", "namespace"), name: text(root, "metadata", "name"),
	}
	if d.apiVersion == "" || d.kind == "" {
		d.apiVersion, d.kind = "", ""
		if base := path.Base(f.path); base == "kustomization.yaml" || base == "kustomization.yml" || base == "Kustomization" {
			d.apiVersion, d.kind = "kustomize.config.k8s.io/v1beta1", "Kustomization"
		}
	}
	r.docs = append(r.docs, d)
	dir := path.Dir(f.path)
	r.byDir[dir] = append(r.byDir[dir], d)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s+)?line (\d{1,9}): `)

// complaint takes the line out of a parser's error.
func complaint(err error) (string, int) {
	msg := err.Error()
	m := yamlLine.FindStringSubmatch(msg)
	if m == nil {
		return strings.Join(strings.Fields(strings.TrimPrefix(msg, "yaml: ")), " "), 1
	}
	line, _ := strconv.Atoi(m[1]) // up to nine digits
	return strings.Join(strings.Fields(msg[len(m[0]):]), " "), max(1, line)
}

// resolve follows an alias.
func resolve(n *node) *node {
	for i := 0; n != nil && n.Kind == yaml.AliasNode && i < 10; i++ {
		n = n.Alias
	}
	return n
}

// get returns the value at a path of keys, nil when there is none.
func get(n *node, keys ...string) *node {
	for _, k := range keys {
		_, n = pair(n, k)
	}
	return resolve(n)
}

// pair returns the key and the value of an entry; of repeated keys the last.
func pair(n *node, key string) (k, v *node) {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			k, v = n.Content[i], n.Content[i+1]
		}
	}
	return k, v
}

// text returns the scalar at a path of keys, "" when there is none.
func text(n *node, keys ...string) string {
	if v := get(n, keys...); v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() != "!!null" {
		return v.Value
	}
	return ""
}

// truth tells whether the value at a path is true.
func truth(n *node, keys ...string) bool {
	v := get(n, keys...)
	return v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() == "!!bool" && strings.EqualFold(v.Value, "true")
}

// items returns the elements of the list at a path of keys.
func items(n *node, keys ...string) []*node {
	v := get(n, keys...)
	if v == nil || v.Kind != yaml.SequenceNode {
		return nil
	}
	out := make([]*node, 0, len(v.Content))
	for _, e := range v.Content {
		out = append(out, resolve(e))
	}
	return out
}

// entries calls f for each key and value of the mapping at n.
func entries(n *node, f func(key, value *node)) {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i], resolve(n.Content[i+1]))
	}
}

// walk calls f for n and everything below it, aliases not followed.
func walk(n *node, f func(*node)) {
	f(n)
	for _, c := range n.Content {
		walk(c, f)
	}
}

// templatedText tells whether a value is filled in by somebody later: a
// template, a variable, a placeholder of a vault plugin.
func templatedText(s string) bool {
	return strings.Contains(s, "{{") || strings.Contains(s, "${") || strings.Contains(s, "$(") || strings.HasPrefix(s, "ref+") ||
		strings.HasPrefix(s, "<") && strings.HasSuffix(s, ">")
}

// Reads tells by its name whether Check looks at a file at all. Chart.yaml tells
// it which folders hold templates.
func Reads(name string) bool { return isYAML(name) || isConfig(name) }
