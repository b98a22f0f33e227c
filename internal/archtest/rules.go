// Package archtest holds the rules of the house as Go tests: which ring may
// import which, what the deciding packages may not do, and the habits that a
// reviewer would otherwise have to remember. It tests the tree as go list sees
// it; it is imported by nobody.
package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// module is the product's module path.
const module = "github.com/rutterhq/rutter"

// Package is what a rule needs to know of a package, as go list prints it.
type Package struct {
	ImportPath string   `json:"ImportPath"`
	Doc        string   `json:"Doc"`
	Name       string   `json:"Name"`
	Imports    []string `json:"Imports"`
	GoFiles    []string `json:"GoFiles"`
	Dir        string   `json:"Dir"`
}

// rel is the path within the module; "" is the vocabulary.
func (p Package) rel() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// ring is one circle of the house and what it may import of the others.
type ring struct {
	name string
	// members are the packages, by path; a trailing / means everything below.
	members []string
	// inside are the packages of this module that it may import.
	inside []string
	// outside are the allowed prefixes of other modules' packages; nil means any.
	outside []string
	// forbidden are standard library packages that it may not import.
	forbidden []string
}

// pureForbidden keep deciding pure: no file, network, process, clock, chance,
// logger or context.
var pureForbidden = []string{"os", "os/exec", "net", "net/http", "log", "log/slog", "context", "math/rand", "math/rand/v2", "sync", "io/ioutil"}

// pureOutside are libraries that compute and do nothing else.
var pureOutside = []string{
	"k8s.io/apimachinery/", "k8s.io/api/", "k8s.io/apiextensions-apiserver/pkg/apis/", "sigs.k8s.io/yaml", "sigs.k8s.io/json", "go.yaml.in/yaml/",
	"github.com/gobwas/glob", "github.com/Masterminds/sprig/v3", "github.com/gosimple/slug", "github.com/bmatcuk/doublestar/v4",
	"github.com/evanphx/json-patch/v5", "sigs.k8s.io/structured-merge-diff/",
}

var rings = []ring{
	{name: "vocabulary", members: []string{""}, outside: []string{"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/types"},
		forbidden: []string{"os", "os/exec", "net", "net/http", "log", "log/slog", "math/rand", "math/rand/v2", "sync"}},
	{name: "api", members: []string{"api/", "deploy", "examples"}, inside: []string{}},
	{name: "pure", members: []string{"internal/compare", "internal/health", "internal/plan", "internal/policy", "internal/inventory", "internal/generate", "internal/dialect/"},
		inside:  []string{"", "api/", "internal/compare", "internal/health", "internal/plan", "internal/policy", "internal/inventory"},
		outside: pureOutside, forbidden: pureForbidden},
	{name: "apply", members: []string{"internal/apply"}, inside: []string{"", "internal/plan"}, outside: []string{"k8s.io/apimachinery/"}},
	{name: "render", members: []string{"internal/render", "internal/render/"}, inside: []string{"", "internal/render", "internal/render/"}},
	{name: "adapters", members: []string{"internal/source/", "internal/cluster", "internal/local", "internal/gitserver"}, inside: []string{""}},
	{name: "engine", members: []string{"internal/engine"},
		inside:  []string{"", "internal/apply", "internal/compare", "internal/health", "internal/plan", "internal/inventory", "internal/policy"},
		outside: []string{"k8s.io/apimachinery/"}, forbidden: []string{"os", "os/exec", "net", "net/http"}},
	{name: "drivers", members: []string{"internal/controller/", "internal/httpapi", "internal/cli"},
		inside: []string{"", "api/", "internal/engine", "internal/compare", "internal/health", "internal/plan", "internal/policy", "internal/inventory", "internal/generate", "internal/dialect/"}},
	{name: "root", members: []string{"internal/daemon", "cmd/", "bench", "bench/"}},
	{name: "tests", members: []string{"internal/archtest", "internal/testenv", "test/"}},
}

// ringOf finds the ring of a package.
func ringOf(p Package) *ring {
	for i := range rings {
		if matches(rings[i].members, p.rel()) {
			return &rings[i]
		}
	}
	return nil
}

func matches(list []string, rel string) bool {
	return slices.ContainsFunc(list, func(m string) bool {
		return m == rel || strings.HasSuffix(m, "/") && strings.HasPrefix(rel, m)
	})
}

// Imports says which imports of a package its ring does not allow.
func Imports(p Package) []string {
	r := ringOf(p)
	if r == nil {
		return []string{p.ImportPath + " belongs to no ring: name its ring in internal/archtest/rules.go"}
	}
	if r.name == "root" || r.name == "tests" {
		return nil
	}
	var bad []string
	for _, imp := range p.Imports {
		if why := refuse(r, p, imp); why != "" {
			bad = append(bad, fmt.Sprintf("%s (%s) imports %s: %s", p.ImportPath, r.name, imp, why))
		}
	}
	return bad
}

func refuse(r *ring, p Package, imp string) string {
	switch {
	case imp == module || strings.HasPrefix(imp, module+"/"):
		rel := strings.TrimPrefix(strings.TrimPrefix(imp, module), "/")
		if r.inside == nil && r.name != "vocabulary" || matches(r.inside, rel) || strings.HasPrefix(rel, p.rel()+"/") && p.rel() != "" {
			return ""
		}
		return "not allowed for this ring"
	case !strings.Contains(strings.SplitN(imp, "/", 2)[0], "."): // the standard library
		if slices.Contains(r.forbidden, imp) {
			return "deciding stays pure"
		}
	case r.outside != nil && !slices.ContainsFunc(r.outside, func(prefix string) bool { return strings.HasPrefix(imp, prefix) }):
		return "not one of the ring's libraries"
	}
	return ""
}

// Habits says what is wrong with a package in itself.
func Habits(p Package) []string {
	var bad []string
	if p.Doc == "" && len(p.GoFiles) > 0 {
		bad = append(bad, p.ImportPath+" has no package comment")
	}
	if slices.Contains([]string{"util", "utils", "common", "helpers", "misc", "shared", "base"}, p.Name) {
		bad = append(bad, p.ImportPath+" has a name that says nothing: a helper used by two lives in the lower one; used by three it is a concept")
	}
	return bad
}
