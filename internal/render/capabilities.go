package render

import (
	"sync"

	"github.com/rutterhq/rutter/internal/render/buildenv"
)

// maxDigests bounds what is remembered of clusters' API lists.
const maxDigests = 1024

// digests remembers the digest of each cluster's version and API list. The
// lists are long, seldom new, and handed over unchanged for many units.
type digests struct {
	mu sync.Mutex
	by map[capabilityKey]string
}

// capabilityKey is the identity of a list, not its content.
type capabilityKey struct {
	version string
	first   *string
	n       int
}

func (d *digests) of(version string, apis []string) string {
	if len(apis) == 0 {
		return version
	}
	k := capabilityKey{version: version, first: &apis[0], n: len(apis)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if digest, ok := d.by[k]; ok {
		return digest
	}
	if d.by == nil || len(d.by) >= maxDigests {
		d.by = map[capabilityKey]string{}
	}
	digest := buildenv.DigestCapabilities(version, apis)
	d.by[k] = digest
	return digest
}
