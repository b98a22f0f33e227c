package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/remote"
)

// Media types of manifests and of what they hold.
const (
	typeManifest       = "application/vnd.oci.image.manifest.v1+json"
	typeIndex          = "application/vnd.oci.image.index.v1+json"
	typeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	typeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"

	// HelmConfig and HelmChart are those of a chart.
	HelmConfig = "application/vnd.cncf.helm.config.v1+json"
	HelmChart  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// Layer and LayerGzip are those of a plain artifact, FluxContent is Flux's.
	Layer       = "application/vnd.oci.image.layer.v1.tar"
	LayerGzip   = "application/vnd.oci.image.layer.v1.tar+gzip"
	FluxContent = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// maxManifest is as large as registries let one be.
const maxManifest = 4 << 20

// Descriptor names a content.
type Descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

// Manifest is what an artifact consists of.
type Manifest struct {
	MediaType string       `json:"mediaType"`
	Config    Descriptor   `json:"config"`
	Layers    []Descriptor `json:"layers"`
	// Manifests are those of an index.
	Manifests []Descriptor `json:"manifests"`
}

// Pick returns the only layer of one of the media types.
func (m Manifest) Pick(what string, types ...string) (Descriptor, error) {
	var found []Descriptor
	seen := make([]string, 0, len(m.Layers))
	for _, l := range m.Layers {
		if slices.Contains(types, l.MediaType) {
			found = append(found, l)
		}
		if len(seen) < 10 {
			seen = append(seen, l.MediaType)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Descriptor{}, rutter.Errorf(rutter.CodeInvalid, "%s has no layer that can be used: it has %d layers (%q); one of %s is wanted", what, len(m.Layers), seen, strings.Join(types, ", "))
	}
	return Descriptor{}, rutter.Errorf(rutter.CodeInvalid, "%s has %d layers that could be used; exactly one is wanted: push the files as one archive", what, len(found))
}

var (
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	tagForm    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// IsDigest tells whether a reference is a digest.
func IsDigest(ref string) bool { return digestForm.MatchString(ref) }

// IsTag tells whether a reference can be a tag.
func IsTag(ref string) bool { return tagForm.MatchString(ref) }

// Resolve returns the digest of the manifest that a tag names now. It asks
// without fetching, which registries count for less.
func (r *Repository) Resolve(ctx context.Context, tag string) (string, error) {
	what := r.Address.String() + ":" + tag
	if !IsTag(tag) {
		return "", rutter.Errorf(rutter.CodeInvalid, "%s: %q can be no tag (letters, digits and . _ -, at most 128)", r.Address, tag)
	}
	resp, err := r.do(ctx, call{method: http.MethodHead, url: r.at("manifests", tag), accept: manifestTypes(), what: what})
	if err == nil {
		discard(resp)
		if digest := resp.Header.Get("Docker-Content-Digest"); IsDigest(digest) {
			return digest, nil
		}
	}
	// Some registries do not answer such a question, or not fully.
	if err != nil && rutter.CodeOf(err) != rutter.CodeInvalid {
		return "", err
	}
	_, digest, err := r.fetch(ctx, tag, what)
	return digest, err
}

func manifestTypes() []string {
	return []string{typeManifest, typeIndex, typeDockerManifest, typeDockerList}
}

// Manifest fetches the manifest of a digest. Of an index that has only one
// manifest it is that one.
func (r *Repository) Manifest(ctx context.Context, digest string) (Manifest, error) {
	what := r.Address.String() + "@" + digest
	m, err := r.manifest(ctx, digest, what)
	if err != nil || len(m.Manifests) == 0 {
		return m, err
	}
	if len(m.Manifests) > 1 {
		return m, rutter.Errorf(rutter.CodeInvalid, "%s is an index of %d manifests; write the digest of one of them as the revision", what, len(m.Manifests))
	}
	only, err := r.manifest(ctx, m.Manifests[0].Digest, what)
	if err == nil && len(only.Manifests) > 0 {
		err = rutter.Errorf(rutter.CodeInvalid, "%s is an index of indexes: no artifact", what)
	}
	return only, err
}

func (r *Repository) manifest(ctx context.Context, digest, what string) (Manifest, error) {
	if !IsDigest(digest) {
		return Manifest{}, rutter.Errorf(rutter.CodeInvalid, "%s: %q is no digest of the form sha256:<64 hex digits>", r.Address, digest)
	}
	data, got, err := r.fetch(ctx, digest, what)
	if err != nil {
		return Manifest{}, err
	}
	if got != digest {
		return Manifest{}, rutter.Errorf(rutter.CodeUnavailable, "%s: the registry answered with another content (%s): refused", what, got)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, rutter.Errorf(rutter.CodeInvalid, "%s has a manifest that cannot be read: push it again", what)
	}
	return m, nil
}

// fetch gets a manifest by tag or digest, with the digest of what came.
func (r *Repository) fetch(ctx context.Context, ref, what string) ([]byte, string, error) {
	resp, err := r.do(ctx, call{url: r.at("manifests", ref), accept: manifestTypes(), what: what})
	if err != nil {
		return nil, "", err
	}
	defer discard(resp)
	data, err := io.ReadAll(remote.Body(what+": its manifest", r.access, resp, maxManifest))
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(data)
	return data, "sha256:" + hex.EncodeToString(sum[:]), nil
}
