package kustomize

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

var errAlone = errors.New("the openapi field needs a render of its own")

// kustomization checks one kustomization before the library acts on it, brings
// in what it names elsewhere, and returns it in a form that the library does
// not complain about on stderr.
func (f *snapshotFS) kustomization(full string, at place, data []byte) ([]byte, error) {
	f.visits++
	if f.visits > maxKustomizations {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: at.display(), Message: fmt.Sprintf("more than %d kustomizations are read for one: list each base once", maxKustomizations)}
	}
	c, err := f.checked(full, at, data)
	if err != nil {
		return nil, err
	}
	k := c.kustomization
	if len(k.OpenAPI) > 0 && !f.alone {
		f.needsAlone = true
		return nil, errAlone
	}
	out := data
	switch {
	case c.elsewhere || len(k.Generators)+len(k.Transformers)+len(k.Validators) > 0:
		if k, err = f.bringIn(full, at, data); err != nil {
			return nil, err
		}
		if out, err = encode(at.display(), k); err != nil {
			return nil, err
		}
	case c.quiet != nil:
		out = c.quiet
	}
	if err := f.markPlugins(full, at, k); err != nil {
		return nil, err
	}
	f.enter(full, k)
	f.kustomizations[full], f.texts[full] = k, data
	if full == f.rootFile() {
		f.texts[full] = f.root.text
	}
	for _, list := range [][]string{k.Resources, k.Bases} {
		for _, entry := range list {
			f.resources[path.Join(path.Dir(full), entry)] = true
		}
	}
	return out, nil
}

func encode(file string, k *types.Kustomization) ([]byte, error) {
	data, err := yaml.Marshal(k)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "encode the kustomization %s: %w", file, err)
	}
	return data, nil
}

// decode reads a kustomization as the library does, which would stop at the same errors.
func decode(file string, data []byte) (*types.Kustomization, error) {
	k := &types.Kustomization{}
	err := k.Unmarshal(data)
	if err == nil {
		return k, nil
	}
	text := oneLine(strings.TrimPrefix(err.Error(), "invalid Kustomization: "))
	if strings.Contains(text, "yaml: ") {
		if err := syntax(file, data); err != nil {
			return nil, err
		}
	}
	out := &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "is no valid kustomization: " + text}
	if m := unknownField.FindStringSubmatch(text); m != nil {
		out.Line = lineOf(data, m[1]+":")
		out.Message = "is no valid kustomization: the field " + m[1] + " is unknown: correct its name, or remove it"
	}
	return nil, out
}

var unknownField = regexp.MustCompile(`^json: unknown field "([^"]+)"$`)

// checked parses and checks a kustomization; of the same content in the same
// place it does so once. The one at the root is parsed already.
func (f *snapshotFS) checked(full string, at place, data []byte) (*content, error) {
	file := at.display()
	if full == f.rootFile() {
		c := &content{kustomization: &f.root.k, elsewhere: namesElsewhere(&f.root.k)}
		return c, refuse(at, &f.root.k)
	}
	hash := f.hashOf(full, at)
	if c := f.known.get(file, hash); c != nil && c.kustomization != nil {
		return c, nil
	}
	k, err := decode(file, data)
	if err != nil {
		return nil, err
	}
	if err := refuse(at, k); err != nil {
		return nil, err
	}
	c := &content{kustomization: k, elsewhere: namesElsewhere(k)}
	if quiet(k) {
		if c.quiet, err = encode(file, k); err != nil {
			return nil, err
		}
	}
	f.known.put(file, hash, c)
	return c, nil
}

// quiet moves deprecated fields to the ones that the library itself would move
// them to, where that cannot change the result, because it complains of each
// to the process's standard error. It reports whether it changed something.
func quiet(k *types.Kustomization) bool {
	changed := false
	if k.Bases != nil {
		k.Resources, k.Bases, changed = append(slices.Clone(k.Resources), k.Bases...), nil, true
	}
	if k.ImageTags != nil {
		k.Images, k.ImageTags, changed = append(slices.Clone(k.Images), k.ImageTags...), nil, true
	}
	if len(k.CommonLabels) > 0 && len(k.Labels) == 0 {
		k.Labels = []types.Label{{Pairs: k.CommonLabels, IncludeSelectors: true}}
		k.CommonLabels, changed = nil, true
	}
	return changed
}

// refuse stops what no file system and no source could make safe.
func refuse(at place, k *types.Kustomization) error {
	for _, l := range inline(k) {
		if err := checkSize(at.display(), []byte(l)); err != nil {
			return err
		}
	}
	if at.m.label == "" {
		return nil
	}
	for _, e := range entries(k) {
		if !isElsewhere(*e.text) && !strings.Contains(*e.text, "\n") && leaves(path.Join(path.Dir(at.path), *e.text)) {
			return &rutter.Error{Code: rutter.CodeInvalid, File: at.display(),
				Message: e.field + ": " + *e.text + " leaves the repository " + at.m.label + ": what is fetched may only name what lies in it"}
		}
	}
	return nil
}

// inline returns the YAML that a kustomization holds as text.
func inline(k *types.Kustomization) []string {
	var out []string
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) {
		out = append(out, p.Patch)
	}
	for _, p := range k.PatchesStrategicMerge {
		out = append(out, string(p))
	}
	return slices.Concat(out, k.Generators, k.Transformers, k.Validators)
}

// entry is something that a kustomization names by path or by address.
type entry struct {
	field string
	text  *string
	// prefix is the key of a generator's file, which stands before the path.
	prefix string
	// base says that it may be a folder; only says that it can't be a file.
	base, only bool
}

// entries returns all that a kustomization names, so that it can be replaced.
func entries(k *types.Kustomization) []entry {
	var out []entry
	bases := func(field string, list []string, only bool) {
		for i := range list {
			out = append(out, entry{field: field, text: &list[i], base: true, only: only})
		}
	}
	file := func(field string, text *string) {
		if *text != "" {
			out = append(out, entry{field: field, text: text})
		}
	}
	bases("resources", k.Resources, false)
	bases("bases", k.Bases, false)
	bases("components", k.Components, true)
	bases("generators", k.Generators, false)
	bases("transformers", k.Transformers, false)
	bases("validators", k.Validators, false)
	for i := range k.Crds {
		file("crds", &k.Crds[i])
	}
	for i := range k.Configurations {
		file("configurations", &k.Configurations[i])
	}
	for i := range k.PatchesStrategicMerge {
		file("patchesStrategicMerge", (*string)(&k.PatchesStrategicMerge[i]))
	}
	for i := range k.Patches {
		file("patches.path", &k.Patches[i].Path)
	}
	for i := range k.PatchesJson6902 {
		file("patchesJson6902.path", &k.PatchesJson6902[i].Path)
	}
	for i := range k.Replacements {
		file("replacements.path", &k.Replacements[i].Path)
	}
	for i := range k.ConfigMapGenerator {
		out = append(out, pairs("configMapGenerator", &k.ConfigMapGenerator[i].KvPairSources)...)
	}
	for i := range k.SecretGenerator {
		out = append(out, pairs("secretGenerator", &k.SecretGenerator[i].KvPairSources)...)
	}
	return out
}

func pairs(field string, src *types.KvPairSources) []entry {
	var out []entry
	for i := range src.EnvSources {
		out = append(out, entry{field: field + ".envs", text: &src.EnvSources[i]})
	}
	if src.EnvSource != "" {
		out = append(out, entry{field: field + ".env", text: &src.EnvSource})
	}
	for i, text := range src.FileSources {
		e := entry{field: field + ".files", text: &src.FileSources[i]}
		if key, _, ok := strings.Cut(text, "="); ok && !isWeb(text) {
			e.prefix = key + "="
		}
		out = append(out, e)
	}
	return out
}

// address is what an entry names, without a generator's key.
func (e entry) address() string { return strings.TrimPrefix(*e.text, e.prefix) }

// elsewhere reports whether an entry names something outside of the repository.
func (e entry) elsewhere() bool {
	if e.base {
		return isElsewhere(*e.text)
	}
	return isWeb(strings.ToLower(strings.TrimSpace(e.address())))
}

// namesElsewhere reports whether something has to be brought in.
func namesElsewhere(k *types.Kustomization) bool {
	if len(k.HelmCharts) > 0 || len(k.HelmChartInflationGenerator) > 0 || k.OpenAPI["path"] != "" && isWeb(k.OpenAPI["path"]) {
		return true
	}
	return slices.ContainsFunc(entries(k), entry.elsewhere)
}

// markPlugins notes the files that configure plugins, so that they are checked
// when they are read: a plugin loads files by path, or by URL.
func (f *snapshotFS) markPlugins(full string, at place, k *types.Kustomization) error {
	dir := path.Dir(full)
	lists := slices.Concat(k.Generators, k.Transformers, k.Validators)
	if f.plugins[dir] {
		lists = slices.Concat(lists, k.Resources, k.Bases)
	}
	for _, e := range lists {
		if strings.Contains(e, "\n") {
			if err := f.checkPlugin(at.display(), []byte(e)); err != nil {
				return err
			}
			continue
		}
		f.plugins[path.Join(dir, e)] = true
	}
	return nil
}

// checkPlugin refuses a plugin that is not built in, and the configuration of
// one that loads from a URL or would run helm.
func (f *snapshotFS) checkPlugin(file string, data []byte) error {
	for _, doc := range manifest.Split(data) {
		v, err := manifest.Decode(doc, file)
		if err != nil {
			return err
		}
		m, ok := v.(map[string]any)
		if !ok {
			return &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: doc.Line, Message: "the configuration of a generator, transformer or validator must be an object"}
		}
		if version, _ := m["apiVersion"].(string); version != "builtin" {
			kind, _ := m["kind"].(string)
			return &rutter.Error{Code: rutter.CodeUnsupported, File: file, Line: doc.Line,
				Message: kind + " is no builtin of kustomize, and programs, containers and Go plugins are not run here: use a builtin (apiVersion: builtin), or a config management plugin"}
		}
		if m["kind"] == chartGenerator {
			return f.noChart(file, doc.Line, "lies among other configurations: list it in a file of its own under generators, or use helmCharts")
		}
		if bad := urlUnder(v, ""); bad != "" {
			return &rutter.Error{Code: rutter.CodeUnsupported, File: file, Line: doc.Line,
				Message: printable(bad) + ": the configuration of a plugin can't name files on the web: copy the file into the repository and name its path"}
		}
	}
	return nil
}

// urlUnder returns a URL in a field that plugins take for a path.
func urlUnder(v any, field string) string {
	switch x := v.(type) {
	case map[string]any:
		for k, item := range x {
			if bad := urlUnder(item, k); bad != "" {
				return bad
			}
		}
	case []any:
		for _, item := range x {
			if bad := urlUnder(item, field); bad != "" {
				return bad
			}
		}
	case string:
		switch strings.ToLower(field) {
		case "path", "paths", "files", "envs", "env":
			if isWeb(strings.TrimSpace(x)) || isWeb(x[strings.LastIndex(x, "=")+1:]) {
				return x
			}
		}
	}
	return ""
}
