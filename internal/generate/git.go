package generate

import (
	"path"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// git answers with the directories or files of a repository.
func (ev *evaluator) git(n node) outcome {
	g := n.leaf.Git
	switch {
	case g.RepoURL == "":
		return failure(rutter.CodeInvalid, "%s.repoURL: is empty", n.producer())
	case len(g.Directories) == 0 && len(g.Files) == 0:
		return failure(rutter.CodeInvalid, "%s: set directories or files", n.producer())
	case len(g.Directories) > 0 && len(g.Files) > 0:
		return failure(rutter.CodeInvalid, "%s: has directories and files; write two generators", n.producer())
	}
	tree, err := ev.facts.Snapshot(repoOf(ev.set, g))
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: %w", n.producer(), err)
	}
	if len(g.Directories) > 0 {
		return ev.gitDirectories(n, tree)
	}
	return ev.gitFiles(n, tree)
}

// location is where a set of parameters was found.
type location struct {
	// dir is a directory, "." for the root.
	dir string
	// file is the base name of a file, empty for a directory.
	file string
}

// addTo writes the path parameters into params, over what a file itself calls so.
func (p location) addTo(params map[string]any, prefix string, goTemplate bool) {
	segments := strings.Split(p.dir, "/")
	base := path.Base(p.dir)
	if goTemplate {
		list := make([]any, len(segments))
		for i, s := range segments {
			list[i] = s
		}
		own := map[string]any{"path": p.dir, "basename": base, "basenameNormalized": normalize(base), "segments": list}
		if p.file != "" {
			own["filename"], own["filenameNormalized"] = p.file, normalize(p.file)
		}
		if prefix != "" {
			params[prefix] = map[string]any{"path": own}
		} else {
			params["path"] = own
		}
		return
	}
	key := "path"
	if prefix != "" {
		key = prefix + ".path"
	}
	params[key] = p.dir
	params[key+".basename"] = base
	params[key+".basenameNormalized"] = normalize(base)
	if p.file != "" {
		params[key+".filename"] = p.file
		params[key+".filenameNormalized"] = normalize(p.file)
	}
	for i, s := range segments {
		params[key+"["+strconv.Itoa(i)+"]"] = s
	}
}
