package helm

import (
	"fmt"
	"io/fs"
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
		named[f] = !f.isPattern()
	}
	var out []valueFile
	seen := map[valueFile]bool{}
	for i, f := range entries {
		found, err := matches(in, f)
		if err != nil {
			return nil, rutter.Errorf(codeOf(err), "helm.valueFiles[%d]: %w", i, err)
		}
		for _, m := range found {
			if seen[m] || f.isPattern() && named[m] {
				continue
			}
			seen[m] = true
			out = append(out, m)
		}
	}
	return out, nil
}

// isPattern reports whether an entry stands for several files; a remote one never does.
func (f valueFile) isPattern() bool { return f.url == "" && strings.ContainsAny(f.path, "*?[") }

// matches returns the files that an entry stands for.
func matches(in Input, f valueFile) ([]valueFile, error) {
	if f.url != "" {
		return []valueFile{f}, nil
	}
	if !f.isPattern() {
		if f.repo.IsFile(f.path) {
			return []valueFile{f}, nil
		}
		if leadsNowhere(f.repo, f.path) {
			return nil, linkError(f.path)
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
	found, err := expand(f, base, depth)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && !in.Options.IgnoreMissingValueFiles {
		return nil, rutter.Errorf(rutter.CodeNotFound, "no file matches %s: add one, or set helm.ignoreMissingValueFiles", f.path)
	}
	return found, nil
}

// leadsNowhere reports whether a path that cannot be read is a symbolic link.
func leadsNowhere(repo *record.FS, p string) bool {
	entries, err := repo.ReadDir(path.Dir(p))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == path.Base(p) && e.Type()&fs.ModeSymlink != 0
	})
}

func linkError(p string) error {
	return &rutter.Error{Code: rutter.CodeInvalid, File: p, Message: "the symbolic link leads nowhere, or out of the repository: put the file into the repository"}
}

// expand lists matching files below dir: the files of a folder in order, then
// its sub-folders.
func expand(in valueFile, dir string, depth int) ([]valueFile, error) {
	entries, err := in.repo.ReadDir(dir)
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
		case !doublestar.MatchUnvalidated(in.path, p):
		case e.Type().IsRegular() || in.repo.IsFile(p):
			out = append(out, valueFile{repo: in.repo, source: in.source, path: p})
		case e.Type()&fs.ModeSymlink != 0 && !in.repo.IsDir(p):
			return nil, linkError(p)
		}
	}
	if depth <= 0 {
		return out, nil
	}
	for _, p := range slices.Sorted(slices.Values(folders)) {
		below, err := expand(in, p, depth-1)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}
