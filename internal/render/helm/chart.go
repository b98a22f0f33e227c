package helm

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// The bounds of a chart's tree, which symbolic links could make endless.
const (
	maxFolderDepth     = 32
	maxDependencyDepth = 8
)

var utf8bom = []byte{0xEF, 0xBB, 0xBF}

// loadChart reads a chart's folder into memory, without what .helmignore names.
func loadChart(repo *record.FS, dir string) (*chart.Chart, error) {
	if !repo.IsFile(path.Join(dir, "Chart.yaml")) {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s holds no Chart.yaml, so it is no Helm chart", dir)
	}
	rules, err := ignoreRules(repo, dir)
	if err != nil {
		return nil, err
	}
	l := &chartLoader{repo: repo, dir: dir, rules: rules}
	if err := l.folder("", maxFolderDepth); err != nil {
		return nil, err
	}
	c, err := loader.LoadFiles(l.files)
	if err != nil {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(dir, "Chart.yaml"), Message: "the chart cannot be loaded: " + oneLine(err.Error())}
	}
	inNameOrder(c)
	return c, nil
}

// inNameOrder orders dependencies, which the library gathers in a map: the
// same chart must always render the same.
func inNameOrder(c *chart.Chart) {
	deps := c.Dependencies()
	slices.SortStableFunc(deps, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	for _, d := range deps {
		inNameOrder(d)
	}
	c.SetDependencies(deps...)
}

func ignoreRules(repo *record.FS, dir string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	file := path.Join(dir, ignore.HelmIgnore)
	data, err := repo.ReadFile(file)
	switch {
	case err == nil:
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "cannot be read", Err: err}
		}
	case !record.IsAbsent(err):
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	rules.AddDefaults()
	return rules, nil
}

type chartLoader struct {
	repo  *record.FS
	dir   string
	rules *ignore.Rules
	files []*archive.BufferedFile
}

// folder reads one folder; rel is relative to the chart.
func (l *chartLoader) folder(rel string, depth int) error {
	full := path.Join(l.dir, rel)
	if depth == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "%s: the chart's folders are nested too deeply", full)
	}
	entries, err := l.repo.ReadDir(full)
	if err != nil {
		return fmt.Errorf("list %s: %w", full, err)
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		info, err := l.info(e, path.Join(l.dir, name))
		if err != nil {
			return err
		}
		if info == nil || l.rules.Ignore(name, info) {
			continue
		}
		if info.IsDir() {
			if err := l.folder(name, depth-1); err != nil {
				return err
			}
			continue
		}
		data, err := l.repo.ReadFile(path.Join(l.dir, name))
		if err != nil {
			return fmt.Errorf("read %s: %w", path.Join(l.dir, name), err)
		}
		l.files = append(l.files, &archive.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, utf8bom)})
	}
	return nil
}

// info follows symbolic links; nil for one that leads nowhere.
func (l *chartLoader) info(e fs.DirEntry, full string) (fs.FileInfo, error) {
	if e.Type()&fs.ModeSymlink == 0 {
		return &plainInfo{DirEntry: e}, nil
	}
	info, err := l.repo.Stat(full)
	if record.IsAbsent(err) {
		return nil, nil //nolint:nilnil // nothing to read
	}
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", full, err)
	}
	return info, nil
}

// dependencies refuses a chart that lacks a dependency it declares. One that
// lies in the same repository (file://) is taken from there.
func dependencies(repo *record.FS, dir string, c *chart.Chart, depth int) error {
	if depth == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "%s: the chart's dependencies are nested too deeply", dir)
	}
	for _, req := range c.Metadata.Dependencies {
		if req == nil || has(c, req.Name) {
			continue
		}
		local, ok := strings.CutPrefix(req.Repository, "file://")
		if !ok {
			return &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(dir, "Chart.yaml"), Message: fmt.Sprintf(
				"chart %s depends on %s %s, which is missing in charts/: run `helm dependency build` and commit charts/", c.Name(), req.Name, req.Version)}
		}
		sub, err := localDependency(repo, path.Join(dir, local), depth)
		if err != nil {
			return &rutter.Error{Code: codeOf(err), File: path.Join(dir, "Chart.yaml"), Message: fmt.Sprintf("dependency %s (%s)", req.Name, req.Repository), Err: err}
		}
		c.AddDependency(sub)
	}
	return nil
}

func localDependency(repo *record.FS, dir string, depth int) (*chart.Chart, error) {
	clean, err := record.Clean(dir)
	if err != nil {
		return nil, fmt.Errorf("look for the chart: %w", err)
	}
	sub, err := loadChart(repo, clean)
	if err != nil {
		return nil, err
	}
	return sub, dependencies(repo, clean, sub, depth-1)
}

func has(c *chart.Chart, name string) bool {
	for _, d := range c.Dependencies() {
		if d.Name() == name {
			return true
		}
	}
	return false
}

func codeOf(err error) rutter.Code {
	if e := (*rutter.Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return rutter.CodeInvalid
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
