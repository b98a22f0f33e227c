package store

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	"github.com/rutterhq/rutter"
)

// sealMark begins every sealed file. No blob begins so: they are JSON.
var sealMark = []byte("sealed\x00")

// newSeal returns a cipher whose key is nowhere but in this process: what it
// seals is rendered again by the next one, and a copy of the disk is worth nothing.
func newSeal() (cipher.AEAD, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "make a cipher for the render store: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "make a cipher for the render store: %w", err)
	}
	return aead, nil
}

// close seals a blob. Its digest is bound to it, so that no file answers for another.
func (s *Store) close(blob []byte, digest string) []byte {
	return s.seal.Seal(bytes.Clone(sealMark), nil, blob, []byte(digest)) //nolint:gosec // this cipher makes its nonces itself
}

// open returns the content of a sealed file; nil when this process did not seal it.
func (s *Store) open(file []byte, digest string) (plain []byte, sealed bool) {
	body, ok := bytes.CutPrefix(file, sealMark)
	if !ok {
		return nil, false
	}
	plain, err := s.seal.Open(nil, nil, body, []byte(digest))
	if err != nil {
		return nil, true
	}
	return plain, true
}
