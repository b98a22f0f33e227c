package lint

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// waved is a document with its sync wave.
type waved struct {
	doc  *document
	at   *node
	wave int
}

// waves returns the documents of a folder that have a wave.
func (r *repo) waves(dir string) []waved {
	var out []waved
	for _, d := range r.byDir[dir] {
		k, v := pair(get(d.root, "metadata", "annotations"), prefixArgo+"sync-wave")
		if v == nil || d.kind == "" {
			continue
		}
		if wave, err := strconv.Atoi(v.Value); err == nil {
			out = append(out, waved{doc: d, at: k, wave: wave})
		}
	}
	slices.SortStableFunc(out, func(a, b waved) int { return a.wave - b.wave })
	return out
}

func (r *repo) dirs() []string { return slices.Sorted(maps.Keys(r.byDir)) }

func checkWaves(r *run) {
	const most = 10
	for _, dir := range r.repo.dirs() {
		list := r.repo.waves(dir)
		distinct := map[int]bool{}
		for i, w := range list {
			distinct[w.wave] = true
			if len(distinct) == most+1 {
				all := map[int]bool{}
				for _, o := range list {
					all[o.wave] = true
				}
				r.report(w.doc, w.at, "the folder %s has %d sync waves; each waits for the health of the one before", dir, len(all))
			}
			if i > 0 && w.wave-list[i-1].wave > most {
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
		if infrastructure > 0 && others > 0 && infrastructure+others > 2 && len(r.repo.waves(dir)) == 0 {
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
