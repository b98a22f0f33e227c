// Package deploy carries the manifests that a control plane needs, so that the
// binary can install them.
package deploy

import "embed"

// CRDs are the generated definitions of the Argo CD dialect, crds/argoproj.io_*.yaml.
//
//go:embed crds/argoproj.io_*.yaml
var CRDs embed.FS
