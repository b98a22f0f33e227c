// Package archtest holds the rules of the house as Go tests: which ring may
// import which, what the deciding packages may not do, and the habits that a
// reviewer would otherwise have to remember. It looks at the tree as go list
// sees it; nobody imports it, and it is in no ring.
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
	Deps       []string `json:"Deps"`
	GoFiles    []string `json:"GoFiles"`
	Dir        string   `json:"Dir"`
}

// rel is a package's path within the module; "" is the vocabulary.
func rel(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// ours tells whether an import path lies in the product or below it.
func ours(importPath string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// ring is one circle of the house and what it may know of the others. Lists
// match a path and everything below it; "" matches the vocabulary alone.
type ring struct {
	name    string
	members []string
	// inside are the packages of this module that it may import.
	inside []string
	// standard are the packages of the standard library that it may import; nil means any
	// but those that are denied.
	standard []string
	denied   []string
	// outside are the packages of other modules that it may import; nil means any.
	outside []string
	// unreachable may not be linked in by any way round.
	unreachable []string
}

var (
	// deciders are what the engine asks. They know the vocabulary only: a dialect's
	// types must not get in, or one dialect's habits would become the engine's.
	deciders = []string{"internal/actions", "internal/cel", "internal/compare", "internal/jq", "internal/schema", "internal/explain", "internal/matrix", "internal/fieldpath", "internal/health", "internal/lua", "internal/plan", "internal/preview", "internal/rollout", "internal/inventory", "internal/syncwindow"}
	// edge turns what people write into the engine's words, and answers back.
	edge     = []string{"internal/generate", "internal/lint", "internal/policy", "internal/dialect"}
	adapters = []string{
		"internal/source", "internal/decrypt", "internal/cluster", "internal/local", "internal/gitserver",
		"internal/forge", "internal/paramservice", "internal/signature", "internal/notify", "internal/auth",
	}
	// shared is what the adapters of charts, artifacts and files have in common.
	shared  = []string{"internal/source/fresh", "internal/source/registry", "internal/source/remote", "internal/source/unpack"}
	drivers = []string{"internal/controller", "internal/httpapi", "internal/cli"}

	// computing is the part of the standard library that takes values and returns
	// values. net/url and net/netip parse; nothing else of net is here. io and io/fs
	// are interfaces. time is here for durations: Impure looks for the clock. What is
	// embedded is a value.
	computing = []string{
		"bufio", "bytes", "cmp", "compress/flate", "compress/gzip", "container", "crypto/hmac", "crypto/md5", "crypto/sha1", "crypto/sha256", "crypto/sha512",
		"crypto/subtle", "embed", "encoding", "errors", "fmt", "hash", "html", "io", "iter", "maps", "math", "net/netip", "net/url",
		"path", "reflect", "regexp", "slices", "sort", "strconv", "strings", "text", "time", "unicode",
	}
	// notComputing lie below an entry of computing and do not belong.
	notComputing = []string{"math/rand", "io/ioutil", "path/filepath"}
	// world is the standard library's way to files, processes, the network and chance.
	world = []string{"os", "net", "log", "syscall", "plugin", "math/rand", "io/ioutil", "path/filepath", "unsafe"}

	// machinery are Kubernetes' values: types, quantities, JSON; no watch, no wait, no clock.
	machinery = []string{
		"k8s.io/apimachinery/pkg/api/equality", "k8s.io/apimachinery/pkg/api/resource", "k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/fields", "k8s.io/apimachinery/pkg/labels", "k8s.io/apimachinery/pkg/runtime",
		"k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/util/intstr", "k8s.io/apimachinery/pkg/util/json",
		"k8s.io/apimachinery/pkg/util/sets", "k8s.io/apimachinery/pkg/util/strategicpatch", "k8s.io/apimachinery/pkg/util/validation",
	}
	// calculators are libraries that compute and do nothing else.
	calculators = slices.Concat(machinery, []string{
		"github.com/Masterminds/semver/v3", "github.com/Masterminds/sprig/v3", "github.com/bmatcuk/doublestar/v4",
		"github.com/evanphx/json-patch/v5", "github.com/gobwas/glob", "github.com/google/cel-go", "github.com/gosimple/slug", "github.com/itchyny/gojq", "github.com/yuin/gopher-lua", "go.yaml.in/yaml",
		"k8s.io/api", "k8s.io/apiextensions-apiserver/pkg/apis", "sigs.k8s.io/json", "sigs.k8s.io/structured-merge-diff", "sigs.k8s.io/yaml",
	})
	// clients reach a cluster or wrap what does.
	clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "helm.sh/helm/v4", "sigs.k8s.io/kustomize"}
)

var rings = []ring{
	{
		name: "vocabulary", members: []string{""}, inside: []string{}, denied: append([]string{"sync"}, world...),
		outside: []string{
			"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/types",
		},
		unreachable: clients,
	},
	{
		name: "api", members: []string{"api"}, inside: []string{"api"}, denied: world,
		outside: []string{"k8s.io/apimachinery", "k8s.io/apiextensions-apiserver/pkg/apis"}, unreachable: clients,
	},
	{name: "files", members: []string{"deploy", "examples"}, inside: []string{}, standard: []string{"embed"}, outside: []string{}},
	{
		name: "pure", members: deciders, inside: append([]string{""}, deciders...),
		standard: computing, denied: notComputing, outside: calculators, unreachable: append([]string{module + "/api"}, clients...),
	},
	{
		name: "pure at the edge", members: edge, inside: slices.Concat([]string{"", "api"}, deciders, []string{"internal/policy"}),
		standard: computing, denied: notComputing, outside: calculators, unreachable: clients,
	},
	{
		name: "apply", members: []string{"internal/apply"}, inside: []string{"", "internal/plan"},
		denied: world, outside: machinery, unreachable: append([]string{module + "/api"}, clients...),
	},
	{name: "sandbox", members: []string{"internal/sandbox"}, inside: []string{""}},
	{name: "memory of what was read", members: []string{"internal/recent"}, inside: []string{}, denied: world, outside: []string{}},
	{name: "render", members: []string{"internal/render"}, inside: []string{"", "internal/recent", "internal/render", "internal/sandbox"}},
	{name: "what sources share", members: shared, inside: append([]string{""}, shared...)},
	{name: "adapters", members: adapters, inside: append([]string{"", "internal/recent"}, shared...)},
	{
		name: "engine", members: []string{"internal/engine"}, inside: slices.Concat([]string{"", "internal/apply"}, deciders),
		// Chance is for the jitter of polls.
		denied:  []string{"os", "net", "log/syslog", "syscall", "plugin", "path/filepath", "unsafe"},
		outside: append([]string{"golang.org/x/sync"}, machinery...), unreachable: append([]string{module + "/api"}, clients...),
	},
	{name: "drivers", members: drivers, inside: slices.Concat([]string{"", "api", "internal/engine"}, deciders, edge)},
	{
		name: "composition root", members: []string{"internal/daemon"},
		inside: slices.Concat([]string{"", "api", "deploy", "examples", "internal/engine", "internal/apply", "internal/render", "internal/sandbox"}, deciders, edge, adapters, drivers),
	},
	{
		name: "main", members: []string{"cmd"},
		inside: slices.Concat([]string{"", "api", "deploy", "examples", "internal/daemon", "internal/render", "internal/sandbox"}, adapters, drivers),
	},
	{name: "test clusters", members: []string{"internal/testenv"}, inside: []string{"", "internal/local"}},
	{
		name: "tests", members: []string{"bench", "test"},
		inside: slices.Concat([]string{"", "api", "deploy", "examples", "internal/daemon", "internal/engine", "internal/apply", "internal/render", "internal/sandbox", "internal/testenv"},
			deciders, edge, adapters, drivers),
	},
	{name: "rules", members: []string{"internal/archtest"}, inside: []string{}, outside: []string{}},
}

// ringOf finds the ring of a package; nil when it has none.
func ringOf(p Package) *ring {
	for i := range rings {
		if slices.ContainsFunc(rings[i].members, func(m string) bool { return below(rel(p.ImportPath), m) }) {
			return &rings[i]
		}
	}
	return nil
}

// below tells whether a path is the given one or lies under it. Everything lies
// under the vocabulary's path, so that one matches alone.
func below(path, top string) bool {
	return path == top || top != "" && strings.HasPrefix(path, top+"/")
}

func anyBelow(path string, tops []string) bool {
	return slices.ContainsFunc(tops, func(top string) bool { return below(path, top) })
}

// Imports says which imports of a package its ring does not allow.
func Imports(p Package) []string {
	r := ringOf(p)
	if r == nil {
		return []string{p.ImportPath + " belongs to no ring: name its ring in internal/archtest/rules.go"}
	}
	var bad []string
	for _, imp := range p.Imports {
		if why := r.refuses(p, imp); why != "" {
			bad = append(bad, fmt.Sprintf("%s (%s) imports %s: %s", p.ImportPath, r.name, imp, why))
		}
	}
	for _, dep := range p.Deps {
		if anyBelow(dep, r.unreachable) && !slices.Contains(p.Imports, dep) {
			bad = append(bad, fmt.Sprintf("%s (%s) reaches %s through what it imports: go mod why -m says how", p.ImportPath, r.name, dep))
		}
	}
	return bad
}

// refuses says why the ring does not allow an import; "" means that it does.
func (r *ring) refuses(p Package, imp string) string {
	switch {
	case imp == "C":
		return "everything is Go"
	case ours(imp):
		return r.refusesOurs(p, imp)
	case isStandard(imp):
		if anyBelow(imp, r.denied) || r.standard != nil && !anyBelow(imp, r.standard) {
			return "this ring does not touch the world; if the package only computes, name it in internal/archtest/rules.go"
		}
	case r.outside != nil && !anyBelow(imp, r.outside):
		return "not one of the ring's libraries; if it only computes, name it in internal/archtest/rules.go"
	}
	return ""
}

func (r *ring) refusesOurs(p Package, imp string) string {
	if below(rel(imp), "localcluster") {
		return "the local cluster is a module of its own, run as a child process"
	}
	// What lies below a package is part of it.
	if anyBelow(rel(imp), r.inside) || rel(p.ImportPath) != "" && below(rel(imp), rel(p.ImportPath)) {
		return ""
	}
	return "not allowed for this ring"
}

func isStandard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}
