package lint

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// waved is a document with its sync wave.
type waved struct {
	doc  *document
	at   *node
	wave int
}

// waves returns those of the documents that have a wave, lowest first.
func waves(docs []*document) []waved {
	var out []waved
	for _, d := range docs {
		k, v := pair(get(d.root, "metadata", "annotations"), prefixArgo+"sync-wave")
		if v == nil || d.kind == "" {
			continue
		}
		if wave, err := strconv.Atoi(v.Value); err == nil {
			out = append(out, waved{doc: d, at: k, wave: wave})
		}
	}
	slices.SortStableFunc(out, func(a, b waved) int { return cmp.Compare(a.wave, b.wave) })
	return out
}

// deployed returns what is deployed together: the documents of each folder,
// with what its kustomization pulls in, and those below a folder that an
// Application takes whole. The key says which it is.
func (r *repo) deployed() map[string][]*document {
	out := map[string][]*document{}
	for _, dir := range r.dirs() {
		out[dir] = r.tree(dir, map[string]bool{})
	}
	for _, d := range r.docs {
		for _, spec := range appSpecs(d) {
			for _, s := range sources(spec) {
				root := clean(text(s, "path"))
				if root == "" || templatedText(root) || !truth(s, "directory", "recurse") {
					continue
				}
				var below []*document
				for _, dir := range r.dirs() {
					if dir == root || strings.HasPrefix(dir, root+"/") {
						below = append(below, r.byDir[dir]...)
					}
				}
				out[root] = below
			}
		}
	}
	return out
}

// tree returns the documents of a folder and of what its kustomization names.
func (r *repo) tree(dir string, seen map[string]bool) []*document {
	if seen[dir] {
		return nil
	}
	seen[dir] = true
	docs := slices.Clone(r.byDir[dir])
	for _, d := range r.byDir[dir] {
		if !d.is("kustomize.config.k8s.io", "Kustomization") && !d.is("kustomize.config.k8s.io", "Component") {
			continue
		}
		for _, field := range []string{"resources", "bases", "components"} {
			for _, e := range items(d.root, field) {
				p := path.Join(dir, e.Value)
				if f := r.byPath[p]; f == nil {
					docs = append(docs, r.tree(p, seen)...)
				} else if path.Dir(p) != dir && !seen[p] {
					seen[p] = true
					docs = append(docs, r.docsOf(f)...)
				}
			}
		}
	}
	return docs
}

func (r *repo) docsOf(f *file) []*document {
	return slices.DeleteFunc(slices.Clone(r.byDir[path.Dir(f.path)]), func(d *document) bool { return d.file != f })
}

func (r *repo) dirs() []string { return slices.Sorted(maps.Keys(r.byDir)) }

func checkWaves(r *run) {
	const most = 10
	deployed := r.repo.deployed()
	// A folder is reported for its own waves, not again for those that pull it in.
	reported := map[*document]bool{}
	for _, dir := range slices.Sorted(maps.Keys(deployed)) {
		list := waves(deployed[dir])
		numbers := make([]int, 0, len(list))
		for _, w := range list {
			numbers = append(numbers, w.wave)
		}
		numbers = slices.Compact(numbers)
		for i, w := range list {
			switch {
			case len(numbers) > most && w.wave == numbers[most] && !reported[w.doc]:
				reported[w.doc] = true
				r.report(w.doc, w.at, "what is deployed with the folder %s has %d sync waves; each waits for the health of the one before", dir, len(numbers))
				numbers = nil // once
			case i > 0 && w.wave-list[i-1].wave > most && !reported[w.doc]:
				reported[w.doc] = true
				r.reportAs(Info, "number waves one after another", w.doc, w.at, "between the waves %d and %d of the folder %s there is nothing", list[i-1].wave, w.wave, dir)
			}
		}
	}
}

var infrastructureWord = regexp.MustCompile(`(?i)(^|[^a-z])(crds?|operators?|infra|infrastructure|cert-manager|ingress(-nginx)?|storage|databases?|postgres(ql)?|redis|kafka|monitoring|istio|vault)([^a-z]|$)`)

// checkNoWaves finds folders in which everything starts at once, though some
// of it is there for the rest.
func checkNoWaves(r *run) {
	for _, dir := range r.repo.dirs() {
		var first *document
		infrastructure, others := 0, 0
		for _, d := range r.repo.byDir[dir] {
			if !d.is(groupArgo, "Application") {
				continue
			}
			if infrastructureWord.MatchString(d.name) {
				infrastructure++
				if first == nil {
					first = d
				}
			} else {
				others++
			}
		}
		if infrastructure > 0 && others > 0 && infrastructure+others > 2 && len(waves(r.repo.byDir[dir])) == 0 {
			at, _ := pair(get(first.root, "metadata"), "name")
			r.report(first, at, "all %d Applications of the folder %s start together, also those that need %s", infrastructure+others, dir, first.name)
		}
	}
}

func checkBigFolders(r *run) {
	const most = 100
	for _, dir := range r.repo.dirs() {
		n := 0
		for _, d := range r.repo.byDir[dir] {
			if !d.is(groupArgo, "Application") {
				continue
			}
			if n++; n == most+1 {
				r.report(d, nil, "the folder %s has more than %d Applications; a parent with so many is slow to compare and hard to read", dir, most)
			}
		}
	}
}
