package kustomize

import (
	"bytes"

	"go.yaml.in/yaml/v3"

	"github.com/rutterhq/rutter"
)

// maxNodes bounds the values that the aliases of one file may stand for.
const maxNodes = 1 << 20

// checkSize refuses YAML whose aliases stand for more than a cluster could take.
// The library would write each of them out.
func checkSize(file string, data []byte) error {
	if !bytes.Contains(data, []byte("&")) || !bytes.Contains(data, []byte("*")) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			return nil //nolint:nilerr // the end, or no YAML: the library says so where it matters
		}
		c := counter{seen: map[*yaml.Node]int{}}
		if c.count(&doc) > maxNodes {
			return &rutter.Error{Code: rutter.CodeInvalid, File: file,
				Message: "its YAML aliases stand for more than a million values: write them out, or remove them"}
		}
	}
}

// counter counts the values that a document stands for.
type counter struct{ seen map[*yaml.Node]int }

// count never exceeds twice maxNodes, so that it cannot overflow.
func (c counter) count(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		if have, ok := c.seen[n.Alias]; ok {
			return have
		}
		return c.count(n.Alias)
	}
	c.seen[n] = maxNodes + 1 // an alias to what holds it has no end
	sum := 1
	for _, child := range n.Content {
		sum = min(sum+c.count(child), 2*maxNodes)
	}
	c.seen[n] = sum
	return sum
}
