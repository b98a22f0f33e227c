package lint

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v3"
)

// ConfigName is the file in which a repository turns rules off.
const ConfigName = ".rutter-lint.yaml"

// config is one such file; it counts for the folder that it lies in.
type config struct {
	dir string

	// Disable are rules that are off, for some paths or everywhere.
	Disable []struct {
		Rule   string   `yaml:"rule"`
		Paths  []string `yaml:"paths"`
		Reason string   `yaml:"reason"`
	} `yaml:"disable"`
	// Exclude are globs of files that are not checked.
	Exclude []string `yaml:"exclude"`
}

func isConfig(name string) bool { return path.Base(name) == ConfigName }

// readConfigs reads the configuration files among the files. A mistake in one
// is a finding.
func (r *run) readConfigs(files []File) []config {
	r.rule = &configRule
	var out []config
	for _, f := range files {
		if !isConfig(f.Path) {
			continue
		}
		c := config{dir: path.Dir(f.Path)}
		dec := yaml.NewDecoder(bytes.NewReader(f.Content))
		dec.KnownFields(true)
		problem, line := "", 1
		if err := dec.Decode(&c); err != nil && len(bytes.TrimSpace(f.Content)) > 0 {
			problem, line = complaint(err)
		}
		for _, d := range c.Disable {
			if !KnownRule(d.Rule) {
				problem = "there is no rule " + d.Rule
			}
			c.checkGlobs(d.Paths, &problem)
		}
		c.checkGlobs(c.Exclude, &problem)
		if problem != "" {
			r.report(&document{file: &file{path: f.Path}, root: &node{Line: line, Column: 1}}, nil, "the settings of rutter lint cannot be used: %s", problem)
			continue
		}
		out = append(out, c)
	}
	return out
}

func (c config) checkGlobs(globs []string, problem *string) {
	for _, g := range globs {
		if !doublestar.ValidatePattern(g) {
			*problem = "the path " + g + " is no glob"
		}
	}
}

// off tells whether the file turns a finding off.
func (c config) off(f Finding) bool {
	rel := f.File
	if c.dir != "." {
		var below bool
		if rel, below = strings.CutPrefix(f.File, c.dir+"/"); !below {
			return false
		}
	}
	match := func(glob string) bool { return doublestar.MatchUnvalidated(glob, rel) }
	if slices.ContainsFunc(c.Exclude, match) {
		return true
	}
	for _, d := range c.Disable {
		if d.Rule == f.Rule && (len(d.Paths) == 0 || slices.ContainsFunc(d.Paths, match)) {
			return true
		}
	}
	return false
}

// ignoreComment is "# rutter:ignore RULE[,RULE...] reason".
var ignoreComment = regexp.MustCompile(`(?:^|\s)#\s*rutter:ignore\b[ \t]*(\S*)[ \t]*(.*)$`)

// ignored tells whether a setting or a comment turns a finding off: a comment
// on its line, or in the comment lines just above.
func (r *run) ignored(f Finding) bool {
	if slices.ContainsFunc(r.configs, func(c config) bool { return c.off(f) }) {
		return true
	}
	file := r.repo.byPath[f.File]
	if file == nil || f.Rule == ignoreRule {
		return false
	}
	lines := file.lines
	at := func(n int) string {
		if n < 1 || n > len(lines) {
			return ""
		}
		return lines[n-1]
	}
	if names(at(f.Line), f.Rule) {
		return true
	}
	for n := f.Line - 1; strings.HasPrefix(strings.TrimSpace(at(n)), "#"); n-- {
		if names(at(n), f.Rule) {
			return true
		}
	}
	return false
}

// names tells whether a line ignores a rule.
func names(line, rule string) bool {
	m := ignoreComment.FindStringSubmatch(line)
	return m != nil && slices.Contains(strings.Split(m[1], ","), rule)
}

const ignoreRule = "ignore-comment"

// checkIgnoreComments finds comments that ignore nothing that exists, or don't say why.
func checkIgnoreComments(r *run) {
	for _, f := range r.repo.files {
		for i, line := range f.lines {
			m := ignoreComment.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			d := &document{file: f, root: &node{Line: i + 1, Column: strings.Index(line, "#") + 1}}
			for id := range strings.SplitSeq(m[1], ",") {
				if !KnownRule(id) {
					r.report(d, nil, "the comment ignores %q, which is no rule%s", id, suggestion(id, ruleNames()))
				}
			}
			if strings.TrimSpace(m[2]) == "" {
				r.report(d, nil, "the comment does not say why %s is ignored", m[1])
			}
		}
	}
}

func ruleNames() []string {
	var out []string
	for _, r := range Rules() {
		out = append(out, r.ID)
	}
	return out
}
