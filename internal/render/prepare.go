package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// The tools, by the name that a status shows (reference 1.13).
const (
	toolDirectory = "Directory"
	toolKustomize = "Kustomize"
	toolHelm      = "Helm"
)

// job is one render, decided but not run yet.
type job struct {
	tool     string
	path     string
	source   rutter.Source // with the repository's overrides
	warnings []string
	key      string
	look     []rutter.Input // what deciding looked at
}

// prepare decides what is rendered by which tool.
func prepare(repo *record.FS, req rutter.RenderRequest, tools string, refs []string) (job, error) {
	j := job{source: req.Source}
	var err error
	if j.warnings, err = unsupported(req.Source); err != nil {
		return j, err
	}
	if j.path, err = appPath(repo, req.Source.Path); err != nil {
		return j, err
	}
	if j.source, err = override(repo, j.path, req.Instance, j.source); err != nil {
		return j, err
	}
	if j.tool, err = detect(repo, j.path, j.source); err != nil {
		return j, err
	}
	j.look = repo.Inputs()
	j.key = key(j, req, tools, refs)
	return j, nil
}

// harmless are options that are not acted on and that change nothing in what
// is rendered here, with what to know about each.
func harmless(field string, src rutter.Source) (string, bool) {
	switch name := field[strings.LastIndex(field, "source")+len("source"):]; {
	case strings.HasSuffix(name, "kustomize.version"):
		return "the built-in kustomize is used", true
	case strings.HasSuffix(name, "kustomize.kubeVersion"), strings.HasSuffix(name, "kustomize.apiVersions"):
		return "kustomize does not inflate charts here, so nothing would use it", true
	case strings.HasSuffix(name, "helm.passCredentials"):
		return "the chart comes from the repository, so nothing would use it", true
	case strings.HasSuffix(name, "directory.jsonnet"):
		return "Jsonnet files are refused, so nothing would use it", true
	case strings.HasSuffix(name, "tagPrefix"):
		_, err := semver.NewConstraint(src.TargetRevision)
		return "the target revision is no version, so nothing would use it", err != nil
	}
	return "", false
}

// unsupported refuses what would be rendered wrongly, and warns of the rest.
func unsupported(src rutter.Source) ([]string, error) {
	switch {
	case src.Chart != "":
		return nil, rutter.Errorf(rutter.CodeUnsupported, "chart: charts from Helm repositories are not acted on yet (chart %q): put the chart into Git and name its path", src.Chart)
	case strings.HasPrefix(strings.ToLower(src.RepoURL), "oci://"):
		return nil, rutter.Errorf(rutter.CodeUnsupported, "repoURL: OCI artifacts are not acted on yet (%s): use a Git repository", src.RepoURL)
	}
	var warnings, refused []string
	for _, field := range src.Unsupported {
		if why, ok := harmless(field, src); ok {
			warnings = append(warnings, field+" is not acted on yet: "+why)
			continue
		}
		refused = append(refused, field)
	}
	if len(refused) > 0 {
		return nil, rutter.Errorf(rutter.CodeUnsupported, "%s: not acted on yet, and without it the result would be another: remove it from the source", strings.Join(refused, ", "))
	}
	return warnings, nil
}

// appPath checks the source's path (reference 1.2, repository safety).
func appPath(repo *record.FS, p string) (string, error) {
	if path.IsAbs(p) {
		return "", rutter.Errorf(rutter.CodeInvalid, "path: %q must be relative to the root of the repository", p)
	}
	clean, err := record.Clean(path.Clean(p))
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInvalid, "path: %w", err)
	}
	info, err := repo.Stat(clean)
	switch {
	case err == nil && info.IsDir():
		return clean, nil
	case err == nil:
		return "", rutter.Errorf(rutter.CodeInvalid, "path: %s: app path is not a directory", clean)
	case record.IsAbsent(err):
		return "", rutter.Errorf(rutter.CodeNotFound, "path: %s: app path does not exist", clean)
	}
	return "", fmt.Errorf("look up path %s: %w", clean, err)
}

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
		data, err := repo.ReadFile(file)
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
	out.Ref, out.Name, out.Unsupported = src.Ref, src.Name, src.Unsupported
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

func codeOr(err error, fallback rutter.Code) rutter.Code {
	if code := rutter.CodeOf(err); code != rutter.CodeInternal {
		return code
	}
	return fallback
}

// detect returns the tool: that of the explicit block, else by what lies in
// the path. Kustomize wins over Helm, as it does in the reference.
func detect(repo *record.FS, dir string, src rutter.Source) (string, error) {
	var explicit []string
	for tool, block := range map[string]any{toolHelm: src.Helm, toolKustomize: src.Kustomize, toolDirectory: src.Directory} {
		if v := reflect.ValueOf(block); !v.IsNil() && !v.Elem().IsZero() {
			explicit = append(explicit, tool)
		}
	}
	slices.Sort(explicit)
	switch {
	case len(explicit) > 1:
		return "", rutter.Errorf(rutter.CodeInvalid, "multiple application sources defined: %s: keep one of the blocks", strings.Join(explicit, ","))
	case len(explicit) == 1:
		return explicit[0], nil
	}
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if repo.IsFile(path.Join(dir, name)) {
			return toolKustomize, nil
		}
	}
	if repo.IsFile(path.Join(dir, "Chart.yaml")) {
		return toolHelm, nil
	}
	return toolDirectory, repo.Err()
}
