package kustomize

import (
	"errors"
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

// kustomization checks one kustomization before the library acts on it, and
// returns it in a form that the library does not complain about on stderr.
func (f *snapshotFS) kustomization(file string, data []byte) ([]byte, error) {
	c, err := f.checked(file, data)
	if err != nil {
		return nil, err
	}
	k := c.kustomization
	if len(k.OpenAPI) > 0 && !f.alone {
		f.needsAlone = true
		return nil, errAlone
	}
	if err := f.markPlugins(file, k); err != nil {
		return nil, err
	}
	f.kustomizations[file] = k
	for _, list := range [][]string{k.Resources, k.Bases} {
		for _, entry := range list {
			f.resources[path.Join(path.Dir(file), entry)] = true
		}
	}
	if c.quiet != nil {
		return c.quiet, nil
	}
	return data, nil
}

// checked parses and checks a kustomization; of the same content in the same
// place it does so once. The one at the root is parsed already.
func (f *snapshotFS) checked(file string, data []byte) (*content, error) {
	if file == f.root.file {
		return &content{kustomization: &f.root.k}, refuse(file, &f.root.k)
	}
	hash := f.repo.HashOf(file)
	if c := f.known.get(file, hash); c != nil && c.kustomization != nil {
		return c, nil
	}
	c := &content{kustomization: &types.Kustomization{}}
	if err := c.kustomization.Unmarshal(data); err != nil {
		// The library reads it in the same way and would stop at it, too.
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "is no valid kustomization: " + oneLine(err.Error())}
	}
	if err := refuse(file, c.kustomization); err != nil {
		return nil, err
	}
	if quiet(c.kustomization) {
		var err error
		if c.quiet, err = yaml.Marshal(c.kustomization); err != nil {
			return nil, rutter.Errorf(rutter.CodeInternal, "encode the kustomization %s: %w", file, err)
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
	if len(k.CommonLabels) > 0 && len(k.Labels) == 0 {
		k.Labels = []types.Label{{Pairs: k.CommonLabels, IncludeSelectors: true}}
		k.CommonLabels, changed = nil, true
	}
	return changed
}

var (
	httpURL  = regexp.MustCompile(`(?i)^\s*https?:`)
	loginURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*@`)
)

// isRemote recognises, generously, what the library would fetch with git.
func isRemote(entry string) bool {
	e := strings.ToLower(strings.TrimSpace(entry))
	return httpURL.MatchString(e) || strings.Contains(e, "://") || strings.HasPrefix(e, "git::") ||
		strings.HasPrefix(e, "github.com/") || strings.HasPrefix(e, "github.com:") || loginURL.MatchString(e)
}

func remote(file, field, entry string) error {
	return &rutter.Error{Code: rutter.CodeUnsupported, File: file,
		Message: field + ": " + strings.TrimSpace(entry) + " is not in this repository; remote files and bases are not fetched: copy it into the repository and name its path"}
}

// refuse stops what would leave the repository or run a program.
func refuse(file string, k *types.Kustomization) error {
	if len(k.HelmCharts) > 0 || len(k.HelmChartInflationGenerator) > 0 || k.HelmGlobals != nil {
		return &rutter.Error{Code: rutter.CodeUnsupported, File: file,
			Message: "helmCharts: kustomize does not inflate charts here: make the chart a source of its own"}
	}
	for field, list := range map[string][]string{"resources": k.Resources, "bases": k.Bases, "components": k.Components,
		"generators": k.Generators, "transformers": k.Transformers, "validators": k.Validators} {
		for _, entry := range list {
			if !strings.Contains(entry, "\n") && isRemote(entry) {
				return remote(file, field, entry)
			}
		}
	}
	for _, l := range loads(k) {
		if httpURL.MatchString(l.path) {
			return remote(file, l.field, l.path)
		}
	}
	return nil
}

// load is a file that a kustomization asks for.
type load struct{ field, path string }

func loads(k *types.Kustomization) []load {
	var out []load
	add := func(field string, paths ...string) {
		for _, p := range paths {
			out = append(out, load{field, p})
		}
	}
	add("crds", k.Crds...)
	add("configurations", k.Configurations...)
	add("openapi.path", k.OpenAPI["path"])
	for _, p := range k.PatchesStrategicMerge {
		add("patchesStrategicMerge", string(p))
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) {
		add("patches.path", p.Path)
	}
	for _, r := range k.Replacements {
		add("replacements.path", r.Path)
	}
	pairs := func(field string, src types.KvPairSources) {
		add(field+".envs", append(slices.Clone(src.EnvSources), src.EnvSource)...)
		for _, f := range src.FileSources {
			add(field+".files", f[strings.LastIndex(f, "=")+1:], f)
		}
	}
	for _, g := range k.ConfigMapGenerator {
		pairs("configMapGenerator", g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		pairs("secretGenerator", g.KvPairSources)
	}
	return out
}

// markPlugins notes the files that configure plugins, so that they are checked
// when they are read: a plugin loads files by path, or by URL.
func (f *snapshotFS) markPlugins(file string, k *types.Kustomization) error {
	dir := path.Dir(file)
	lists := slices.Concat(k.Generators, k.Transformers, k.Validators)
	if f.plugins[dir] {
		plain := *k
		plain.TypeMeta, plain.MetaData, plain.Resources, plain.Bases = types.TypeMeta{}, nil, nil, nil
		plain.BuildMetadata = nil
		if err := plain.CheckEmpty(); err == nil {
			return &rutter.Error{Code: rutter.CodeUnsupported, File: file,
				Message: "a kustomization that is used as a generator, transformer or validator may only list resources: list the configurations one by one"}
		}
		lists = slices.Concat(lists, k.Resources, k.Bases)
	}
	for _, entry := range lists {
		if strings.Contains(entry, "\n") {
			if err := checkPlugin(file, []byte(entry)); err != nil {
				return err
			}
			continue
		}
		f.plugins[path.Join(dir, entry)] = true
	}
	return nil
}

// checkPlugin refuses a plugin's configuration that loads from a URL.
func checkPlugin(file string, data []byte) error {
	for _, doc := range manifest.Split(data) {
		v, err := manifest.Decode(doc, file)
		if err != nil {
			return err
		}
		if bad := urlUnder(v, ""); bad != "" {
			return remote(file, "plugin configuration", bad)
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
			if httpURL.MatchString(x) || httpURL.MatchString(x[strings.LastIndex(x, "=")+1:]) {
				return x
			}
		}
	}
	return ""
}
