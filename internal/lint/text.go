package lint

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkYAML reports the files that the parser refused.
func checkYAML(r *run) {
	for _, f := range r.repo.files {
		if f.broken != "" {
			r.report(&document{file: f, root: &node{Line: f.brokenLine, Column: 1}}, nil, "this is no YAML: %s", f.broken)
		}
	}
}

// checkRepeatedKeys finds keys that a mapping has twice, at any depth.
func checkRepeatedKeys(r *run, d *document) {
	walk(d.root, func(n *node) {
		if n.Kind != yaml.MappingNode {
			return
		}
		first := make(map[string]*node, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i]
			if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
				continue
			}
			id := fmt.Sprintf("%s %s", k.ShortTag(), k.Value)
			if before := first[id]; before != nil {
				r.report(d, k, "%q is here again; it is already on line %d, and only one of them counts", k.Value, before.Line)
				continue
			}
			first[id] = k
		}
	})
}
