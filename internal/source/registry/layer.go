package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/remote"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

// Unpack fetches a layer, of no more than most bytes, and unfolds it into a tree.
// Nothing of a layer that is not what its digest says is kept.
func (r *Repository) Unpack(ctx context.Context, store *unpack.Store, key string, want Wanted, most int64) (*unpack.Tree, error) {
	layer := want.Layer
	what := "the layer " + layer.Digest + " of " + r.Address.String()
	if !IsDigest(layer.Digest) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: its manifest names a layer by %q, which is no digest of the form sha256:<64 hex digits>", r.Address, layer.Digest)
	}
	if layer.Size > most {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s has %d bytes, more than %d", what, layer.Size, most)
	}
	resp, err := r.do(ctx, call{url: r.at("blobs", layer.Digest), what: what})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	content := sha256.New()
	body := io.TeeReader(remote.Body(what, r.access, resp, most), content)
	tree, err := store.Put(func(b *unpack.Builder) (string, error) {
		bad := unpack.Tar(b, body, want.Strip)
		// What is not what it should be is not judged by its content.
		if _, err := io.Copy(io.Discard, body); err != nil {
			return "", cmp.Or(bad, err)
		}
		if got := "sha256:" + hex.EncodeToString(content.Sum(nil)); got != layer.Digest {
			return "", rutter.Errorf(rutter.CodeUnavailable, "the registry sent another content (%s): refused", got)
		}
		return key, bad
	}, want.Check)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "%s: %w", what, err)
	}
	return tree, nil
}
