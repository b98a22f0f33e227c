package generate

import (
	"bytes"
	"slices"
	"strconv"
	"text/template/parse"
)

// rewrite changes a parsed template in three ways, none of which changes what
// a sound one prints: every turn of a loop and every call is counted, every
// value is bounded, and a field that only feeds a default may be missing.
func rewrite(tree *parse.Tree) { (&rewriter{tree: tree}).body(tree.Root) }

type rewriter struct{ tree *parse.Tree }

// body rewrites a list of nodes that can be run more than once.
func (r *rewriter) body(list *parse.ListNode) {
	if list == nil {
		return
	}
	r.list(list)
	step := &parse.ActionNode{NodeType: parse.NodeAction, Pos: list.Pos, Pipe: r.call(list.Pos, funcStep)}
	list.Nodes = slices.Insert(list.Nodes, 0, parse.Node(step))
}

func (r *rewriter) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			r.pipe(n.Pipe)
		case *parse.IfNode:
			r.branch(&n.BranchNode)
		case *parse.WithNode:
			r.branch(&n.BranchNode)
		case *parse.RangeNode:
			r.pipe(n.Pipe)
			r.body(n.List)
			r.list(n.ElseList)
		case *parse.TemplateNode:
			r.pipe(n.Pipe)
		default:
		}
	}
}

func (r *rewriter) branch(b *parse.BranchNode) {
	r.pipe(b.Pipe)
	r.list(b.List)
	r.list(b.ElseList)
}

// pipe rewrites a pipeline and bounds its value.
func (r *rewriter) pipe(p *parse.PipeNode) {
	if p == nil {
		return
	}
	costly := false
	for i, cmd := range p.Cmds {
		costly = costly || isCostly(cmd.Args[0])
		for j, arg := range cmd.Args {
			switch a := arg.(type) {
			case *parse.PipeNode:
				r.pipe(a)
			case *parse.ChainNode:
				if inner, ok := a.Node.(*parse.PipeNode); ok {
					r.pipe(inner)
				}
			default:
				if toleratesMissing(p, i, j) {
					r.soften(p, i, j)
				}
			}
		}
	}
	if computes(p) {
		p.Cmds = append(p.Cmds, r.command(p.Pos, funcBound))
	}
	if costly {
		p.Cmds = append(p.Cmds, r.command(p.Pos, funcCostly))
	}
}

// isCostly reports whether a function makes keys or slow hashes.
func isCostly(n parse.Node) bool {
	id, ok := n.(*parse.IdentifierNode)
	if !ok {
		return false
	}
	switch id.Ident {
	case "genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
		"genSignedCert", "genSignedCertWithKey", "derivePassword", "bcrypt", "htpasswd":
		return true
	default:
		return false
	}
}

// computes reports whether a pipeline calls anything: a bare value has been
// bounded where it was made.
func computes(p *parse.PipeNode) bool {
	return len(p.Cmds) > 1 || len(p.Cmds) == 1 && len(p.Cmds[0].Args) > 1
}

// toleratesMissing reports whether argument j of command i is made for being
// absent: it is an argument of default or coalesce, or piped into one.
func toleratesMissing(p *parse.PipeNode, i, j int) bool {
	cmd := p.Cmds[i]
	if j == 0 {
		return len(cmd.Args) == 1 && i+1 < len(p.Cmds) && isTolerant(p.Cmds[i+1].Args[0])
	}
	return isTolerant(cmd.Args[0])
}

func isTolerant(n parse.Node) bool {
	id, ok := n.(*parse.IdentifierNode)
	return ok && (id.Ident == "default" || id.Ident == "coalesce" || id.Ident == "empty")
}

// soften replaces a field such as .a.b by a look-up that may find nothing.
func (r *rewriter) soften(p *parse.PipeNode, i, j int) {
	cmd := p.Cmds[i]
	var root parse.Node
	var keys []string
	switch n := cmd.Args[j].(type) {
	case *parse.FieldNode:
		root, keys = &parse.DotNode{NodeType: parse.NodeDot, Pos: n.Pos}, n.Ident
	case *parse.VariableNode:
		if len(n.Ident) < 2 {
			return
		}
		root, keys = &parse.VariableNode{NodeType: parse.NodeVariable, Pos: n.Pos, Ident: n.Ident[:1]}, n.Ident[1:]
	default:
		return
	}
	args := []parse.Node{root}
	for _, k := range keys {
		args = append(args, &parse.StringNode{NodeType: parse.NodeString, Pos: cmd.Pos, Quoted: strconv.Quote(k), Text: k})
	}
	look := r.command(cmd.Pos, funcLookup, args...)
	if j == 0 {
		p.Cmds[i] = look
		return
	}
	cmd.Args[j] = &parse.PipeNode{NodeType: parse.NodePipe, Pos: cmd.Pos, Cmds: []*parse.CommandNode{look}}
}

// plainParts are the parts of a template of texts and fields; nil for any other.
func plainParts(root *parse.ListNode) []goPart {
	parts := make([]goPart, 0, len(root.Nodes))
	for _, n := range root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			parts = append(parts, goPart{text: string(n.Text)})
		case *parse.ActionNode:
			if len(n.Pipe.Decl) > 0 || len(n.Pipe.Cmds) != 1 || len(n.Pipe.Cmds[0].Args) != 1 {
				return nil
			}
			field, ok := n.Pipe.Cmds[0].Args[0].(*parse.FieldNode)
			if !ok {
				return nil
			}
			parts = append(parts, goPart{path: field.Ident})
		default:
			return nil
		}
	}
	return parts
}

// captureWhole puts a capture behind the only expression of a template and
// reports whether it has just one, with nothing around it but spaces.
func captureWhole(tree *parse.Tree) bool {
	var only *parse.ActionNode
	for _, n := range tree.Root.Nodes {
		switch n := n.(type) {
		case *parse.TextNode:
			if len(bytes.TrimSpace(n.Text)) > 0 {
				return false
			}
		case *parse.ActionNode:
			if only != nil || len(n.Pipe.Decl) > 0 {
				return false
			}
			only = n
		default:
			return false
		}
	}
	if only == nil {
		return false
	}
	r := rewriter{tree: tree}
	only.Pipe.Cmds = append(only.Pipe.Cmds, r.command(only.Pos, funcCapture))
	return true
}

func (r *rewriter) call(pos parse.Pos, name string) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{r.command(pos, name)}}
}

func (r *rewriter) command(pos parse.Pos, name string, args ...parse.Node) *parse.CommandNode {
	id := parse.NewIdentifier(name).SetPos(pos).SetTree(r.tree)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: append([]parse.Node{id}, args...)}
}
