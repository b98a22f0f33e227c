package helm

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// valueFiles resolves helm.valueFiles in order. Patterns are expanded in
// place; a file that is also named outright keeps that position, and each file
// counts once.
func valueFiles(in Input) ([]valueFile, error) {
	entries := make([]valueFile, len(in.Options.ValueFiles))
	named := map[valueFile]bool{}
	for i, text := range in.Options.ValueFiles {
		f, err := resolve(in, text)
		if err != nil {
			return nil, rutter.Errorf(codeOf(err), "helm.valueFiles[%d]: %w", i, err)
		}
		entries[i] = f
		named[f] = !isPattern(f.path)
	}
	var out []valueFile
	seen := map[valueFile]bool{}
	for i, f := range entries {
		found, err := matches(in, f)
		if err != nil {
			return nil, rutter.Errorf(codeOf(err), "helm.valueFiles[%d]: %w", i, err)
		}
		for _, m := range found {
			if seen[m] || isPattern(f.path) && named[m] {
				continue
			}
			seen[m] = true
			out = append(out, m)
		}
	}
	return out, nil
}

func isPattern(p string) bool { return strings.ContainsAny(p, "*?[") }

// matches returns the files that an entry stands for.
func matches(in Input, f valueFile) ([]valueFile, error) {
	if !isPattern(f.path) {
		if f.repo.IsFile(f.path) {
			return []valueFile{f}, nil
		}
		if in.Options.IgnoreMissingValueFiles {
			return nil, f.repo.Err()
		}
		return nil, rutter.Errorf(rutter.CodeNotFound, "value file %s does not exist: add it, or set helm.ignoreMissingValueFiles", f.path)
	}
	if !doublestar.ValidatePattern(f.path) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s is not a valid pattern", f.path)
	}
	base, _ := doublestar.SplitPattern(f.path)
	depth := strings.Count(strings.TrimPrefix(f.path, base), "/")
	if strings.Contains(f.path, "**") {
		depth = maxFolderDepth
	}
	found, err := expand(f.repo, base, f.path, depth)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && !in.Options.IgnoreMissingValueFiles {
		return nil, rutter.Errorf(rutter.CodeNotFound, "no file matches %s: add one, or set helm.ignoreMissingValueFiles", f.path)
	}
	return found, nil
}

// expand lists matching files below dir: the files of a folder in order, then
// its sub-folders.
func expand(repo *record.FS, dir, pattern string, depth int) ([]valueFile, error) {
	entries, err := repo.ReadDir(dir)
	if record.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var out []valueFile
	var folders []string
	for _, e := range entries {
		p := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			folders = append(folders, p)
		case doublestar.MatchUnvalidated(pattern, p) && (e.Type().IsRegular() || repo.IsFile(p)):
			out = append(out, valueFile{repo: repo, path: p})
		}
	}
	if depth <= 0 {
		return out, nil
	}
	for _, p := range slices.Sorted(slices.Values(folders)) {
		below, err := expand(repo, p, pattern, depth-1)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}
