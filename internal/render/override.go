package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// override applies the repository's own .argocd-source files (reference 1.2):
// a merge patch each, which cannot change where the source is read from.
func override(repo *record.FS, dir, instance string, src rutter.Source) (rutter.Source, error) {
	names := []string{".argocd-source.yaml"}
	if instance != "" && !strings.Contains(instance, "/") {
		names = append(names, ".argocd-source-"+instance+".yaml")
	}
	out := src
	for _, name := range names {
		file := path.Join(dir, name)
		data, err := repo.ReadSealed(file) // a sealed one is no override
		if record.IsAbsent(err) {
			continue
		}
		if err != nil {
			return src, fmt.Errorf("read %s: %w", file, err)
		}
		if out, err = merge(out, data); err != nil {
			return src, &rutter.Error{Code: codeOr(err, rutter.CodeInvalid), File: file, Message: "cannot be applied to the source", Err: err}
		}
	}
	out.RepoURL, out.Path, out.Chart, out.TargetRevision = src.RepoURL, src.Path, src.Chart, src.TargetRevision
	out.Ref, out.Name, out.TagPrefix, out.Unsupported = src.Ref, src.Name, src.TagPrefix, src.Unsupported
	return out, nil
}

func merge(src rutter.Source, patch []byte) (rutter.Source, error) {
	var out rutter.Source
	doc, err := json.Marshal(src)
	if err != nil {
		return out, fmt.Errorf("encode the source: %w", err)
	}
	js, err := yaml.YAMLToJSONStrict(patch)
	if err != nil {
		return out, fmt.Errorf("read YAML: %w", err)
	}
	if bytes.Equal(bytes.TrimSpace(js), []byte("null")) {
		return src, nil
	}
	merged, err := jsonpatch.MergePatch(doc, js)
	if err != nil {
		return out, fmt.Errorf("merge: %w", err)
	}
	if merged, err = withoutHelmVersion(merged); err != nil {
		return out, err
	}
	dec := json.NewDecoder(bytes.NewReader(merged))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil && !errors.Is(err, io.EOF) {
		if strings.Contains(err.Error(), "unknown field") {
			return out, rutter.Errorf(rutter.CodeUnsupported, "%w: it is not acted on yet", err)
		}
		return out, fmt.Errorf("decode: %w", err)
	}
	return out, nil
}

// withoutHelmVersion drops helm.version, which means nothing any more (reference 1.6).
func withoutHelmVersion(source []byte) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(source, &fields); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var helm map[string]json.RawMessage
	if json.Unmarshal(fields["helm"], &helm) != nil || helm["version"] == nil {
		return source, nil //nolint:nilerr // what is no mapping is refused by who decodes it all
	}
	delete(helm, "version")
	var err error
	if fields["helm"], err = json.Marshal(helm); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return out, nil
}

// codeOr is the code of err, or fallback when it has none.
func codeOr(err error, fallback rutter.Code) rutter.Code {
	if code := rutter.CodeOf(err); code != rutter.CodeInternal {
		return code
	}
	return fallback
}
