package decrypt

import (
	"bytes"
	"context"
	"encoding/base64"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/stores"
	"github.com/rutterhq/rutter"
)

// annotationDecrypt lets an object opt out, as in Flux.
const annotationDecrypt = "kustomize.toolkit.fluxcd.io/decrypt"

// DecryptObject opens one object as it comes out of a build: its own envelope
// (a top-level "sops"), and the sealed files that a Secret holds in its data.
// sealed is false, and plain nil, when there is nothing to open. obj is not changed.
//
// The MAC of an object's own envelope is not checked: it covers the file that
// the object came from, which a build takes apart. Values are still bound to
// their place by the cipher. Files in a Secret's data are whole and checked.
func (d *Decrypter) DecryptObject(ctx context.Context, project string, obj map[string]any) (plain map[string]any, sealed bool, err error) {
	where := place{object: describe(obj)}
	if optedOut(obj) {
		return nil, false, nil
	}
	err = guarded(where, func() error {
		plain, sealed, err = d.openEnvelope(ctx, project, where, obj)
		if err != nil {
			return err
		}
		if !sealed {
			plain = obj
		}
		files, changed, err := d.openData(ctx, project, where, plain)
		if changed {
			plain, sealed = files, true
		}
		return err
	})
	if err != nil {
		return nil, true, err
	}
	if !sealed {
		return nil, false, nil
	}
	return plain, true, nil
}

// openEnvelope opens the values of an object with a top-level "sops".
func (d *Decrypter) openEnvelope(ctx context.Context, project string, where place, obj map[string]any) (map[string]any, bool, error) {
	metadata, ok := obj["sops"].(map[string]any)
	if !ok || !envelope(metadata) {
		return nil, false, nil
	}
	branches, head, err := stores.ExtractMetadata(sops.TreeBranches{toBranch(obj)}, stores.MetadataOpts{})
	if err != nil {
		return nil, true, where.errorf(rutter.CodeInvalid, "holds a field sops that is no SOPS metadata: seal its file again with the sops tool")
	}
	key, err := d.dataKey(ctx, project, where, &head)
	if err != nil {
		return nil, true, err
	}
	tree := sops.Tree{Branches: branches, Metadata: head}
	if _, _, err := openTree(where, tree, key); err != nil {
		return nil, true, err
	}
	return fromBranch(tree.Branches[0]), true, nil
}

// openData opens the sealed files in a Secret's data.
func (d *Decrypter) openData(ctx context.Context, project string, where place, obj map[string]any) (map[string]any, bool, error) {
	data, ok := obj["data"].(map[string]any)
	if !ok || obj["kind"] != "Secret" || obj["apiVersion"] != "v1" {
		return nil, false, nil
	}
	opened := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		text, _ := data[name].(string)
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil || !bytes.Contains(value, []byte("sops")) {
			continue
		}
		file := place{object: where.object + ", data." + name + ","}
		f := formatOf(path.Base(name), value)
		if f == formatNone {
			continue
		}
		plain, err := d.openFile(ctx, project, file, f, value)
		if err != nil {
			return nil, true, err
		}
		opened[name] = base64.StdEncoding.EncodeToString(plain)
	}
	if len(opened) == 0 {
		return nil, false, nil
	}
	out, values := maps.Clone(obj), maps.Clone(data)
	maps.Copy(values, opened)
	out["data"] = values
	return out, true, nil
}

func optedOut(obj map[string]any) bool {
	metadata, _ := obj["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	value, _ := annotations[annotationDecrypt].(string)
	return strings.EqualFold(value, "disabled")
}

// describe names an object for messages.
func describe(obj map[string]any) string {
	metadata, _ := obj["metadata"].(map[string]any)
	parts := []string{}
	for _, v := range []any{metadata["namespace"], metadata["name"]} {
		if s, _ := v.(string); s != "" {
			parts = append(parts, s)
		}
	}
	kind, _ := obj["kind"].(string)
	if kind == "" {
		kind = "object"
	}
	return strings.TrimSpace(kind + " " + strings.Join(parts, "/"))
}

// toBranch gives the library an object in its own words. Its integers are int;
// Kubernetes' are int64.
func toBranch(obj map[string]any) sops.TreeBranch {
	branch := make(sops.TreeBranch, 0, len(obj))
	for _, k := range slices.Sorted(maps.Keys(obj)) {
		branch = append(branch, sops.TreeItem{Key: k, Value: toTree(obj[k])})
	}
	return branch
}

func toTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return toBranch(v)
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = toTree(e)
		}
		return list
	case int64:
		return int(v)
	}
	return v
}

func fromBranch(branch sops.TreeBranch) map[string]any {
	obj := make(map[string]any, len(branch))
	for _, item := range branch {
		if k, ok := item.Key.(string); ok {
			obj[k] = fromTree(item.Value)
		}
	}
	return obj
}

func fromTree(v any) any {
	switch v := v.(type) {
	case sops.TreeBranch:
		return fromBranch(v)
	case []any:
		list := make([]any, 0, len(v))
		for _, e := range v {
			if _, comment := e.(sops.Comment); !comment {
				list = append(list, fromTree(e))
			}
		}
		return list
	case int:
		return int64(v)
	}
	return v
}
