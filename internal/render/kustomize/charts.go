package kustomize

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

// chartGenerator is the kind of a generator's configuration that inflates a chart.
const chartGenerator = "HelmChartInflationGenerator"

const chartHome = types.HelmDefaultHome

// inflatedFile is the name of the file that holds what charts render.
const inflatedFile = "objects.yaml"

// charts inflates the charts of a kustomization and hands what they render in
// as a component, which the library takes up behind the generated ConfigMaps
// and Secrets, where its own generator would put it.
func (b bringer) charts(k *types.Kustomization) error {
	globals := types.HelmGlobals{}
	if k.HelmGlobals != nil {
		globals = *k.HelmGlobals
	}
	wanted := make([]generated, 0, len(k.HelmCharts))
	for _, c := range k.HelmCharts {
		if c.Namespace == "" {
			c.Namespace = b.releaseNamespace(path.Dir(b.full), k)
		}
		wanted = append(wanted, generated{globals, c, b.at.display(), b.line(c.Name), "helmCharts"})
	}
	wanted = append(wanted, b.chartGenerators(k)...)
	k.HelmCharts, k.HelmGlobals = nil, nil
	if len(wanted) == 0 {
		return nil
	}
	file := &virtualFile{charts: map[declared][]rutter.Origin{}, at: b.origin(wanted[0].chart.Name)}
	for n, g := range wanted {
		if err := b.inflate(n, g, file); err != nil && !errors.Is(err, errLater) {
			return err
		}
	}
	if b.brought.wanting() {
		return errLater
	}
	folder := path.Dir(b.put(path.Dir(b.full), inflatedFile, file))
	component := "apiVersion: " + types.ComponentVersion + "\nkind: " + types.ComponentKind + "\nresources: [" + inflatedFile + "]\n"
	if len(file.data) == 0 {
		component = strings.ReplaceAll(component, inflatedFile, "")
	}
	b.virtual[path.Join(path.Dir(b.full), folder, konfig.DefaultKustomizationFileName())] = &virtualFile{data: []byte(component)}
	b.resources[path.Join(path.Dir(b.full), folder, inflatedFile)] = true
	k.Components = slices.Insert(k.Components, 0, folder)
	return nil
}

// generated is a chart to inflate, and where that is written.
type generated struct {
	globals types.HelmGlobals
	chart   types.HelmChart
	file    string
	line    int
	field   string
}

// chartGenerators takes the configurations that inflate charts off the list of generators.
func (b bringer) chartGenerators(k *types.Kustomization) []generated {
	var out []generated
	var rest []string
	for _, entry := range k.Generators {
		file, data, line := b.at.display(), []byte(entry), b.line(chartGenerator)
		if !strings.Contains(entry, "\n") {
			full := path.Join(path.Dir(b.full), entry)
			at, ok := b.place(full)
			if !ok || b.IsDir(full) {
				rest = append(rest, entry)
				continue
			}
			var err error
			if data, err = b.load(full, at); err != nil {
				rest = append(rest, entry) // the library says that it is not there
				continue
			}
			file, line = at.display(), 1
		}
		docs := manifest.Split(data)
		all := len(docs) > 0
		var charts []generated
		for _, doc := range docs {
			var c struct {
				types.TypeMeta    `json:",inline"`
				types.HelmGlobals `json:",inline"`
				types.HelmChart   `json:",inline"`
			}
			if err := yaml.Unmarshal(doc.Data, &c); err != nil || c.APIVersion != "builtin" || c.Kind != chartGenerator {
				all = false
				break
			}
			charts = append(charts, generated{c.HelmGlobals, c.HelmChart, file, line, "generators"})
		}
		if !all {
			rest = append(rest, entry)
			continue
		}
		out = append(out, charts...)
	}
	k.Generators = rest
	return out
}

func (f *snapshotFS) noChart(file string, line int, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	switch {
	case f.in.Flux != nil:
		what = "Flux does not inflate charts: use a HelmRelease"
	case !f.in.Build.EnableHelm:
		what = "must specify --enable-helm: kustomize inflates charts only where an operator has set kustomize.buildOptions: --enable-helm in argocd-cm; else make the chart a source of its own"
	}
	return &rutter.Error{Code: rutter.CodeUnsupported, File: file, Line: line, Message: "helmCharts: " + what}
}

// inflate renders the n-th chart and adds what comes out to file.
func (b bringer) inflate(n int, g generated, file *virtualFile) error {
	bad := func(format string, args ...any) error {
		return &rutter.Error{Code: rutter.CodeInvalid, File: g.file, Line: g.line, Message: g.field + ": chart " + g.chart.Name + ": " + fmt.Sprintf(format, args...)}
	}
	if !b.in.Build.EnableHelm || b.in.Inflate == nil || b.in.Flux != nil {
		return b.noChart(g.file, g.line, "chart %s: charts are not inflated here", g.chart.Name)
	}
	c, err := b.chart(g)
	if err != nil {
		return bad("%v", err)
	}
	key := strings.Join([]string{b.at.display(), g.file, strconv.Itoa(n), c.Name, c.ReleaseName, c.Namespace}, "\x00")
	objs, err := b.brought.objects(key, c)
	if errors.Is(err, errLater) {
		return err
	}
	if err != nil {
		return &rutter.Error{Code: rutter.CodeOf(err), File: g.file, Line: g.line, Message: g.field + ": inflate chart " + g.chart.Name, Err: err}
	}
	for _, o := range objs {
		at := b.at.m.origin(b.at.path, g.line)
		if c.Local != "" && o.Origin.File != "" && b.at.m.label == "" {
			at = o.Origin
		}
		id := declared{o.GetKind(), o.GetName()}
		file.charts[id] = append(file.charts[id], at)
		text, err := kyaml.Marshal(markInflated(o.Unstructured)) // its parser reads it
		if err != nil {
			return bad("encode %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		file.data = append(append(file.data, "---\n"...), text...)
	}
	return nil
}

// markInflated returns the object as the library knows objects of charts: it
// doesn't set the namespace of such.
func markInflated(u *unstructured.Unstructured) map[string]any {
	u = u.DeepCopy()
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[konfig.HelmGeneratedAnnotation] = "true"
	u.SetAnnotations(annotations)
	return u.Object
}

// chart checks what a kustomization says of a chart.
func (b bringer) chart(g generated) (Chart, error) {
	h := g.chart
	dir := b.at.dir().path
	home := g.globals.ChartHome
	if home == "" {
		home = chartHome
	}
	c := Chart{Name: h.Name, Repo: h.Repo, Version: h.Version, ReleaseName: h.ReleaseName, NameTemplate: h.NameTemplate, Namespace: h.Namespace,
		ValuesFile: h.ValuesFile, ValuesInline: h.ValuesInline, ValuesMerge: h.ValuesMerge,
		IncludeCRDs: h.IncludeCRDs, SkipTests: h.SkipTests, SkipHooks: h.SkipHooks, Devel: h.Devel,
		KubeVersion: firstOf(h.KubeVersion, b.in.Options.KubeVersion, b.in.KubeVersion), APIVersions: b.in.APIVersions,
		Files: b.at.m.repo, Dir: dir, Home: path.Join(dir, home), At: rutter.Origin{File: g.file, Line: g.line}, download: b.brought.download}
	switch {
	case len(h.ApiVersions) > 0:
		c.APIVersions = h.ApiVersions
	case len(b.in.Options.APIVersions) > 0:
		c.APIVersions = b.in.Options.APIVersions
	}
	switch {
	case h.Name == "":
		return c, rutter.Errorf(rutter.CodeInvalid, "the name is missing")
	case strings.HasPrefix(h.Name, "-") || strings.HasPrefix(h.ReleaseName, "-"):
		return c, rutter.Errorf(rutter.CodeInvalid, "name and releaseName must not start with a dash")
	case leaves(path.Clean(h.Name)) || strings.Contains(h.Name, `\`):
		return c, rutter.Errorf(rutter.CodeInvalid, "the name must not lead out of the folder of charts")
	case path.IsAbs(home) || leaves(c.Home):
		return c, rutter.Errorf(rutter.CodeInvalid, "helmGlobals.chartHome: %s leaves the repository", home)
	case h.ValuesFile == "" && !b.in.Build.LoadRestrictorNone && leaves(path.Clean(home)):
		return c, rutter.Errorf(rutter.CodeInvalid, "helmGlobals.chartHome: %s is not in or below the folder of the kustomization", home)
	}
	if h.Version != "" && h.Repo != "" {
		c.Home = path.Join(c.Home, h.Name+"-"+h.Version)
	}
	if local := path.Join(c.Home, h.Name); c.Files.IsDir(local) {
		c.Local = local
	} else if h.Repo == "" {
		return c, rutter.Errorf(rutter.CodeInvalid, "no repo is given, and there is no chart in %s", local)
	}
	return c, b.valuesFiles(&c, h)
}

// valuesFiles makes the values files relative to the repository.
func (b bringer) valuesFiles(c *Chart, h types.HelmChart) error {
	if !slices.Contains([]string{"", "merge", "override", "replace"}, h.ValuesMerge) {
		return rutter.Errorf(rutter.CodeInvalid, "valuesMerge must be merge, override or replace, not %q", h.ValuesMerge)
	}
	inside := func(file string) (string, error) {
		if isWeb(file) {
			return file, nil
		}
		clean := path.Clean(file)
		if path.IsAbs(clean) || leaves(path.Join(c.Dir, clean)) || !b.in.Build.LoadRestrictorNone && leaves(clean) {
			return "", rutter.Errorf(rutter.CodeInvalid, "the values file %s is not in or below the folder of the kustomization", file)
		}
		return path.Join(c.Dir, clean), nil
	}
	var err error
	if h.ValuesFile != "" {
		if c.ValuesFile, err = inside(h.ValuesFile); err != nil {
			return err
		}
	}
	for _, file := range h.AdditionalValuesFiles {
		full, err := inside(file)
		if err != nil {
			return err
		}
		c.AdditionalValuesFiles = append(c.AdditionalValuesFiles, full)
	}
	return nil
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// layer is a kustomization that is being read, with the folders that it still
// asks for, in the order in which the library does.
type layer struct {
	file, dir, namespace string
	asks                 []string
}

// enter notes that a kustomization is read. The library goes into the depth, in
// order, so the one that asked for it is known.
func (f *snapshotFS) enter(full string, k *types.Kustomization) {
	dir := path.Dir(full)
	l := layer{file: full, dir: dir, namespace: f.inherited(dir)}
	if k.Namespace != "" {
		l.namespace = k.Namespace
	}
	for _, list := range [][]string{k.Resources, k.Bases, k.Generators, k.Components, k.Transformers, k.Validators} {
		for _, e := range list {
			l.asks = append(l.asks, path.Join(dir, e))
		}
	}
	if n := len(f.layers); n > 0 {
		top := &f.layers[n-1]
		if i := slices.Index(top.asks, dir); i >= 0 {
			top.asks = top.asks[i+1:]
		}
	}
	f.layers = append(f.layers, l)
}

// inherited leaves the layers that are done, and returns the namespace of the
// one that asks for dir.
func (f *snapshotFS) inherited(dir string) string {
	for n := len(f.layers); n > 0; n = len(f.layers) {
		if slices.Contains(f.layers[n-1].asks, dir) {
			return f.layers[n-1].namespace
		}
		f.layers = f.layers[:n-1]
	}
	return ""
}

// releaseNamespace is that of charts which give none.
func (f *snapshotFS) releaseNamespace(dir string, k *types.Kustomization) string {
	if k.Namespace != "" {
		return k.Namespace
	}
	return f.inherited(dir)
}
