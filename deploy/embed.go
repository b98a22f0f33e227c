// Package deploy carries the manifests that a control plane needs, so that the
// binary can install them.
package deploy

import "embed"

// CRDs are the generated definitions of the Argo CD dialect, crds/*.yaml.
//
//go:embed crds/*.yaml
var CRDs embed.FS
