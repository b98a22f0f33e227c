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

	"github.com/rutterhq/rutter"
)

// Env are the variables of one render. It is not safe for concurrent use.
type Env struct {
	values map[string]string
	used   map[string]string
	// capabilities returns a digest of what the target cluster serves.
	capabilities func() string
}

// capabilities is the name under which the use of the cluster's version and
// API list is noted. No variable can have it.
const capabilities = "=capabilities"

// New returns the build environment of a request.
func New(req rutter.RenderRequest) *Env {
	rev := req.Snapshot.Revision()
	return &Env{used: map[string]string{}, capabilities: func() string { return Capabilities(req.KubeVersion, req.APIVersions) }, values: map[string]string{
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
	maps.Copy(e.used, e.values)
	return maps.Clone(e.values)
}

// UseCapabilities notes that the result depends on the target cluster's version
// and API list; what doesn't is shared between clusters.
func (e *Env) UseCapabilities() { e.used[capabilities] = e.capabilities() }

// Capabilities returns a digest of a cluster's version and API list.
func Capabilities(kubeVersion string, apiVersions []string) string {
	h := sha256.New()
	for _, s := range append([]string{kubeVersion}, apiVersions...) {
		_, _ = io.WriteString(h, s+"\n") // it cannot fail
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// SetCapabilities takes the digest from a caller who knows it.
func (e *Env) SetCapabilities(digest func() string) { e.capabilities = digest }

// Aside returns the same variables for a question whose answer is asked for anew
// each time: that they are used for it is not noted here.
func (e *Env) Aside() *Env {
	return &Env{values: e.values, capabilities: e.capabilities, used: map[string]string{}}
}

// Used returns the variables that were asked for, with their values.
func (e *Env) Used() map[string]string {
	if len(e.used) == 0 {
		return nil
	}
	return maps.Clone(e.used)
}

// Same reports whether all of used have the same values here.
func (e *Env) Same(used map[string]string) bool {
	for name, v := range used {
		now := e.values[name]
		if name == capabilities {
			now = e.capabilities()
		}
		if now != v {
			return false
		}
	}
	return true
}
