package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// maxFileSize bounds a file of parameters; those are written by hand.
const maxFileSize = 1 << 20

// gitFiles makes sets of the objects in the files that an include matches and
// no exclude does. A file that cannot be read stops only its own sets.
func (ev *evaluator) gitFiles(n node, tree rutter.Snapshot) outcome {
	g := n.leaf.Git
	includes, excludes, err := ev.filePatterns(n)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	files, err := matchFiles(tree, includes, excludes)
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: %s at %s cannot be read: %w", n.producer(), g.RepoURL, tree.Revision(), err)
	}
	for _, p := range includes {
		if crossing := p.crossing(files); len(crossing) > 0 {
			ev.warn(fmt.Sprintf("%s.files: %q also matches %s, because * crosses folders here; write ** for that, and annotate the set with %s: segments to have * stay within one",
				n.producer(), p.pattern, crossing[0], AnnotationFileGlobbing))
		}
	}
	var out outcome
	worded := 0
	for _, file := range files {
		objects, words, err := readObjects(tree, file)
		if len(words) > 0 && worded < shownWorded {
			worded++
			ev.warn(fmt.Sprintf("%s: %s: %s", n.producer(), file, words[0]))
		}
		if err != nil {
			s := paramSet{params: map[string]any{}, err: fmt.Errorf("%s: %w", n.producer(), err)}
			location{dir: path.Dir(file), file: path.Base(file)}.addTo(s.params, g.PathParamPrefix, ev.goTemplate)
			out.sets = append(out.sets, s)
			continue
		}
		for _, object := range objects {
			params := object
			if !ev.goTemplate {
				params = flatParams(object)
			}
			location{dir: path.Dir(file), file: path.Base(file)}.addTo(params, g.PathParamPrefix, ev.goTemplate)
			out.sets = append(out.sets, newSet(params, n.producer()))
		}
	}
	return out
}

// filePatterns compiles the globs of the generator.
func (ev *evaluator) filePatterns(n node) (includes, excludes []filePattern, err error) {
	for i, f := range n.leaf.Git.Files {
		p, err := newFilePattern(f.Path, ev.segments)
		if err != nil {
			return nil, nil, rutter.Errorf(rutter.CodeInvalid, "%s.files[%d].path: %q: %w", n.producer(), i, f.Path, err)
		}
		if f.Exclude {
			excludes = append(excludes, p)
		} else {
			includes = append(includes, p)
		}
	}
	return includes, excludes, nil
}

// matchFiles lists the selected files in path order. Only directories that can
// lead to a match are read.
func matchFiles(tree fs.FS, includes, excludes []filePattern) ([]string, error) {
	var files []string
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			if p != "." && !anyLeads(includes, p) {
				return fs.SkipDir
			}
		case anyMatches(includes, p) && !anyMatches(excludes, p):
			files = append(files, p)
		}
		return nil
	})
	return files, err
}

func anyLeads(patterns []filePattern, dir string) bool {
	for _, p := range patterns {
		if p.leads(dir) {
			return true
		}
	}
	return false
}

func anyMatches(patterns []filePattern, file string) bool {
	for _, p := range patterns {
		if p.matches(file) {
			return true
		}
	}
	return false
}

// shownWorded is how many files with words that are read as booleans are named.
const shownWorded = 3

// readObjects reads a JSON or YAML file that holds one object or a list of
// them, and says which words in it are booleans. An empty file counts as one empty
// object.
func readObjects(tree rutter.Snapshot, file string) (objects []map[string]any, words []string, err error) {
	if info, err := tree.Stat(file); err == nil && info.Size() > maxFileSize {
		return nil, nil, fileError(file, rutter.Errorf(rutter.CodeInvalid, "has %d bytes, at most %d are read", info.Size(), maxFileSize))
	}
	content, err := tree.ReadFile(file)
	if err != nil {
		return nil, nil, &rutter.Error{Code: rutter.CodeOf(err), File: file, Message: "cannot be read", Err: err}
	}
	raw, err := yaml.YAMLToJSONStrict(content)
	if err != nil {
		return nil, nil, fileError(file, err)
	}
	value, err := toTree(raw)
	if err != nil {
		return nil, nil, fileError(file, err)
	}
	objects, err = objectsIn(file, value)
	return objects, BooleanWords(content, value), err
}

// objectsIn are the objects that a file holds.
func objectsIn(file string, value any) ([]map[string]any, error) {
	switch v := value.(type) {
	case nil:
		return []map[string]any{{}}, nil
	case map[string]any:
		return []map[string]any{v}, nil
	case []any:
		objects := make([]map[string]any, 0, len(v))
		for i, item := range v {
			object, ok := item.(map[string]any)
			if !ok {
				return nil, fileError(file, rutter.Errorf(rutter.CodeInvalid, "item %d is %s, want an object", i, kindOf(item)))
			}
			objects = append(objects, object)
		}
		return objects, nil
	default:
		return nil, fileError(file, rutter.Errorf(rutter.CodeInvalid, "holds %s, want an object or a list of objects", kindOf(value)))
	}
}

// fileError names the file in an error; its text is one line.
func fileError(file string, err error) error {
	return &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "cannot be read as parameters",
		Err: errors.New(oneLine(err.Error()))}
}
