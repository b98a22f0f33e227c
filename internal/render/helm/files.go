package helm

import (
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"helm.sh/helm/v4/pkg/chart/common"
	"sigs.k8s.io/yaml"
)

// files is .Files in a template: the files of a chart that are no templates.
type files map[string][]byte

func newFiles(list []*common.File) files {
	f := make(files, len(list))
	for _, each := range list {
		f[each.Name] = each.Data
	}
	return f
}

// GetBytes returns a file; nothing for one that does not exist.
func (f files) GetBytes(name string) []byte {
	if data, ok := f[name]; ok {
		return data
	}
	return []byte{}
}

// Get returns a file as text.
func (f files) Get(name string) string { return string(f.GetBytes(name)) }

// Glob returns the files that match a pattern; an invalid one matches all, as in Helm.
func (f files) Glob(pattern string) files {
	g, err := glob.Compile(pattern, '/')
	if err != nil {
		g = glob.MustCompile("**")
	}
	out := files{}
	for name, data := range f {
		if g.Match(name) {
			out[name] = data
		}
	}
	return out
}

// AsConfig returns the files as the data of a ConfigMap.
func (f files) AsConfig() string {
	return f.data(func(b []byte) string { return string(b) })
}

// AsSecrets returns the files as the data of a Secret.
func (f files) AsSecrets() string {
	return f.data(base64.StdEncoding.EncodeToString)
}

func (f files) data(encode func([]byte) string) string {
	if f == nil {
		return ""
	}
	m := make(map[string]string, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) { // of two with one name always the same wins
		m[path.Base(name)] = encode(f[name])
	}
	out, err := yaml.Marshal(m)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}

// Lines returns the lines of a file.
func (f files) Lines(name string) []string {
	text := strings.TrimSuffix(string(f[name]), "\n")
	if len(f[name]) == 0 {
		return []string{}
	}
	return strings.Split(text, "\n")
}
