// Package plugin renders with config management plugins (reference 1.7):
// programs that an operator has listed, described by the ConfigManagementPlugin
// files of Argo CD. Each run gets the files of the repository in a folder of its
// own and runs in a sandbox.
//
// Ring: adapter (render).
package plugin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v3"

	"github.com/rutterhq/rutter"
)

// What a definition may say beside what Argo CD knows, as annotations.
const (
	// AnnotationNetwork "true" lets the plugin's commands use the network.
	AnnotationNetwork = "rutter.dev/network"
	// AnnotationInputs "path" gives the plugin the application's folder only, and no
	// variable that changes with each commit, so that it runs again only when that
	// folder has changed. The default is "repository".
	AnnotationInputs = "rutter.dev/inputs"
)

// Definition is one plugin.
type Definition struct {
	Name    string
	Version string
	// Init runs before Generate, when it is set; Generate prints the manifests.
	Init, Generate Command
	Discover       Discover
	// Parameters are those that the file announces; Dynamic prints more of them.
	Parameters []Announcement
	Dynamic    Command
	// PreserveFileMode keeps executable files executable.
	PreserveFileMode bool
	// Network and PathOnly are what the annotations say.
	Network  bool
	PathOnly bool
	// Warnings are about what the file asks for and does not get.
	Warnings []string
	// File is where it was read from, Digest that of its content.
	File   string
	Digest string
}

// FullName is the name and, after a dash, the version.
func (d Definition) FullName() string {
	if d.Version == "" {
		return d.Name
	}
	return d.Name + "-" + d.Version
}

// Command is a program and its arguments.
type Command struct {
	Command []string `yaml:"command"`
	Args    []string `yaml:"args"`
}

func (c Command) set() bool { return len(c.Command) > 0 }

func (c Command) argv() []string { return slices.Concat(c.Command, c.Args) }

// Discover says for which folders a plugin is made: the first that is set
// decides. Without any the plugin must be named.
type Discover struct {
	FileName string
	Glob     string
	Command  Command
}

func (d Discover) set() bool { return d.FileName != "" || d.Glob != "" || d.Command.set() }

// Announcement describes a parameter to those who set it.
type Announcement struct {
	Name           string            `json:"name"                     yaml:"name"`
	Title          string            `json:"title,omitempty"          yaml:"title"`
	Tooltip        string            `json:"tooltip,omitempty"        yaml:"tooltip"`
	Required       bool              `json:"required,omitempty"       yaml:"required"`
	ItemType       string            `json:"itemType,omitempty"       yaml:"itemType"`
	CollectionType string            `json:"collectionType,omitempty" yaml:"collectionType"`
	String         string            `json:"string,omitempty"         yaml:"string"`
	Array          []string          `json:"array,omitempty"          yaml:"array"`
	Map            map[string]string `json:"map,omitempty"            yaml:"map"`
}

// definitionFile is the form of the file.
type definitionFile struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name        string            `yaml:"name"`
		Namespace   string            `yaml:"namespace"`
		Labels      map[string]string `yaml:"labels"`
		Annotations map[string]string `yaml:"annotations"`
	} `yaml:"metadata"`
	Spec struct {
		Version  string  `yaml:"version"`
		Init     Command `yaml:"init"`
		Generate Command `yaml:"generate"`
		Discover struct {
			FileName string `yaml:"fileName"`
			Find     struct {
				Command `yaml:",inline"`

				Glob string `yaml:"glob"`
			} `yaml:"find"`
		} `yaml:"discover"`
		Parameters struct {
			Static  []Announcement `yaml:"static"`
			Dynamic Command        `yaml:"dynamic"`
		} `yaml:"parameters"`
		PreserveFileMode bool `yaml:"preserveFileMode"`
		ProvideGitCreds  bool `yaml:"provideGitCreds"`
	} `yaml:"spec"`
}

// maxFile bounds a definition.
const maxFile = 1 << 20

// Parse reads one ConfigManagementPlugin file. Errors name the field and the line.
func Parse(file string, data []byte) (Definition, error) {
	if len(data) > maxFile {
		return Definition{}, invalid(file, 0, "it is larger than %d KiB and so is no plugin definition", maxFile>>10)
	}
	var f definitionFile
	var root yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			return Definition{}, invalid(file, 0, "it is empty: a plugin definition needs kind: ConfigManagementPlugin, metadata.name and spec.generate")
		}
		return Definition{}, syntax(file, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Definition{}, invalid(file, 0, "it holds more than one document: put each plugin into a file of its own")
	}
	if err := yaml.Unmarshal(data, &root); err != nil {
		return Definition{}, syntax(file, err)
	}
	d := Definition{
		Name: f.Metadata.Name, Version: f.Spec.Version, Init: f.Spec.Init, Generate: f.Spec.Generate,
		Discover:   Discover{FileName: f.Spec.Discover.FileName, Glob: f.Spec.Discover.Find.Glob, Command: f.Spec.Discover.Find.Command},
		Parameters: f.Spec.Parameters.Static, Dynamic: f.Spec.Parameters.Dynamic,
		PreserveFileMode: f.Spec.PreserveFileMode, File: file, Digest: digest(data),
	}
	c := checker{file: file, root: &root}
	c.header(f)
	c.commands(d)
	c.annotations(f.Metadata.Annotations, &d)
	if f.Spec.ProvideGitCreds {
		d.Warnings = append(d.Warnings, fmt.Sprintf("plugin %s: provideGitCreds is not acted on: credentials are never given to a plugin; name further repositories as sources of the application", d.FullName()))
	}
	return d, c.err
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func invalid(file string, line int, format string, args ...any) error {
	return &rutter.Error{Code: rutter.CodeInvalid, File: file, Line: line, Message: fmt.Sprintf(format, args...)}
}

var (
	yamlLine     = regexp.MustCompile(`line (\d+): `)
	yamlUnknown  = regexp.MustCompile(`^field (\S+) not found in type .+$`)
	yamlRepeated = regexp.MustCompile(`^field (\S+) already set in type .+$`)
	yamlType     = regexp.MustCompile("^cannot unmarshal !!(\\w+)(?: `[^`]*`)? into (\\S+)$")
	yamlTypes    = map[string]string{"bool": "true or false", "string": "a string", "[]string": "a list of strings", "map[string]string": "a mapping of strings"}
)

// syntax rewords an error of the YAML library, which speaks of Go's types.
func syntax(file string, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if all := (*yaml.TypeError)(nil); errors.As(err, &all) && len(all.Errors) > 0 {
		text = all.Errors[0]
	}
	line := 0
	if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
		line, _ = strconv.Atoi(text[m[2]:m[3]]) // the expression sees to it
		text = text[:m[0]] + text[m[1]:]
	}
	if m := yamlUnknown.FindStringSubmatch(text); m != nil {
		text = "unknown field " + strconv.Quote(m[1])
	} else if m := yamlRepeated.FindStringSubmatch(text); m != nil {
		text = "field " + strconv.Quote(m[1]) + " is set twice"
	} else if m := yamlType.FindStringSubmatch(text); m != nil {
		want, ok := yamlTypes[m[2]]
		if !ok {
			want = "a mapping"
		}
		text = fmt.Sprintf("here must be %s, it is a YAML %s", want, m[1])
	}
	return invalid(file, line, "%s", text)
}

// checker collects the first thing that is wrong with a definition.
type checker struct {
	file string
	root *yaml.Node
	err  error
}

// fail reports a field, with the line of it or of what is around it.
func (c *checker) fail(field, format string, args ...any) {
	if c.err == nil {
		c.err = invalid(c.file, lineOf(c.root, strings.Split(field, ".")), "%s: %s", field, fmt.Sprintf(format, args...))
	}
}

// lineOf is where a field is, or the innermost part of its path that is there.
func lineOf(n *yaml.Node, path []string) int {
	for n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	line := n.Line
next:
	for _, name := range path {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				line, n = n.Content[i].Line, n.Content[i+1]
				continue next
			}
		}
		break
	}
	return line
}

// name is what a plugin and a version may be called: both end up in one name.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

func (c *checker) header(f definitionFile) {
	if f.Kind != "ConfigManagementPlugin" {
		c.fail("kind", "must be ConfigManagementPlugin, it is %q", f.Kind)
	}
	if f.APIVersion != "argoproj.io/v1alpha1" {
		c.fail("apiVersion", "must be argoproj.io/v1alpha1, it is %q", f.APIVersion)
	}
	switch {
	case f.Metadata.Name == "":
		c.fail("metadata.name", "is required: applications name the plugin by it")
	case !nameForm.MatchString(f.Metadata.Name):
		c.fail("metadata.name", "%q must be letters, digits, dots and dashes", f.Metadata.Name)
	case f.Metadata.Name == "cue":
		c.fail("metadata.name", "cue is the name of the built-in tool: choose another")
	}
	if v := f.Spec.Version; v != "" && !nameForm.MatchString(v) {
		c.fail("spec.version", "%q must be letters, digits, dots and dashes", v)
	}
}

func (c *checker) commands(d Definition) {
	if !d.Generate.set() {
		c.fail("spec.generate", "command is required: it prints the manifests")
	}
	for field, cmd := range map[string]Command{"spec.init": d.Init, "spec.generate": d.Generate, "spec.discover.find": d.Discover.Command, "spec.parameters.dynamic": d.Dynamic} {
		switch {
		case !cmd.set() && len(cmd.Args) > 0:
			c.fail(field, "args without command")
		case cmd.set() && strings.TrimSpace(cmd.Command[0]) == "":
			c.fail(field+".command", "the program is empty")
		case slices.ContainsFunc(cmd.argv(), func(s string) bool { return strings.ContainsRune(s, 0) }):
			c.fail(field, "a NUL character cannot be in an argument")
		}
	}
	if p := d.Discover.FileName; p != "" && !doublestar.ValidatePattern(p) {
		c.fail("spec.discover.fileName", "%q is not a pattern", p)
	}
	if p := d.Discover.Glob; p != "" && !doublestar.ValidatePattern(p) {
		c.fail("spec.discover.find.glob", "%q is not a pattern", p)
	}
	for i, p := range d.Parameters {
		if p.Name == "" {
			c.fail("spec.parameters.static", "[%d].name is required", i)
		}
		if !slices.Contains([]string{"", "string", "array", "map"}, p.CollectionType) {
			c.fail("spec.parameters.static", "[%d].collectionType must be string, array or map, it is %q", i, p.CollectionType)
		}
	}
}

func (c *checker) annotations(a map[string]string, d *Definition) {
	for k, v := range a {
		switch {
		case k == AnnotationNetwork && (v == "true" || v == "false"):
			d.Network = v == "true"
		case k == AnnotationNetwork:
			c.fail("metadata.annotations", "%s must be \"true\" or \"false\", it is %q", k, v)
		case k == AnnotationInputs && (v == "repository" || v == "path"):
			d.PathOnly = v == "path"
		case k == AnnotationInputs:
			c.fail("metadata.annotations", "%s must be repository or path, it is %q", k, v)
		case strings.HasPrefix(k, "rutter.dev/"):
			c.fail("metadata.annotations", "%s is unknown: %s and %s are known", k, AnnotationNetwork, AnnotationInputs)
		}
	}
}
