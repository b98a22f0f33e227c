package helm

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/manifest"
)

var (
	cannotLoad = regexp.MustCompile(`^cannot load ([^:\s]+): `)
	yamlLine   = regexp.MustCompile(`(?:^|: )(?:yaml: )?(?:unmarshal errors:\s+)?line (\d+): `)
)

// unreadableFile names the file of a chart that its loader could not read.
func (a *assembler) unreadableFile(where string, files []*archive.BufferedFile, err error) error {
	m := cannotLoad.FindStringSubmatch(err.Error())
	if m == nil {
		return a.invalid(path.Join(where, "Chart.yaml"), "the chart cannot be loaded: "+oneLine(err.Error()))
	}
	var data []byte
	for _, f := range files {
		if f.Name == m[1] {
			data = f.Data
		}
	}
	return unreadable(path.Join(a.dir, where, m[1]), data, err)
}

// unreadable says which document and which line of a YAML file cannot be read.
// cause is what the whole file failed with.
func unreadable(file string, data []byte, cause error) error {
	out := &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "cannot be read: " + problemOfYAML(cause)}
	docs := manifest.Split(data)
	for i, doc := range docs {
		var m map[string]any
		err := yaml.Unmarshal(doc.Data, &m)
		if err == nil {
			continue
		}
		out.Line = doc.Line
		if at := yamlLine.FindStringSubmatch(err.Error()); at != nil {
			if n, convErr := strconv.Atoi(at[1]); convErr == nil {
				out.Line = doc.First + n - 1
			}
		}
		out.Message = "cannot be read: " + problemOfYAML(err)
		if len(docs) > 1 {
			out.Message = fmt.Sprintf("document %d cannot be read: %s", i+1, problemOfYAML(err))
		}
		break
	}
	return out
}

// problemOfYAML is what is wrong, in the words of the innermost reader.
func problemOfYAML(err error) string {
	text := oneLine(err.Error())
	if _, what, ok := strings.Cut(text, "json: cannot unmarshal "); ok {
		kind, _, _ := strings.Cut(what, " ")
		if strings.HasSuffix(what, "map[string]interface {}") {
			return "it is no mapping, but of the kind " + kind
		}
		return "a value has the wrong kind: " + what
	}
	if at := yamlLine.FindStringIndex(text); at != nil {
		return "it is no YAML: " + text[at[1]:]
	}
	if _, what, ok := strings.Cut(text, "error converting YAML to JSON: "); ok {
		return "it is no YAML: " + strings.TrimPrefix(what, "yaml: ")
	}
	return text
}
