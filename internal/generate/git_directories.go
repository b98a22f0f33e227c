package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// gitDirectories makes a set of each directory that an include matches and no
// exclude does, whatever their order.
func (ev *evaluator) gitDirectories(n node, tree rutter.Snapshot) outcome {
	g := n.leaf.Git
	for i, d := range g.Directories {
		if _, err := path.Match(d.Path, ""); err != nil {
			return failure(rutter.CodeInvalid, "%s.directories[%d].path: %q is not a glob: %w", n.producer(), i, d.Path, err)
		}
		if !d.Exclude && !isTemplate(d.Path) && path.Clean("/"+d.Path) != "/"+d.Path {
			ev.warn(fmt.Sprintf("%s.directories[%d].path: %q can match no directory; write it relative to the root, as %q",
				n.producer(), i, d.Path, strings.TrimPrefix(path.Clean("/"+d.Path), "/")))
		}
	}
	dirs, err := matchDirectories(tree, g.Directories)
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: %s at %s cannot be read: %w", n.producer(), g.RepoURL, tree.Revision(), err)
	}
	var out outcome
	for _, dir := range dirs {
		params := map[string]any{}
		location{dir: dir}.addTo(params, g.PathParamPrefix, ev.goTemplate)
		out.sets = append(out.sets, newSet(params, n.producer()))
	}
	return out
}

// matchDirectories lists the directories that the items select, in path order.
// Only directories that can lead to a match are read.
func matchDirectories(tree fs.ReadDirFS, items []v1alpha1.GitDirectoryGeneratorItem) ([]string, error) {
	var includes, excludes []string
	for _, item := range items {
		if item.Exclude {
			excludes = append(excludes, item.Path)
		} else {
			includes = append(includes, item.Path)
		}
	}
	var found []string
	var visit func(dir string) error
	visit = func(dir string) error {
		entries, err := tree.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			p := path.Join(dir, e.Name())
			if matchesAny(includes, p) && !matchesAny(excludes, p) {
				found = append(found, p)
			}
			if leadsToAny(includes, p) {
				if err := visit(p); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := visit("."); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.Sort(found)
	return found, nil
}

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// leadsToAny reports whether a pattern could match something below dir.
func leadsToAny(patterns []string, dir string) bool {
	depth := strings.Count(dir, "/") + 1
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		segments := strings.Split(pattern, "/")
		if len(segments) <= depth {
			return false
		}
		ok, err := path.Match(strings.Join(segments[:depth], "/"), dir)
		// A class may hold a slash ("[a/b]"), so that its part is no pattern.
		return ok || err != nil
	})
}
