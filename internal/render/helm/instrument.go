package helm

import (
	"strings"
	"text/template"
	"text/template/parse"
)

// The names of the functions that instrument puts into templates. A chart
// cannot lose or shadow them: functions are not variables.
const (
	tickFunc    = "rutterTick"
	printFunc   = "rutterPrint"
	clusterFunc = "rutterCluster"
)

// probes are put into parsed templates so that every loop and every template
// passes the guard: text/template itself cannot be stopped from outside.
type probes struct {
	known, seen map[*parse.Tree]bool
}

func newProbes(known map[*parse.Tree]bool) probes {
	return probes{known: known, seen: map[*parse.Tree]bool{}}
}

// instrument changes all templates associated with t that are new.
func (p probes) instrument(t *template.Template) {
	for _, each := range append(t.Templates(), t) {
		if each.Tree == nil || p.known[each.Tree] || p.seen[each.Tree] {
			continue
		}
		p.seen[each.Tree] = true
		p.tree(each.Tree)
	}
}

// tree changes one template.
func (p probes) tree(t *parse.Tree) {
	if t.Root == nil {
		return
	}
	cluster := looksAtCluster(t.Root)
	p.list(t.Root)
	prepend(t.Root, tickFunc)
	if cluster {
		prepend(t.Root, clusterFunc)
	}
}

// looksAtCluster reports whether a template names what differs between clusters.
func looksAtCluster(l *parse.ListNode) bool {
	text := l.String()
	return strings.Contains(text, "Capabilities") || strings.Contains(text, "KubeVersion") || strings.Contains(text, "APIVersions")
}

// list changes the nodes of one list.
func (p probes) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for i, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				n.Pipe.Cmds = append(n.Pipe.Cmds, call(n.Pos, printFunc))
			}
		case *parse.IfNode:
			p.branch(&n.BranchNode)
		case *parse.WithNode:
			p.branch(&n.BranchNode)
		case *parse.RangeNode:
			p.branch(&n.BranchNode)
			prepend(n.List, tickFunc)
		case *parse.TemplateNode:
			l.Nodes[i] = asInclude(n)
		}
	}
}

func (p probes) branch(b *parse.BranchNode) {
	p.list(b.List)
	p.list(b.ElseList)
}

// prepend puts the call of a function before the nodes of a list.
func prepend(l *parse.ListNode, function string) {
	tick := &parse.ActionNode{NodeType: parse.NodeAction, Pos: l.Pos, Pipe: pipe(l.Pos, call(l.Pos, function))}
	l.Nodes = append([]parse.Node{tick}, l.Nodes...)
}

// asInclude turns {{template "x" .}} into {{include "x" .}}, which counts how
// deep templates are in each other.
func asInclude(n *parse.TemplateNode) parse.Node {
	var dot parse.Node = &parse.NilNode{NodeType: parse.NodeNil, Pos: n.Pos}
	if n.Pipe != nil {
		dot = n.Pipe
	}
	name := &parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Quoted: n.Name, Text: n.Name}
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: n.Pos, Line: n.Line,
		Pipe: pipe(n.Pos, call(n.Pos, "include", name, dot))}
}

func call(pos parse.Pos, name string, args ...parse.Node) *parse.CommandNode {
	ident := parse.NewIdentifier(name).SetPos(pos)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: append([]parse.Node{ident}, args...)}
}

func pipe(pos parse.Pos, cmds ...*parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: cmds}
}
