package render

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/store"
)

// newDigestKey returns the key of this process's digests of secret content.
func newDigestKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	return key
}

// digest addresses a blob. That of a secret one is keyed, because a plain hash
// of a short secret tells the secret to who can guess.
func (r *Renderer) digest(blob []byte, secret bool) string {
	if !secret {
		return store.Digest(blob)
	}
	h := hmac.New(sha256.New, r.digestKey)
	_, _ = h.Write(blob) // it cannot fail
	return hex.EncodeToString(h.Sum(nil))
}

// unseal opens objects that still hold a SOPS envelope after the build: a tool
// made them of files that could not be opened by themselves. One that cannot be
// opened fails the render, for it must never be applied.
func (r *Renderer) unseal(ctx context.Context, repo *record.FS, j job, objs []rutter.Object) ([]rutter.Object, error) {
	for i, o := range objs {
		if !rutter.Sealed(o.Object) {
			continue
		}
		if r.opts.Decrypter == nil {
			return nil, sealedError(o, rutter.CodeInvalid, nil)
		}
		j.env.Use(buildenv.Keys)
		plain, ok, err := r.opts.Decrypter.DecryptObject(ctx, j.req.Project, o.Object)
		if err != nil {
			return nil, sealedError(o, rutter.CodeOf(err), err)
		}
		if !ok || rutter.Sealed(plain) {
			return nil, sealedError(o, rutter.CodeInvalid, nil)
		}
		repo.Secret()
		objs[i].Unstructured = &unstructured.Unstructured{Object: plain}
	}
	return objs, nil
}

func sealedError(o rutter.Object, code rutter.Code, cause error) error {
	return &rutter.Error{Code: code, File: o.Origin.File, Line: o.Origin.Line, Err: cause, Message: fmt.Sprintf(
		"%s is still encrypted by SOPS and is not applied: give the key in a Secret labelled argocd.argoproj.io/secret-type=sops-keys", o.Ref())}
}
