package directory

import (
	"bytes"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

// json reads a file that must hold exactly one object.
func (r *renderer) json(file string, data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	v, err := manifest.DecodeJSON(data, file)
	if err != nil {
		return err
	}
	if isImageManifest(v) {
		return nil
	}
	objs, err := manifest.Objects(v, rutter.Origin{File: file, Line: 1})
	if err != nil {
		return err
	}
	r.objects = append(r.objects, objs)
	return nil
}

// isImageManifest recognises the description of an OCI artifact that lies
// beside the manifests it was pulled with.
func isImageManifest(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	media, _ := m["mediaType"].(string)
	return m["kind"] == nil && strings.HasPrefix(media, "application/vnd.oci.image.manifest")
}

// yaml reads a file of any number of documents. A file that does not even look
// like manifests, such as a values file, is passed over: as long as none of its
// documents was an object, what is wrong with it is nobody's business.
func (r *renderer) yaml(file string, data []byte) error {
	docs, err := manifest.Documents(data, file)
	if err != nil {
		return unlessForeign(err, data)
	}
	none := true
	for _, doc := range docs {
		v, err := manifest.Decode(doc, file)
		var objs []rutter.Object
		if err == nil {
			objs, err = doc.Objects(v, file)
		}
		if err != nil {
			if none && !manifest.IsObject(v) {
				return unlessForeign(err, data)
			}
			return err
		}
		none = none && v == nil
		r.objects = append(r.objects, objs)
	}
	return nil
}

// unlessForeign is err, or nothing for a file that holds no manifests.
func unlessForeign(err error, data []byte) error {
	if !looksLikeManifests(data) {
		return nil
	}
	return err
}

func looksLikeManifests(data []byte) bool {
	return bytes.Contains(data, []byte("apiVersion:")) && bytes.Contains(data, []byte("kind:")) && bytes.Contains(data, []byte("metadata:"))
}
