package generate

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// maxDepth bounds the nesting of combinations; it is far beyond use and only
// keeps a hostile set from exhausting the stack.
const maxDepth = 32

// The kinds of generator, as they are keyed in a set.
const (
	kindList     = "list"
	kindClusters = "clusters"
	kindGit      = "git"
	kindMatrix   = "matrix"
	kindMerge    = "merge"
	kindDecision = "clusterDecisionResource"
	kindSCM      = "scmProvider"
	kindPull     = "pullRequest"
	kindPlugin   = "plugin"
)

// node is one generator of a set, at any depth, in one shape.
type node struct { //nolint:recvcheck // a node decodes itself and is copied everywhere else
	// path is where the item is, such as "generators[0].matrix.generators[1]".
	path string
	kind string
	// leaf holds exactly the generator of kind, unless kind is a combination.
	leaf      v1alpha1.ApplicationSetLeafGenerators
	children  []node
	mergeKeys []string
	selector  *metav1.LabelSelector
	template  *apiextensionsv1.JSON
	// err is set when the item cannot be read.
	err error
	// warnings name what is written in the item and has no effect.
	warnings []string
}

// broken is the first mistake in the writing of the item or one inside it. It
// is looked for before anything is run: an inner item may not be reached.
func (n node) broken() error {
	if n.err != nil {
		return n.err
	}
	for _, c := range n.children {
		if err := c.broken(); err != nil {
			return err
		}
	}
	return nil
}

// producer is the name of the generator in errors and elements.
func (n node) producer() string {
	if n.kind == "" {
		return n.path
	}
	return n.path + "." + n.kind
}

// nodesOf reads spec.generators. An item with several types is several nodes.
func nodesOf(set *v1alpha1.ApplicationSet) []node {
	var nodes []node
	for i, g := range set.Spec.Generators {
		path := fmt.Sprintf("generators[%d]", i)
		items := leafNodes(path, g.ApplicationSetLeafGenerators)
		if m := g.Matrix; m != nil {
			items = append(items, node{path: path, kind: kindMatrix, template: m.Template,
				children: childNodes(path+"."+kindMatrix, m.Generators, 1)})
		}
		if m := g.Merge; m != nil {
			items = append(items, node{path: path, kind: kindMerge, template: m.Template, mergeKeys: m.MergeKeys,
				children: childNodes(path+"."+kindMerge, m.Generators, 1)})
		}
		if len(items) == 0 {
			items = []node{{path: path, err: rutter.Errorf(rutter.CodeInvalid,
				"%s: no known generator is set; set one of list, clusters, git, matrix, merge, "+
					"scmProvider, pullRequest, clusterDecisionResource, plugin", path)}}
		}
		for j := range items {
			items[j].selector = g.Selector
		}
		nodes = append(nodes, items...)
	}
	return nodes
}

// childNodes reads the items of a combination, each of which is one generator.
func childNodes(parent string, items []v1alpha1.ApplicationSetNestedGenerator, depth int) []node {
	nodes := make([]node, 0, len(items))
	for i, item := range items {
		path := fmt.Sprintf("%s.generators[%d]", parent, i)
		found := leafNodes(path, item.ApplicationSetLeafGenerators)
		for j := range found {
			if found[j].template != nil {
				found[j].warnings = append(found[j].warnings,
					found[j].producer()+".template has no effect inside a combination; write it on the outermost one")
			}
		}
		if item.Matrix != nil {
			found = append(found, nestedMatrix(path, item.Matrix.Raw, depth))
		}
		if item.Merge != nil {
			found = append(found, nestedMerge(path, item.Merge.Raw, depth))
		}
		nodes = append(nodes, oneOf(path, found, item.Selector))
	}
	return nodes
}

// oneOf is the only node of an item, or one with the error of there being none or several.
func oneOf(path string, found []node, selector *metav1.LabelSelector) node {
	switch len(found) {
	case 1:
		n := found[0]
		n.selector = selector
		return n
	case 0:
		return node{path: path, err: rutter.Errorf(rutter.CodeInvalid, "%s: no known generator is set", path)}
	}
	kinds := make([]string, len(found))
	for i, n := range found {
		kinds[i] = n.kind
	}
	return node{path: path, err: rutter.Errorf(rutter.CodeInvalid,
		"%s: an item of a combination holds one generator, this one has %s; write one item for each",
		path, strings.Join(kinds, " and "))}
}

func nestedMatrix(path string, raw []byte, depth int) node {
	n := node{path: path, kind: kindMatrix}
	var m v1alpha1.NestedMatrixGenerator
	if n.decode(raw, &m, depth); n.err == nil {
		n.children = childNodes(n.producer(), m.Generators, depth+1)
	}
	return n
}

func nestedMerge(path string, raw []byte, depth int) node {
	n := node{path: path, kind: kindMerge}
	var m v1alpha1.NestedMergeGenerator
	if n.decode(raw, &m, depth); n.err == nil {
		n.mergeKeys = m.MergeKeys
		n.children = childNodes(n.producer(), m.Generators, depth+1)
	}
	return n
}

// decode reads a nested combination, which the API server keeps as it was
// written. Fields that do not exist are reported and otherwise ignored.
func (n *node) decode(raw []byte, into any, depth int) {
	if depth >= maxDepth {
		n.err = rutter.Errorf(rutter.CodeInvalid, "%s: combinations are nested more than %d deep", n.producer(), maxDepth)
		return
	}
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		n.err = rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
		return
	}
	for _, u := range unknown {
		n.warnings = append(n.warnings, fmt.Sprintf("%s: %s; it is ignored", n.producer(), u))
	}
}

// leafNodes is one node for each leaf generator that is set.
func leafNodes(path string, l v1alpha1.ApplicationSetLeafGenerators) []node {
	var nodes []node
	add := func(kind string, template *apiextensionsv1.JSON, leaf v1alpha1.ApplicationSetLeafGenerators) {
		nodes = append(nodes, node{path: path, kind: kind, leaf: leaf, template: template})
	}
	if g := l.List; g != nil {
		add(kindList, g.Template, v1alpha1.ApplicationSetLeafGenerators{List: g})
	}
	if g := l.Clusters; g != nil {
		add(kindClusters, g.Template, v1alpha1.ApplicationSetLeafGenerators{Clusters: g})
	}
	if g := l.Git; g != nil {
		add(kindGit, g.Template, v1alpha1.ApplicationSetLeafGenerators{Git: g})
	}
	if g := l.SCMProvider; g != nil {
		add(kindSCM, g.Template, v1alpha1.ApplicationSetLeafGenerators{SCMProvider: g})
	}
	if g := l.ClusterDecisionResource; g != nil {
		add(kindDecision, g.Template, v1alpha1.ApplicationSetLeafGenerators{ClusterDecisionResource: g})
	}
	if g := l.PullRequest; g != nil {
		add(kindPull, g.Template, v1alpha1.ApplicationSetLeafGenerators{PullRequest: g})
	}
	if g := l.Plugin; g != nil {
		add(kindPlugin, g.Template, v1alpha1.ApplicationSetLeafGenerators{Plugin: g})
	}
	return nodes
}

// walk calls visit for the nodes and all nodes inside them.
func walk(nodes []node, visit func(node)) {
	for _, n := range nodes {
		visit(n)
		walk(n.children, visit)
	}
}
