package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity says how bad a finding is.
type Severity string

// The severities, worst first.
const (
	// Error is what is broken or leaks.
	Error Severity = "error"
	// Warning is what will hurt one day.
	Warning Severity = "warning"
	// Info is worth knowing; it may be meant.
	Info Severity = "info"
)

// rank orders severities; 0 is the worst.
func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Info}, s) }

// Valid tells whether s is one of the severities.
func (s Severity) Valid() bool { return s.rank() >= 0 }

// AtLeast tells whether s is as bad as o, or worse.
func (s Severity) AtLeast(o Severity) bool { return s.rank() <= o.rank() }

// File is one file of a repository.
type File struct {
	// Path is relative, with slashes.
	Path    string
	Content []byte
}

// Options choose among the findings; the zero value shows all.
type Options struct {
	// Rules are the only ones to apply; empty means all.
	Rules []string
	// Severity is the least that is shown; empty means Info.
	Severity Severity
}

// Finding is one mistake.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	// Object is Kind namespace/name of the object, when there is one.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// Check applies the rules to all files together: some rules look at how files
// fit each other. Findings are ordered by file and line.
func Check(files []File, opts Options) []Finding {
	r := &run{repo: parse(files)}
	r.configs = r.readConfigs(files)
	for _, rule := range rules() {
		r.apply(&rule)
	}
	if opts.Severity == "" {
		opts.Severity = Info
	}
	out := make([]Finding, 0, len(r.findings))
	for _, f := range r.findings {
		if (len(opts.Rules) == 0 || slices.Contains(opts.Rules, f.Rule)) && f.Severity.AtLeast(opts.Severity) && !r.ignored(f) {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(out)
}

// run is one check on its way.
type run struct {
	repo     *repo
	configs  []config
	rule     *rule
	findings []Finding
}

// apply runs one rule.
func (r *run) apply(rule *rule) {
	r.rule = rule
	if rule.repository != nil {
		rule.repository(r)
	}
	if rule.document == nil {
		return
	}
	for _, d := range r.repo.docs {
		rule.document(r, d)
	}
}

// report notes a finding of the rule at a node of a document, with the rule's
// severity and remedy.
func (r *run) report(d *document, at *node, format string, args ...any) {
	r.reportAs(r.rule.severity, r.rule.remedy, d, at, format, args...)
}

// reportAs is report with another severity or remedy than the rule's.
func (r *run) reportAs(severity Severity, remedy string, d *document, at *node, format string, args ...any) {
	if at == nil {
		at = d.root
	}
	r.findings = append(r.findings, Finding{
		Rule: r.rule.id, Severity: severity, File: d.file.path, Line: at.Line, Column: at.Column,
		Object: d.object(), Message: fmt.Sprintf(format, args...), Remedy: remedy,
	})
}

// RuleInfo describes a rule for people.
type RuleInfo struct {
	ID       string
	Severity Severity
	// Doc says what the rule finds; Remedy what to do.
	Doc, Remedy string
}

// Rules returns all rules, by name.
func Rules() []RuleInfo {
	out := []RuleInfo{}
	for _, r := range rules() {
		out = append(out, RuleInfo{ID: r.id, Severity: r.severity, Doc: r.doc, Remedy: r.remedy})
	}
	slices.SortFunc(out, func(a, b RuleInfo) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// KnownRule tells whether there is a rule of that name.
func KnownRule(id string) bool {
	return slices.ContainsFunc(rules(), func(r rule) bool { return r.id == id })
}
