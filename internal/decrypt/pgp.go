package decrypt

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"

	"github.com/rutterhq/rutter"
)

// parsePGP reads armored private keys, several blocks if need be.
func parsePGP(value []byte) (openpgp.EntityList, error) {
	var keys openpgp.EntityList
	r := bufio.NewReader(bytes.NewReader(value))
	for n := 1; ; n++ {
		block, err := armor.Decode(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return keys, rutter.Errorf(rutter.CodeInvalid, "block %d is no armored PGP key: export it with 'gpg --armor --export-secret-keys'", n)
		}
		found, err := openpgp.ReadKeyRing(block.Body)
		if err != nil {
			return keys, rutter.Errorf(rutter.CodeInvalid, "block %d holds no PGP key that can be read: export it with 'gpg --armor --export-secret-keys'", n)
		}
		if err := usable(found); err != nil {
			return keys, rutter.Errorf(rutter.CodeInvalid, "block %d %w", n, err)
		}
		keys = append(keys, found...)
	}
	if len(keys) == 0 {
		return nil, rutter.Errorf(rutter.CodeInvalid, "holds no armored PGP key: export it with 'gpg --armor --export-secret-keys'")
	}
	return keys, nil
}

// usable tells whether every key can open something without a passphrase.
func usable(keys openpgp.EntityList) error {
	for _, e := range keys {
		private := slices.ContainsFunc(e.Subkeys, func(s openpgp.Subkey) bool { return s.PrivateKey != nil })
		locked := slices.ContainsFunc(e.Subkeys, func(s openpgp.Subkey) bool { return s.PrivateKey != nil && s.PrivateKey.Encrypted })
		switch {
		case e.PrivateKey == nil && !private:
			return rutter.Errorf(rutter.CodeInvalid, "is a public key, which opens nothing: export the private one with 'gpg --armor --export-secret-keys'")
		case e.PrivateKey != nil && e.PrivateKey.Encrypted && !e.PrivateKey.Dummy() || locked:
			return rutter.Errorf(rutter.CodeInvalid, "is protected by a passphrase: store the key without one")
		}
	}
	return nil
}

// openPGP tries all private keys on one recipient's data key.
func openPGP(keys []*keySet, sealed []byte) ([]byte, error) {
	var ring openpgp.EntityList
	for _, k := range keys {
		ring = append(ring, k.pgp...)
	}
	if len(ring) == 0 {
		return nil, errNoKey
	}
	block, err := armor.Decode(bytes.NewReader(sealed))
	if err != nil {
		return nil, errDamaged
	}
	message, err := openpgp.ReadMessage(block.Body, ring, nil, nil)
	if errors.Is(err, pgperrors.ErrKeyIncorrect) {
		return nil, errNoKey
	}
	if err != nil {
		return nil, errDamaged
	}
	plain, err := io.ReadAll(io.LimitReader(message.UnverifiedBody, maxDataKey))
	if err != nil {
		return nil, errDamaged
	}
	return plain, nil
}
