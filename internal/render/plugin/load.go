package plugin

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rutterhq/rutter"
)

// Load reads the definitions of a folder: every file that ends in .yaml or
// .yml. A bad file is an error and holds back only itself. The definitions are
// in the order of their full names, in which they are asked whether they are
// made for a folder.
func Load(dir string) ([]Definition, []error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		code := rutter.CodeUnavailable
		if errors.Is(err, fs.ErrNotExist) {
			code = rutter.CodeNotFound
		}
		return nil, []error{rutter.Errorf(code, "read the folder of plugins: %w", err)}
	}
	var defs []Definition
	var errs []error
	seen := map[string]string{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		d, err := loadFile(filepath.Join(dir, e.Name()))
		if err == nil && seen[d.FullName()] != "" {
			err = invalid(d.File, 0, "metadata.name: the plugin %s is in %s already: give one of them another name or version", d.FullName(), seen[d.FullName()])
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		seen[d.FullName()] = d.File
		defs = append(defs, d)
	}
	slices.SortFunc(defs, func(a, b Definition) int { return cmp.Compare(a.FullName(), b.FullName()) })
	return defs, errs
}

func loadFile(file string) (Definition, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return Definition{}, &rutter.Error{Code: rutter.CodeUnavailable, File: file, Message: "cannot be read", Err: err}
	}
	return Parse(file, data)
}
