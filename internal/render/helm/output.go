package helm

import (
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

// collector gathers objects in the order of `helm template`.
type collector struct {
	chart string
	// file turns Helm's name of a template into its place.
	file     func(name string) string
	objs     []rutter.Object
	warnings []string
}

// output sorts what the templates wrote: CRDs first, then objects in Helm's
// order of installation, then hooks, which stay objects with annotations. The
// notes are for a person at a terminal and are left out.
func output(in Input, c *chart.Chart, files map[string]string, file func(string) string) ([]rutter.Object, []string, error) {
	out := &collector{chart: c.Name(), file: file}
	if !in.Options.SkipCrds {
		for _, crd := range c.CRDObjects() {
			if err := out.add(crd.Filename, string(crd.File.Data)); err != nil {
				return nil, nil, err
			}
		}
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, nil, out.unreadable(files, err)
	}
	for _, m := range manifests {
		if err := out.add(m.Name, m.Content); err != nil {
			return nil, nil, err
		}
	}
	for _, h := range hooks {
		if in.Options.SkipTests && slices.Contains(h.Events, release.HookTest) {
			continue
		}
		if err := out.add(h.Path, h.Manifest); err != nil {
			return nil, nil, err
		}
	}
	return out.objs, out.warnings, nil
}

// add reads one text, which may hold several documents.
func (c *collector) add(name, text string) error {
	file := c.file(name)
	for _, doc := range manifest.Split([]byte(text)) {
		v, warning, err := manifest.DecodeLenient(doc, file)
		if err != nil {
			return err
		}
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
		objs, err := manifest.Objects(v, rutter.Origin{File: file})
		if err != nil {
			return err
		}
		c.objs = append(c.objs, objs...)
	}
	return nil
}

// unreadable finds the file that Helm could not sort and says what is wrong with it.
func (c *collector) unreadable(files map[string]string, cause error) error {
	for name, text := range files {
		for _, doc := range manifest.Split([]byte(text)) {
			if _, _, err := manifest.DecodeLenient(doc, c.file(name)); err != nil && strings.Contains(cause.Error(), name) {
				return err
			}
		}
	}
	return rutter.Errorf(rutter.CodeInvalid, "the output of chart %s cannot be read: %s", c.chart, oneLine(cause.Error()))
}
