package lint

import (
	"cmp"
	"regexp"
	"strings"
)

// generator is one generator of a set, however deep it stands in combinations.
type generator struct {
	kind string
	// key is where it stands.
	key, node *node
}

// generators returns the generators of an ApplicationSet.
func generators(d *document) []generator {
	if !d.is(groupArgo, "ApplicationSet") {
		return nil
	}
	var out []generator
	var collect func(list []*node, depth int)
	collect = func(list []*node, depth int) {
		for _, g := range list {
			entries(g, func(k, v *node) {
				switch k.Value {
				case "matrix", "merge":
					if depth < 10 {
						collect(items(v, "generators"), depth+1)
					}
				case "selector":
				default:
					out = append(out, generator{kind: k.Value, key: k, node: v})
				}
			})
		}
	}
	collect(items(d.root, "spec", "generators"), 0)
	return out
}

// prunePatch finds prune turned on for all by a template patch; a condition
// there is somebody's deliberate choice.
var prunePatch = regexp.MustCompile(`(?m)^\s*prune:\s*true\s*$`)

// prunes tells whether the Applications of a set prune by themselves.
func prunes(d *document) bool {
	for _, spec := range appSpecs(d) {
		if automated(spec) != nil && truth(spec, "syncPolicy", "automated", "prune") {
			return true
		}
	}
	return prunePatch.MatchString(text(d.root, "spec", "templatePatch"))
}

func checkShrinking(r *run, d *document) {
	policy := get(d.root, "spec", "syncPolicy")
	keeps := truth(policy, "preserveResourcesOnDeletion") || strings.HasPrefix(text(policy, "applicationsSync"), "create-") && text(policy, "applicationsSync") != "create-delete"
	if keeps || !prunes(d) {
		return
	}
	for _, g := range generators(d) {
		switch g.kind {
		case "git":
			for _, kind := range []string{"directories", "files"} {
				for _, item := range items(g.node, kind) {
					k, v := pair(item, "path")
					if v != nil && !truth(item, "exclude") && broad(v.Value) {
						r.report(d, k, "prune is on, and this matches whatever lies there (%s): a folder that is moved takes its workloads along", v.Value)
					}
				}
			}
		case "clusters":
			labels, expressions := get(g.node, "selector", "matchLabels"), items(g.node, "selector", "matchExpressions")
			if (labels == nil || len(labels.Content) == 0) && len(expressions) == 0 {
				r.report(d, g.key, "prune is on, and this selects every cluster: one that is unregistered by mistake loses its workloads")
			}
		case "scmProvider":
			r.report(d, g.key, "prune is on, and this takes whatever repositories there are: one that is renamed or archived loses its workloads")
		}
	}
}

// broad tells whether a glob has a whole segment that matches anything.
func broad(glob string) bool {
	for segment := range strings.SplitSeq(glob, "/") {
		if segment == "*" || segment == "**" {
			return true
		}
	}
	return false
}

func checkAllAtOnce(r *run, d *document) {
	if !d.is(groupArgo, "ApplicationSet") || text(d.root, "spec", "strategy", "type") == "RollingSync" {
		return
	}
	specs := appSpecs(d)
	if len(specs) == 0 || automated(specs[0]) == nil {
		return
	}
	for _, g := range generators(d) {
		switch g.kind {
		case "clusters":
			if selects(g.node) {
				r.report(d, g.key, "every cluster of production that this selects changes at the same moment")
			}
		case "list":
			n := 0
			for _, e := range items(g.node, "elements") {
				named := false
				entries(e, func(_, v *node) { named = named || production(v.Value) })
				if named {
					n++
				}
			}
			if n > 1 {
				r.report(d, g.key, "%d elements of production change at the same moment", n)
			}
		}
	}
}

// checkManyClusters counts the clusters that a repository names one by one.
func checkManyClusters(r *run) {
	const most = 10
	seen := map[string]bool{}
	var last *document
	note := func(d *document, names ...string) {
		name := cmp.Or(names...)
		if name != "" && !templatedText(name) && !seen[name] {
			seen[name] = true
			last = d
		}
	}
	for _, d := range r.repo.docs {
		for _, spec := range appSpecs(d) {
			note(d, text(spec, "destination", "name"), text(spec, "destination", "server"))
		}
		for _, g := range generators(d) {
			if g.kind == "list" {
				for _, e := range items(g.node, "elements") {
					note(d, text(e, "cluster"), text(e, "clusterName"), text(e, "name"), text(e, "server"), text(e, "url"))
				}
			}
		}
		if len(seen) > most {
			r.report(last, nil, "with this one the repository names %d clusters or more; each is one more place to edit, and one mistake reaches them all", len(seen))
			return
		}
	}
}
