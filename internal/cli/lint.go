package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/lint"
)

// lintOutputs are the forms of a report.
var lintOutputs = []string{"text", "json", "sarif"}

type lintFlags struct {
	output, severity string
	rules            []string
}

func (r *root) lintCommand() *cobra.Command {
	f := &lintFlags{}
	c := &cobra.Command{
		Use: "lint [PATH...]", Short: "Find mistakes in the files of a repository before they are deployed",
		Long: "Reads the YAML files of folders and files (default: the current folder) and reports what is broken, what leaks and what will hurt: mutable tags,\n" +
			"plaintext Secrets, misspelt fields and annotations, generators that may delete a fleet. Nothing else is asked: no cluster, no network.\n\n" +
			"A comment '# rutter:ignore RULE reason' on the line of a finding or above it turns it off; " + lint.ConfigName + " turns rules off for paths.\n\n" +
			"Exit codes: 0 nothing worse than info, 1 errors or warnings, 2 something could not be read.\n\nRules:\n" + ruleHelp(),
		Example: "  rutter lint\n" +
			"  rutter lint clusters/ apps/ --severity warning\n" +
			"  rutter lint -o sarif > lint.sarif\n" +
			"  rutter lint --rule plaintext-secret",
		// It has forms of its own.
		PersistentPreRunE: func(*cobra.Command, []string) error { return f.check() },
		RunE: func(_ *cobra.Command, args []string) error {
			return r.lint(f, args)
		},
	}
	fl := c.Flags()
	fl.StringVarP(&f.output, "output", "o", "text", "output: "+strings.Join(lintOutputs, ", "))
	fl.StringVar(&f.severity, "severity", string(lint.Info), "the least that is shown: error, warning or info")
	fl.StringSliceVar(&f.rules, "rule", nil, "check this rule only, repeatable")
	return c
}

// ruleHelp lists the rules.
func ruleHelp() string {
	var b strings.Builder
	for _, r := range lint.Rules() {
		fmt.Fprintf(&b, "  %-22s  %-7s  %s\n", r.ID, r.Severity, r.Doc)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (f *lintFlags) check() error {
	if !slices.Contains(lintOutputs, f.output) {
		return rutter.Errorf(rutter.CodeInvalid, "-o %q: use %s", f.output, strings.Join(lintOutputs, ", "))
	}
	if !lint.Severity(f.severity).Valid() {
		return rutter.Errorf(rutter.CodeInvalid, "--severity %q: use error, warning or info", f.severity)
	}
	for _, rule := range f.rules {
		if !lint.KnownRule(rule) {
			return rutter.Errorf(rutter.CodeInvalid, "--rule %q: there is no such rule; 'rutter lint --help' lists them", rule)
		}
	}
	return nil
}

// lint reads, checks and prints. The exit code says what was found.
func (r *root) lint(f *lintFlags, args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	files, err := readLintFiles(args)
	if err != nil {
		return err
	}
	findings := lint.Check(files, lint.Options{Rules: f.rules, Severity: lint.Severity(f.severity)})
	if err := r.printFindings(f.output, findings, len(files)); err != nil {
		return err
	}
	if slices.ContainsFunc(findings, func(f lint.Finding) bool { return f.Severity.AtLeast(lint.Warning) }) {
		return exit{code: ExitDifferent}
	}
	return nil
}

func (r *root) printFindings(output string, findings []lint.Finding, files int) error {
	switch output {
	case "json":
		enc := json.NewEncoder(r.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(findings); err != nil {
			return fmt.Errorf("write json: %w", err)
		}
		return nil
	case "sarif":
		text, err := lint.SARIF(findings, r.version)
		if err != nil {
			return err // it says what it did
		}
		_, err = r.out.Write(text)
		return err
	}
	count := map[lint.Severity]int{}
	for _, f := range findings {
		count[f.Severity]++
		object := ""
		if f.Object != "" {
			object = " [" + f.Object + "]"
		}
		fmt.Fprintf(r.out, "%s:%d:%d: %s: %s: %s%s\n    %s\n", f.File, f.Line, f.Column, f.Severity, f.Rule, f.Message, object, f.Remedy)
	}
	if files == 0 {
		fmt.Fprintln(r.err, "rutter: there are no YAML files here")
	} else if len(findings) > 0 {
		fmt.Fprintf(r.err, "%d errors, %d warnings, %d infos in %d files\n", count[lint.Error], count[lint.Warning], count[lint.Info], files)
	}
	return nil
}

// readLintFiles reads what is below the paths, and what belongs to them above:
// settings, and the charts that they are part of.
func readLintFiles(paths []string) ([]lint.File, error) {
	seen := map[string]bool{}
	var files []lint.File
	var problems []error
	add := func(name string) {
		name = filepath.Clean(name)
		if seen[name] {
			return
		}
		seen[name] = true
		content, err := os.ReadFile(name)
		if err != nil {
			problems = append(problems, rutter.Errorf(rutter.CodeNotFound, "cannot be read: %w", err))
			return
		}
		files = append(files, lint.File{Path: filepath.ToSlash(name), Content: content})
	}
	for _, p := range paths {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			problems = append(problems, rutter.Errorf(rutter.CodeNotFound, "cannot be read: %w", err))
			continue
		case !info.IsDir() && !lint.Reads(filepath.ToSlash(p)):
			problems = append(problems, rutter.Errorf(rutter.CodeInvalid, "%s is no YAML file: name files that end in .yaml or .yml, or folders", p))
			continue
		}
		for _, above := range lintParents(p) {
			add(above)
		}
		if !info.IsDir() {
			add(p)
			continue
		}
		if err := walkLint(p, add); err != nil {
			problems = append(problems, err)
		}
	}
	return files, errors.Join(problems...)
}

// walkLint adds the files below a folder. Hidden folders, installed modules and
// symbolic links are no part of a repository's declaration.
func walkLint(root string, add func(string)) error {
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules"):
			return filepath.SkipDir
		case e.Type().IsRegular() && lint.Reads(filepath.ToSlash(name)):
			add(name)
		}
		return nil
	})
	if err != nil {
		return rutter.Errorf(rutter.CodeNotFound, "cannot be read: %w", err)
	}
	return nil
}

// lintParents returns the settings and the Chart.yaml in the folders above a
// path, up to the current folder or the repository's root.
func lintParents(p string) []string {
	var out []string
	for dir := filepath.Dir(filepath.Clean(p)); filepath.Base(dir) != ".."; dir = filepath.Dir(dir) {
		for _, name := range []string{lint.ConfigName, "Chart.yaml"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				out = append(out, filepath.Join(dir, name))
			}
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			break
		}
	}
	return out
}
