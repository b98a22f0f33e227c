package helm

import (
	"cmp"
	"maps"
	"path"
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
	// file turns Helm's name of a template into its place.
	file     func(name string) string
	objs     []rutter.Object
	warnings []string
}

// rendered is one manifest of a template's output.
type rendered struct {
	file string
	docs []any
	kind string
	// events are what a hook is for; nil for what is no hook.
	events []release.HookEvent
}

// output sorts what the templates wrote: CRDs first, then objects in Helm's
// order of installation, then hooks, which stay objects with annotations. The
// notes are for a person at a terminal and are left out.
func output(in Input, c *chart.Chart, files map[string]string, file func(string) string) ([]rutter.Object, []string, error) {
	out := &collector{file: file}
	if !in.Options.SkipCrds {
		for _, crd := range c.CRDObjects() {
			one, err := out.read(crd.Filename, string(crd.File.Data))
			if err != nil {
				return nil, nil, err
			}
			if err := out.add(one); err != nil {
				return nil, nil, err
			}
		}
	}
	objects, hooks, err := out.manifests(files)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range objects {
		if err := out.add(m); err != nil {
			return nil, nil, err
		}
	}
	for _, h := range hooks {
		if in.Options.SkipTests && slices.Contains(h.events, release.HookTest) {
			continue
		}
		if err := out.add(h); err != nil {
			return nil, nil, err
		}
	}
	return out.objs, out.warnings, nil
}

// manifests reads the output of all templates, and puts objects and hooks into
// Helm's order each. A hook of an unknown kind is left out, as in Helm.
func (c *collector) manifests(files map[string]string) (objects, hooks []rendered, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		if strings.HasSuffix(name, "NOTES.txt") || strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(text) == "" {
			continue
		}
		entries := releaseutil.SplitManifests(text)
		keys := slices.Collect(maps.Keys(entries))
		slices.SortFunc(keys, func(a, b string) int { // manifest-9 is before manifest-10
			return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
		})
		for _, key := range keys {
			m, err := c.read(name, entries[key])
			if err != nil {
				return nil, nil, err
			}
			switch isHook, known := m.classify(); {
			case !isHook:
				objects = append(objects, m)
			case known:
				hooks = append(hooks, m)
			}
		}
	}
	inInstallOrder(objects)
	inInstallOrder(hooks)
	return objects, hooks, nil
}

// read decodes one text, which may hold several documents.
func (c *collector) read(name, text string) (rendered, error) {
	m := rendered{file: c.file(name)}
	for _, doc := range manifest.Split([]byte(text)) {
		v, warning, err := manifest.DecodeLenient(doc, m.file)
		if err != nil {
			return m, err
		}
		if warning != "" {
			c.warnings = append(c.warnings, warning)
		}
		m.docs = append(m.docs, v)
	}
	return m, nil
}

// classify finds out the kind, and whether it is a hook and of which events.
func (m *rendered) classify() (isHook, known bool) {
	if len(m.docs) == 0 {
		return false, false
	}
	head, _ := m.docs[0].(map[string]any)
	m.kind, _ = head["kind"].(string)
	meta, _ := head["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	value, isHook := annotations[release.HookAnnotation]
	if !isHook {
		return false, false
	}
	text, _ := value.(string)
	for each := range strings.SplitSeq(text, ",") {
		e, ok := hookEvent(strings.ToLower(strings.TrimSpace(each)))
		if !ok {
			return true, false
		}
		m.events = append(m.events, e)
	}
	return true, true
}

func hookEvent(name string) (release.HookEvent, bool) {
	switch e := release.HookEvent(name); e {
	case "test-success": // what Helm 2 called it
		return release.HookTest, true
	case release.HookPreInstall, release.HookPostInstall, release.HookPreDelete, release.HookPostDelete, release.HookPreUpgrade,
		release.HookPostUpgrade, release.HookPreRollback, release.HookPostRollback, release.HookTest:
		return e, true
	}
	return "", false
}

// inInstallOrder sorts by kind: first those that Helm knows, in its order, then
// the others by name.
func inInstallOrder(list []rendered) {
	rank := make(map[string]int, len(releaseutil.InstallOrder))
	for i, kind := range releaseutil.InstallOrder {
		rank[kind] = i - len(releaseutil.InstallOrder)
	}
	slices.SortStableFunc(list, func(a, b rendered) int {
		if d := cmp.Compare(rank[a.kind], rank[b.kind]); d != 0 || rank[a.kind] < 0 {
			return d
		}
		return strings.Compare(a.kind, b.kind)
	})
}

func (c *collector) add(m rendered) error {
	for _, v := range m.docs {
		objs, err := manifest.Objects(v, rutter.Origin{File: m.file})
		if err != nil {
			return err
		}
		c.objs = append(c.objs, objs...)
	}
	return nil
}
