// Package buildenv holds the build environment of a render (reference 1.3):
// the variables that parameters may use, such as $ARGOCD_APP_NAME.
//
// Ring: adapter (render); it does no I/O. It notes which variables were used, so that a render depends on
// the revision only when it says so.
package buildenv

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"strings"
	"sync"

	"github.com/rutterhq/rutter"
)

// Env are the variables of one render. It is safe for concurrent use.
type Env struct {
	values map[string]string
	// notes are what a result may depend on beside variables, each by a function
	// that returns it as it is now. No variable can have their names.
	notes map[string]func() string

	mu   sync.Mutex
	used map[string]string
}

// The notes.
const (
	// Capabilities are the target cluster's version and API list.
	Capabilities = "=capabilities"
	// Keys are the project and the keys that opened, or did not open, a sealed file.
	Keys = "=keys"
	// Owner is the application itself.
	Owner = "=owner"
	// Hour is the time, for what may come out differently later.
	Hour = "=hour"
)

// New returns the build environment of a request.
func New(req rutter.RenderRequest) *Env {
	rev := req.Snapshot.Revision()
	return &Env{used: map[string]string{}, notes: map[string]func() string{
		Capabilities: func() string { return DigestCapabilities(req.KubeVersion, req.APIVersions) },
	}, values: map[string]string{
		"ARGOCD_APP_NAME":                   req.Instance,
		"ARGOCD_APP_NAMESPACE":              req.Namespace,
		"ARGOCD_APP_PROJECT_NAME":           req.Project,
		"ARGOCD_APP_REVISION":               rev,
		"ARGOCD_APP_REVISION_SHORT":         rev[:min(7, len(rev))],
		"ARGOCD_APP_REVISION_SHORT_8":       rev[:min(8, len(rev))],
		"ARGOCD_APP_SOURCE_PATH":            req.Source.Path,
		"ARGOCD_APP_SOURCE_REPO_URL":        req.Source.RepoURL,
		"ARGOCD_APP_SOURCE_TARGET_REVISION": req.Source.TargetRevision,
	}}
}

// Has reports whether name is one of the variables.
func (e *Env) Has(name string) bool {
	_, ok := e.values[name]
	return ok
}

// Expand replaces $NAME and ${NAME}; $$ is a dollar, an unknown variable is
// empty and counts as used, so that it is noticed should it become known.
func (e *Env) Expand(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return os.Expand(s, func(name string) string {
		if name == "$" {
			return "$"
		}
		v := e.values[name]
		e.used[name] = v
		return v
	})
}

// All returns every variable, and notes that all were used.
func (e *Env) All() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.Copy(e.used, e.values)
	return maps.Clone(e.values)
}

// Note says how a note is found out; before anybody uses it.
func (e *Env) Note(name string, now func() string) { e.notes[name] = now }

// Use notes that the result depends on a note.
func (e *Env) Use(name string) {
	now := e.notes[name]
	if now == nil {
		return
	}
	v := now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used[name] = v
}

// UseCapabilities notes that the result depends on the target cluster's version
// and API list; what doesn't is shared between clusters.
func (e *Env) UseCapabilities() { e.Use(Capabilities) }

// DigestCapabilities returns a digest of a cluster's version and API list.
func DigestCapabilities(kubeVersion string, apiVersions []string) string {
	h := sha256.New()
	for _, s := range append([]string{kubeVersion}, apiVersions...) {
		_, _ = io.WriteString(h, s+"\n") // it cannot fail
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Used returns the variables and notes that were asked for, with their values.
func (e *Env) Used() map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.used) == 0 {
		return nil
	}
	return maps.Clone(e.used)
}

// Same reports whether all of used have the same values here.
func (e *Env) Same(used map[string]string) bool {
	for name, v := range used {
		now := e.values[name]
		if note := e.notes[name]; note != nil {
			now = note()
		}
		if now != v {
			return false
		}
	}
	return true
}
