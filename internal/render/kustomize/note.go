package kustomize

import (
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// The annotations in which the library notes where objects come from and what
// has changed them.
const (
	originAnnotation     = "config.kubernetes.io/origin"
	transformsAnnotation = "alpha.config.kubernetes.io/transformations"
)

// takeNote takes the library's note of the origin off an object, or makes it
// right where the user wants it, and returns the file as the library sees it.
func (f *snapshotFS) takeNote(m map[string]any, keep bool) string {
	meta, _ := m["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	f.retellTransforms(annotations)
	text, ok := annotations[originAnnotation].(string)
	if !ok {
		return ""
	}
	var n resource.Origin
	if err := kyaml.Unmarshal([]byte(text), &n); err != nil {
		return ""
	}
	file := n.Path
	if file == "" {
		file = n.ConfiguredIn
	}
	if keep {
		f.retell(annotations, originAnnotation, text, &n, func() { f.translate(&n) })
	} else {
		delete(annotations, originAnnotation)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
	}
	if file == "" || strings.HasPrefix(file, "/") {
		return ""
	}
	return f.seen(file)
}

// seen is the path of a file that a note names relative to the root.
func (f *snapshotFS) seen(file string) string {
	return path.Join(path.Dir(f.rootFile()), file)
}

func (f *snapshotFS) retellTransforms(annotations map[string]any) {
	text, ok := annotations[transformsAnnotation].(string)
	if !ok {
		return
	}
	var all []*resource.Origin
	if err := kyaml.Unmarshal([]byte(text), &all); err != nil {
		return
	}
	f.retell(annotations, transformsAnnotation, text, &all, func() {
		for _, n := range all {
			f.translate(n)
		}
	})
}

// retell rewrites a note that names a place which only the library sees.
func (f *snapshotFS) retell(annotations map[string]any, key, text string, v any, change func()) {
	if !strings.Contains(text, f.nonce) {
		return
	}
	change()
	if out, err := kyaml.Marshal(v); err == nil {
		annotations[key] = string(out)
	}
}

// translate says of a note what the library would have said, had it fetched itself.
func (f *snapshotFS) translate(n *resource.Origin) {
	for _, field := range []*string{&n.Path, &n.ConfiguredIn} {
		if !strings.Contains(*field, f.nonce) {
			continue
		}
		full := f.seen(*field)
		v := f.virtual[full]
		switch at, ok := f.place(full); {
		case v != nil && v.charts != nil:
			n.Path, n.ConfiguredIn = "", path.Join(path.Dir(path.Dir(*field)), "kustomization.yaml")
			n.ConfiguredBy = kyaml.ResourceIdentifier{TypeMeta: kyaml.TypeMeta{APIVersion: "builtin", Kind: chartGenerator}}
			f.translate(n)
			return
		case v != nil:
			f.translateWeb(n, field, v.entry)
		case ok:
			*field, n.Repo, n.Ref = at.path, at.m.base.url, at.m.base.ref
		}
	}
}

// translateWeb names a file on the web, in which the library sees a repository where it can.
func (f *snapshotFS) translateWeb(n *resource.Origin, field *string, entry string) {
	if base, ok := parseGit(entry); ok {
		*field, n.Repo, n.Ref = base.dir, base.url, base.ref
		return
	}
	*field = path.Join(path.Dir(path.Dir(*field)), entry)
}
