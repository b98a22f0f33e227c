package helm

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// values layers what the source declares, lowest first: value files in order,
// then valuesObject or values, then parameters, then file parameters. The
// chart's own values.yaml lies below all of them and is added by Helm, for
// which a null here means that the chart's value is taken away.
func values(in Input) (map[string]any, error) {
	vals := map[string]any{}
	files, err := valueFiles(in)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		layer, err := f.load()
		if err != nil {
			return nil, err
		}
		vals = loader.MergeMaps(vals, layer)
	}
	inline, err := inlineValues(in.Options)
	if err != nil {
		return nil, err
	}
	vals = loader.MergeMaps(vals, inline)
	if err := parameters(in, vals); err != nil {
		return nil, err
	}
	return vals, fileParameters(in, vals)
}

// inlineValues returns valuesObject, which wins over values altogether.
func inlineValues(o rutter.HelmOptions) (map[string]any, error) {
	field, text := "helm.values", []byte(o.Values)
	if len(o.ValuesObject) > 0 {
		field, text = "helm.valuesObject", o.ValuesObject
	}
	out := map[string]any{}
	if len(bytes.TrimSpace(text)) == 0 {
		return out, nil
	}
	if err := yaml.Unmarshal(text, &out); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: is no mapping of values: %s", field, oneLine(err.Error()))
	}
	return out, nil
}

// parameters applies --set and --set-string; of two with one name the later wins.
func parameters(in Input, vals map[string]any) error {
	last := map[string]int{}
	for i, p := range in.Options.Parameters {
		last[p.Name] = i
	}
	for _, asString := range []bool{false, true} {
		for i, p := range in.Options.Parameters {
			if p.ForceString != asString || last[p.Name] != i {
				continue
			}
			apply := strvals.ParseInto
			if asString {
				apply = strvals.ParseIntoString
			}
			if err := apply(p.Name+"="+escapeCommas(in.Env.Expand(p.Value)), vals); err != nil {
				return rutter.Errorf(rutter.CodeInvalid, "helm.parameters[%d]: %q cannot be set: %s", i, p.Name, oneLine(err.Error()))
			}
		}
	}
	return nil
}

var bareComma = regexp.MustCompile(`(^|[^\\]),`)

// escapeCommas keeps a comma in a value from starting another parameter; a
// list in braces keeps its commas.
func escapeCommas(v string) string {
	if strings.HasPrefix(v, "{") && strings.HasSuffix(v, "}") {
		return v
	}
	// Twice, because neighbouring commas share the character between them.
	return bareComma.ReplaceAllString(bareComma.ReplaceAllString(v, `$1\,`), `$1\,`)
}

func fileParameters(in Input, vals map[string]any) error {
	for i, p := range in.Options.FileParameters {
		f, err := resolve(in, p.Path)
		if err != nil {
			return rutter.Errorf(codeOf(err), "helm.fileParameters[%d]: %w", i, err)
		}
		reader := func([]rune) (any, error) {
			data, err := f.repo.ReadFile(f.path)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", f.path, err)
			}
			return string(data), nil
		}
		if err := strvals.ParseIntoFile(p.Name+"=file", vals, reader); err != nil {
			if record.IsAbsent(err) {
				return rutter.Errorf(rutter.CodeNotFound, "helm.fileParameters[%d]: file %s does not exist", i, f.path)
			}
			return rutter.Errorf(rutter.CodeInvalid, "helm.fileParameters[%d]: %q cannot be set: %w", i, p.Name, err)
		}
	}
	return nil
}

// valueFile is one file of values in one repository.
type valueFile struct {
	repo *record.FS
	path string
}

func (f valueFile) load() (map[string]any, error) {
	data, err := f.repo.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path, err)
	}
	layer, err := loader.LoadValues(bytes.NewReader(data))
	if err != nil {
		return nil, &rutter.Error{Code: rutter.CodeInvalid, File: f.path, Message: "is no file of values: " + oneLine(err.Error())}
	}
	return layer, nil
}

// resolve finds the repository and the path that an entry names: $ref/path and
// /path are relative to the root of a repository, anything else to the chart.
func resolve(in Input, entry string) (valueFile, error) {
	repo, base, rest := in.Repo, in.Path, entry
	if name, ok := strings.CutPrefix(entry, "$"); ok {
		name, tail, _ := strings.Cut(name, "/")
		switch other := in.Refs[name]; {
		case other != nil:
			repo, base, rest = other, ".", tail
		case !strings.HasPrefix(name, "{") && !strings.HasPrefix(name, "$") && !in.Env.Has(name):
			return valueFile{}, rutter.Errorf(rutter.CodeInvalid, "%s: no source has the ref %q", entry, name)
		}
	}
	rest = in.Env.Expand(rest)
	if scheme, _, ok := strings.Cut(rest, "://"); ok && repo == in.Repo && !strings.Contains(scheme, "/") {
		return valueFile{}, rutter.Errorf(rutter.CodeUnsupported, "%s: remote value files are not acted on yet: put the file into the repository", rest)
	}
	if strings.HasPrefix(rest, "/") {
		base = "."
	}
	clean, err := record.Clean(path.Join(base, strings.TrimLeft(rest, "/")))
	if err != nil {
		return valueFile{}, rutter.Errorf(rutter.CodeInvalid, "%s: the path leaves the repository", entry)
	}
	return valueFile{repo: repo, path: clean}, nil
}
