package helm

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"

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
	out, err := readValues(text)
	if err != nil {
		return nil, unreadable(field, text, err)
	}
	return out, nil
}

// maxValuesBytes bounds one file of values.
const maxValuesBytes = 16 << 20

// readValues reads YAML as Helm does; several documents are laid over each other.
func readValues(text []byte) (map[string]any, error) {
	if len(text) > maxValuesBytes {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it is larger than %d MiB", maxValuesBytes>>20)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return map[string]any{}, nil
	}
	return loader.LoadValues(bytes.NewReader(text)) //nolint:wrapcheck // the caller says which text it is
}

// parameters applies --set and --set-string; of two with one name the later wins.
func parameters(in Input, vals map[string]any) error {
	if err := checkIndexes(in); err != nil {
		return err
	}
	for _, i := range parameterOrder(in.Options.Parameters) {
		if err := setParameter(in, in.Options.Parameters[i], vals); err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "helm.parameters[%d]: %q cannot be set: %s", i, in.Options.Parameters[i].Name, problemOfName(in.Options.Parameters[i].Name))
		}
	}
	return nil
}

// parameterOrder is the order in which parameters take effect, by their index.
func parameterOrder(list []rutter.HelmParameter) []int {
	last := map[string]int{}
	for i, p := range list {
		last[p.Name] = i
	}
	var out []int
	for _, asString := range []bool{false, true} {
		for i, p := range list {
			if p.ForceString == asString && last[p.Name] == i {
				out = append(out, i)
			}
		}
	}
	return out
}

func setParameter(in Input, p rutter.HelmParameter, vals map[string]any) error {
	apply := strvals.ParseInto
	if p.ForceString {
		apply = strvals.ParseIntoString
	}
	value := in.Env.Expand(p.Value)
	if strings.HasPrefix(value, "{") && !isList(value) {
		// What follows the list would be read as another parameter.
		return rutter.Errorf(rutter.CodeInvalid, "its value begins with a list in braces and goes on after it")
	}
	return apply(p.Name+"="+escapeCommas(value), vals)
}

// problemOfName says why a parameter cannot be set, without its value.
func problemOfName(name string) string {
	if err := strvals.ParseInto(name+"=x", map[string]any{}); err != nil {
		return oneLine(err.Error())
	}
	return "it does not go together with the values below it, or its own value has braces that do not match"
}

// maxIndexes bounds the lists that the names of all parameters make together:
// a list is as long as its highest index.
const maxIndexes = 10_000

// listIndex is an index as strvals reads it, once escapes are taken away.
var listIndex = regexp.MustCompile(`\[\+?(\d+)\]`)

func checkIndexes(in Input) error {
	var sum int
	count := func(text string) bool {
		for _, m := range listIndex.FindAllStringSubmatch(strings.ReplaceAll(text, `\`, ""), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil || n > maxIndexes {
				return false
			}
			sum += n
		}
		return sum <= maxIndexes
	}
	o := in.Options
	for i, p := range o.Parameters {
		text := p.Name
		// Only such a name can make names of what its value holds.
		if strings.ContainsAny(p.Name, "={") || strings.HasSuffix(p.Name, `\`) {
			text += "=" + in.Env.Expand(p.Value)
		}
		if !count(text) {
			return rutter.Errorf(rutter.CodeInvalid, "helm.parameters[%d]: the indexes in the names are too large", i)
		}
	}
	for i, p := range o.FileParameters {
		if !count(p.Name) {
			return rutter.Errorf(rutter.CodeInvalid, "helm.fileParameters[%d]: the indexes in the names are too large", i)
		}
	}
	return nil
}

// escapeCommas keeps a comma in a value from starting another parameter, which
// could hold any name; a list in braces keeps its commas. A comma is escaped if
// an odd number of backslashes stands before it.
func escapeCommas(v string) string {
	if isList(v) {
		return v
	}
	var out strings.Builder
	escaped := false
	for _, r := range v {
		if r == ',' && !escaped {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
		escaped = r == '\\' && !escaped
	}
	return out.String()
}

// isList tells whether a value is one list in braces: its first brace that
// closes is its end.
func isList(v string) bool {
	if !strings.HasPrefix(v, "{") {
		return false
	}
	escaped := false
	for i, r := range v {
		if r == '}' && !escaped {
			return i == len(v)-1
		}
		escaped = r == '\\' && !escaped
	}
	return false
}

func fileParameters(in Input, vals map[string]any) error {
	for i, p := range in.Options.FileParameters {
		f, err := resolve(in, p.Path)
		if err != nil {
			return rutter.Errorf(codeOf(err), "helm.fileParameters[%d]: %w", i, err)
		}
		data, err := f.read()
		if record.IsAbsent(err) {
			return rutter.Errorf(rutter.CodeNotFound, "helm.fileParameters[%d]: file %s does not exist", i, f.path)
		}
		if err != nil {
			return rutter.Errorf(codeOf(err), "helm.fileParameters[%d]: %w", i, err)
		}
		if err := setFile(p.Name, string(data), vals); err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "helm.fileParameters[%d]: %q cannot be set: %s", i, p.Name, oneLine(err.Error()))
		}
	}
	return nil
}

// setFile sets a value to the content of a file.
func setFile(name, content string, vals map[string]any) error {
	return strvals.ParseIntoFile(name+"=file", vals, func([]rune) (any, error) { return content, nil }) //nolint:wrapcheck // the caller says which it is
}

// valueFile is one file of values, in a repository or on the web.
type valueFile struct {
	repo *record.FS
	// source is the number of the source that the repository is.
	source int
	path   string
	// url is set for one on the web; project is on whose behalf it is read.
	url, project string
}

// read returns the content of the file.
func (f valueFile) read() ([]byte, error) {
	repo := f.repo
	if f.url != "" {
		var err error
		if repo, err = f.repo.Remote(rutter.Repo{URL: f.url, File: true, Project: f.project}); err != nil {
			return nil, fmt.Errorf("fetch %s: %w", display(f.url), err)
		}
	}
	data, err := repo.ReadFile(f.path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.name(), err)
	}
	return data, nil
}

// name is what the file is called in a message.
func (f valueFile) name() string {
	if f.url != "" {
		return display(f.url)
	}
	return f.path
}

func (f valueFile) load() (map[string]any, error) {
	data, err := f.read()
	if err != nil {
		return nil, err
	}
	layer, err := readValues(data)
	if err != nil {
		return nil, unreadable(f.name(), data, err)
	}
	return layer, nil
}

// resolve finds the repository and the path that an entry names: $ref/path and
// /path are relative to the root of a repository, anything else to the chart; a
// URL is a file on the web.
func resolve(in Input, entry string) (valueFile, error) {
	f := valueFile{repo: in.Repo, project: in.Project}
	base, rest := in.Path, entry
	if name, ok := strings.CutPrefix(entry, "$"); ok {
		name, tail, _ := strings.Cut(name, "/")
		switch other := in.Refs[name]; {
		case other != nil:
			f.repo, base, rest = other, ".", tail
			f.source = 1 + slices.Index(slices.Sorted(maps.Keys(in.Refs)), name)
		case !strings.HasPrefix(name, "{") && !strings.HasPrefix(name, "$") && !in.Env.Has(name):
			return f, rutter.Errorf(rutter.CodeInvalid, "%s: no source has the ref %q", entry, name)
		}
	}
	rest = in.Env.Expand(rest)
	if scheme, _, ok := strings.Cut(rest, "://"); ok && f.source == 0 && !strings.Contains(scheme, "/") {
		return remoteFile(in, f, scheme, rest)
	}
	if strings.HasPrefix(rest, "/") {
		base = "."
	}
	clean, err := record.Clean(path.Join(base, strings.TrimLeft(rest, "/")))
	if err != nil {
		return f, rutter.Errorf(rutter.CodeInvalid, "%s: the path leaves the repository", entry)
	}
	f.path = clean
	return f, nil
}

// remoteFile checks a file on the web against the protocols that an operator allows.
func remoteFile(in Input, f valueFile, scheme, raw string) (valueFile, error) {
	allowed := in.ValuesFileSchemes
	if allowed == nil {
		allowed = []string{"http", "https"}
	}
	if !slices.Contains(allowed, strings.ToLower(scheme)) {
		return f, rutter.Errorf(rutter.CodeInvalid, "%s: files are not read over %s here (allowed: %s): put the file into the repository", display(raw), scheme, strings.Join(allowed, ", "))
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || path.Base(u.Path) == "." || path.Base(u.Path) == "/" {
		return f, rutter.Errorf(rutter.CodeInvalid, "%s names no file on the web", display(raw))
	}
	f.url, f.path = raw, path.Base(u.Path)
	return f, nil
}
