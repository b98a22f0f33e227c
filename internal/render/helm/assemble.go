package helm

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/rutterhq/rutter"
)

// loaded is a chart with what lies in its charts/. It is shared by all renders
// of this content and never changed: see clone.
type loaded struct {
	chart *chart.Chart
	hash  string
	// places says where a file of a chart lies, relative to the outermost chart.
	places map[*common.File]string
}

// assembler builds a chart from its files.
type assembler struct {
	dir    string
	places map[*common.File]string
	budget *budget
}

// assemble builds the chart whose files these are. dir is for errors.
func assemble(files []*archive.BufferedFile, dir string) (*loaded, error) {
	a := &assembler{dir: dir, places: map[*common.File]string{}, budget: newBudget()}
	c, err := a.chart(files, "", maxDependencyDepth)
	if err != nil {
		return nil, err
	}
	if v := c.Metadata.APIVersion; v != chart.APIVersionV1 && v != chart.APIVersionV2 {
		return nil, a.invalid("Chart.yaml", fmt.Sprintf("apiVersion %q is none that `helm template` renders: use v2", v))
	}
	return &loaded{chart: c, places: a.places}, nil
}

// chart builds one chart; where is its place within the outermost one.
func (a *assembler) chart(files []*archive.BufferedFile, where string, depth int) (*chart.Chart, error) {
	if depth == 0 {
		return nil, a.invalid(where, "charts are nested too deeply")
	}
	own, subs := apart(files)
	c, err := loader.LoadFiles(own)
	if err != nil {
		return nil, a.unreadableFile(where, own, err)
	}
	for _, f := range c.Raw {
		switch f.Name {
		case "values.yaml", "Chart.yaml", "requirements.yaml":
			a.places[f] = path.Join(where, f.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(subs)) {
		sub, err := a.subchart(name, subs[name], path.Join(where, "charts", name), depth-1)
		if err != nil {
			return nil, err
		}
		c.AddDependency(sub)
	}
	inNameOrder(c)
	return c, nil
}

// apart separates a chart's own files from those of the charts in charts/, by
// the name of their folder or archive.
func apart(files []*archive.BufferedFile) (own []*archive.BufferedFile, subs map[string][]*archive.BufferedFile) {
	subs = map[string][]*archive.BufferedFile{}
	for _, f := range files {
		rest, ok := strings.CutPrefix(f.Name, "charts/")
		if !ok || path.Ext(f.Name) == ".prov" {
			own = append(own, f)
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		if strings.IndexAny(name, "_.") != 0 {
			subs[name] = append(subs[name], &archive.BufferedFile{Name: rest, Data: f.Data})
		}
	}
	return own, subs
}

func (a *assembler) subchart(name string, files []*archive.BufferedFile, where string, depth int) (*chart.Chart, error) {
	if path.Ext(name) == ".tgz" {
		if files[0].Name != name {
			return nil, a.invalid(where, "is a folder, not an archive: rename it")
		}
		members, err := a.budget.unpack(files[0].Data)
		if err != nil {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(a.dir, where), Message: "the chart's archive cannot be read", Err: err}
		}
		return a.chart(members, where, depth)
	}
	inside := make([]*archive.BufferedFile, 0, len(files))
	for _, f := range files {
		if _, rest, ok := strings.Cut(f.Name, "/"); ok {
			inside = append(inside, &archive.BufferedFile{Name: rest, Data: f.Data})
		}
	}
	return a.chart(inside, where, depth)
}

func (a *assembler) invalid(where, message string) error {
	return &rutter.Error{Code: rutter.CodeInvalid, File: path.Join(a.dir, where), Message: message}
}

// inNameOrder orders the charts in charts/: the same chart must always render
// the same.
func inNameOrder(c *chart.Chart) {
	deps := c.Dependencies()
	slices.SortStableFunc(deps, func(a, b *chart.Chart) int {
		return cmp.Or(cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Metadata.Version, b.Metadata.Version))
	})
	c.SetDependencies(deps...)
}

// clone copies what rendering changes in a chart: the tree of charts, which
// dependencies are on and what they are called. Files and values stay shared;
// Helm copies values before it changes them.
func clone(c *chart.Chart) *chart.Chart {
	out := *c
	meta := *c.Metadata
	if meta.Dependencies != nil {
		meta.Dependencies = make([]*chart.Dependency, len(c.Metadata.Dependencies))
		for i, d := range c.Metadata.Dependencies {
			each := *d
			meta.Dependencies[i] = &each
		}
	}
	out.Metadata = &meta
	deps := make([]*chart.Chart, len(c.Dependencies()))
	for i, d := range c.Dependencies() {
		deps[i] = clone(d)
	}
	out.SetDependencies(deps...)
	return &out
}
