package helm

import (
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
)

// family is a chart together with the dependencies that do not lie in its
// charts/ but were found elsewhere. It is shared and never changed.
type family struct {
	*loaded

	// at is where the chart lies, for a person: a folder of the repository, or
	// the name of a chart that was fetched.
	at    string
	found []*family
}

// clone returns a chart that one render may change.
func (f *family) clone() *chart.Chart {
	c := clone(f.chart)
	for _, sub := range f.found {
		c.AddDependency(sub.clone())
	}
	return c
}

// place says where a file of the family lies.
func (f *family) place(file *common.File) string {
	if rel, ok := f.places[file]; ok {
		return path.Join(f.at, rel)
	}
	for _, sub := range f.found {
		if p := sub.place(file); p != "" {
			return p
		}
	}
	return ""
}

// identity names the content of the whole family.
func (f *family) identity() string {
	id := f.hash
	var idSb46 strings.Builder
	for _, sub := range f.found {
		idSb46.WriteString("+(" + sub.identity() + ")")
	}
	id += idSb46.String()
	return id
}

// fileOf returns a file of a chart as it was read; nil when it has none.
func fileOf(c *chart.Chart, name string) *common.File {
	for _, f := range c.Raw {
		if f.Name == name {
			return f
		}
	}
	return nil
}
