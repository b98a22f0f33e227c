package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/health"
)

// healthRow is a document in the output of rutter health.
type healthRow struct {
	Source string `json:"source"`
	// Document counts the documents of the source from 0.
	Document   int    `json:"document"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	// Status is empty for kinds that have no health.
	Status  string `json:"status"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

func (r *root) healthCommand() *cobra.Command {
	var paths []string
	var config string
	c := &cobra.Command{
		Use: "health -f PATH...", Short: "Say how live objects do, from files",
		Long: "Reads objects as kubectl get -o yaml prints them and prints one JSON line for each: its health, why, and the reason in a word.\n" +
			"PATH is a file, a folder (its .yaml, .yml and .json files, at any depth) or - for standard input. The items of a List are documents\n" +
			"of their own. A kind that has no health, such as a ConfigMap, has an empty status.\n\n" +
			"Exit codes: 0 all could be read, whatever they say; 2 some could not: those have the status Unknown, and the others are printed.",
		Example: "  kubectl get all -o yaml | rutter health -f -\n  rutter health -f live/ | jq 'select(.status == \"Degraded\")'",
		RunE: func(_ *cobra.Command, args []string) error {
			if paths = append(paths, args...); len(paths) == 0 {
				return rutter.Errorf(rutter.CodeInvalid, "name files or folders with -f; - is standard input")
			}
			assess, err := r.assessor(config)
			if err != nil {
				return err
			}
			return r.health(paths, assess)
		},
	}
	c.Flags().StringVar(&config, "config", "", "argocd-cm, for the assessments that it has, in Lua (resource.customizations.health) and CEL (resource.customizations.healthCheckExprs)")
	c.Flags().StringArrayVarP(&paths, "filename", "f", nil, "file, folder, or - for standard input; repeatable")
	return c
}

// assessor is what judges, with the scripts of an argocd-cm.
func (r *root) assessor(config string) (*health.Assessor, error) {
	if config == "" {
		return nil, nil
	}
	objects, err := r.readObjects(config)
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		cm, ok := o.(*corev1.ConfigMap)
		if !ok {
			continue
		}
		scripts, problems := argo.ParseHealthScripts(cm)
		exprs, more := argo.ParseHealthExprs(cm)
		for _, p := range append(problems, more...) {
			fmt.Fprintf(r.err, "rutter: %s: %s\n", config, p)
		}
		a, errs := health.NewAssessor(scripts, exprs)
		for _, err := range errs {
			fmt.Fprintf(r.err, "rutter: %s: %v\n", config, err)
		}
		return a, nil
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "--config: %s holds no ConfigMap", config)
}

func (r *root) health(paths []string, assess *health.Assessor) error {
	enc := json.NewEncoder(r.out)
	enc.SetEscapeHTML(false)
	failed := false
	for _, path := range paths {
		files, err := healthFiles(path)
		if err != nil {
			return err
		}
		for _, file := range files {
			data, err := r.readFile(file)
			if err != nil {
				return err
			}
			for _, row := range healthRows(file, data, assess) {
				failed = failed || row.Reason == unreadable
				if err := enc.Encode(row); err != nil {
					return fmt.Errorf("write json: %w", err)
				}
			}
		}
	}
	if failed {
		return exit{ExitError}
	}
	return nil
}

// healthFiles are the files of a path.
func healthFiles(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch filepath.Ext(name) {
		case ".yaml", ".yml", ".json":
			if d.Type().IsRegular() {
				files = append(files, name)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", path, err)
	}
	return files, nil
}

// unreadable is the reason of a document that is no object.
const unreadable = "Unreadable"

// healthRows judges the documents of a file. One that cannot be read says so,
// and keeps no other from being judged.
func healthRows(source string, data []byte, assess *health.Assessor) []healthRow {
	var rows []healthRow
	add := func(row healthRow) {
		row.Source, row.Document = source, len(rows)
		rows = append(rows, row)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			add(healthRow{Status: string(rutter.HealthUnknown), Message: err.Error(), Reason: unreadable})
			return rows
		}
		var tree map[string]any
		if err := yaml.Unmarshal(doc, &tree); err != nil {
			add(healthRow{Status: string(rutter.HealthUnknown), Message: strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), Reason: unreadable})
			continue
		}
		if len(tree) == 0 {
			continue // nothing but comments
		}
		for _, o := range itemsOf(tree) {
			add(healthRowOf(o, assess))
		}
	}
}

// itemsOf are the objects of a list, or the object itself.
func itemsOf(tree map[string]any) []map[string]any {
	kind, _ := tree["kind"].(string)
	items, ok := tree["items"].([]any)
	if !ok || !strings.HasSuffix(kind, "List") {
		return []map[string]any{tree}
	}
	var out []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func healthRowOf(tree map[string]any, assess *health.Assessor) healthRow {
	u := &unstructured.Unstructured{Object: tree}
	row := healthRow{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Name: u.GetName()}
	if row.APIVersion == "" || row.Kind == "" {
		row.Status, row.Message, row.Reason = string(rutter.HealthUnknown), "not a Kubernetes object: apiVersion and kind are needed", unreadable
		return row
	}
	h := assess.Of(u, time.Now())
	row.Status, row.Message, row.Reason = string(h.Status), h.Message, h.Reason
	return row
}
