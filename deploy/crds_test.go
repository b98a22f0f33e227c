package deploy_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/deploy"
)

// schema is the part of an OpenAPI schema that decides what the API server
// accepts and keeps.
type schema struct {
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
	Additional *schema           `json:"additionalProperties"`
	Items      *schema           `json:"items"`
	Required   []string          `json:"required"`
	Enum       []any             `json:"enum"`
	MaxLength  *int              `json:"maxLength"`
	Preserve   bool              `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrStr   bool              `json:"x-kubernetes-int-or-string"`
}

type definition struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind       string   `json:"kind"`
			ShortNames []string `json:"shortNames"`
		} `json:"names"`
		Versions []struct {
			Name         string         `json:"name"`
			Subresources map[string]any `json:"subresources"`
			Columns      []struct {
				Name     string `json:"name"`
				Priority int    `json:"priority"`
			} `json:"additionalPrinterColumns"`
			Schema struct {
				OpenAPI schema `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

func definitions(t *testing.T) map[string]definition {
	t.Helper()
	out := map[string]definition{}
	err := fs.WalkDir(deploy.CRDs, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := deploy.CRDs.ReadFile(path)
		if err != nil {
			return err
		}
		var d definition
		if err := yaml.Unmarshal(raw, &d); err != nil {
			return err
		}
		out[d.Spec.Names.Kind] = d
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// check lists what the API server would drop or refuse.
func (s schema) check(path string, v any) []string {
	if s.IntOrStr || v == nil {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		return s.checkObject(path, v)
	case []any:
		if s.Items == nil {
			return s.untyped(path, "a list")
		}
		var out []string
		for i, item := range v {
			out = append(out, s.Items.check(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
		return out
	case string:
		if s.Type != "string" {
			return s.untyped(path, "a string")
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(v)) || s.MaxLength != nil && len(v) > *s.MaxLength {
			return []string{path + ": not allowed: " + v}
		}
	case bool:
		if s.Type != "boolean" {
			return s.untyped(path, "a boolean")
		}
	default:
		if s.Type != "integer" && s.Type != "number" {
			return s.untyped(path, "a number")
		}
	}
	return nil
}

func (s schema) untyped(path, what string) []string {
	if s.Preserve && s.Type == "" {
		return nil
	}
	return []string{path + ": is " + what + " and should be " + s.Type}
}

func (s schema) checkObject(path string, v map[string]any) []string {
	if s.Type != "object" {
		return s.untyped(path, "an object")
	}
	var out []string
	for _, k := range s.Required {
		if _, ok := v[k]; !ok {
			out = append(out, path+"."+k+": required")
		}
	}
	for k, field := range v {
		if p, ok := s.Properties[k]; ok {
			out = append(out, p.check(path+"."+k, field)...)
		} else if s.Additional != nil {
			out = append(out, s.Additional.check(path+"."+k, field)...)
		} else if !s.Preserve && (path != "" || k != "metadata") && path != ".metadata" {
			out = append(out, path+"."+k+": dropped")
		}
	}
	slices.Sort(out)
	return out
}

// TestFullSurface feeds each definition an object in which every field of the
// reference is set: none may be dropped or refused.
func TestFullSurface(t *testing.T) {
	defs := definitions(t)
	for _, kind := range []string{"Application", "ApplicationSet", "AppProject"} {
		t.Run(kind, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join("testdata", strings.ToLower(kind)+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			var obj map[string]any
			if err := yaml.UnmarshalStrict(raw, &obj); err != nil {
				t.Fatal(err)
			}
			for _, problem := range defs[kind].Spec.Versions[0].Schema.OpenAPI.check("", obj) {
				t.Error(problem)
			}
		})
	}
}

// TestSeedsAccepted: what people already write passes the definitions. The
// samples that kubectl refuses are in the dialect's tests.
func TestSeedsAccepted(t *testing.T) {
	defs := definitions(t)
	files, err := filepath.Glob("../test/seeds/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d seeds, %v", len(files), err)
	}
	refused := map[string]string{
		"gitops-advanced-04.yaml": ".spec.generators[0].scmProvider.github.filters: dropped",
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var obj map[string]any
		if err := yaml.Unmarshal(raw, &obj); err != nil {
			t.Fatal(err)
		}
		d, ok := defs[fmt.Sprint(obj["kind"])]
		if !ok {
			continue // a cluster Secret
		}
		got := strings.Join(d.Spec.Versions[0].Schema.OpenAPI.check("", obj), "\n")
		if want := refused[filepath.Base(f)]; got != want {
			t.Errorf("%s: %q, want %q", filepath.Base(f), got, want)
		}
	}
}

func TestNames(t *testing.T) {
	defs := definitions(t)
	for _, tc := range []struct {
		kind    string
		short   string
		status  bool
		columns string
	}{
		{"Application", "app apps", true, "Sync Status/0 Health Status/0 Revision/10 Project/10"},
		{"ApplicationSet", "appset appsets", true, "Applications/0 Health/0 Age/0"},
		{"AppProject", "appproj appprojs", false, ""},
	} {
		d := defs[tc.kind].Spec
		v := d.Versions[0]
		var columns []string
		for _, c := range v.Columns {
			columns = append(columns, fmt.Sprintf("%s/%d", c.Name, c.Priority))
		}
		if _, status := v.Subresources["status"]; d.Group != "argoproj.io" || v.Name != "v1alpha1" || status != tc.status ||
			strings.Join(d.Names.ShortNames, " ") != tc.short || strings.Join(columns, " ") != tc.columns {
			t.Errorf("%s: %+v", tc.kind, d.Names)
		}
	}
}
