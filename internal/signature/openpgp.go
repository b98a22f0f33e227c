package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/rutterhq/rutter"
)

const pgpHead = "-----BEGIN PGP SIGNATURE-----"

// readPublicKeys reads one armored block of public keys.
func readPublicKeys(text string) (openpgp.EntityList, error) {
	keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it is no armored PGP public key: export it with 'gpg --armor --export KEYID': %w", err)
	}
	return keys, nil
}

// verifyPGP looks for who signed. Of a signature that holds the names are the
// fingerprints of the key that it was verified with, that of the part that signed
// and that of the whole; of any other they are what it says of itself.
func verifyPGP(keys openpgp.EntityList, signed []byte, armored string, now time.Time) (names []string, invalid string) {
	sig, err := readSignature(armored)
	if err != nil {
		return []string{"unknown"}, err.Error()
	}
	claimed := issuer(sig)
	config := &packet.Config{Time: func() time.Time { return now }}
	signer, err := openpgp.CheckArmoredDetachedSignature(keys, bytes.NewReader(signed), strings.NewReader(armored), config)
	switch {
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		return claimed, "the key is in no entry of ConfigMap argocd-gpg-keys-cm: add what 'gpg --armor --export " + claimed[0] + "' prints"
	case err != nil:
		return claimed, err.Error()
	case sig.IssuerKeyId == nil:
		return claimed, "it does not say which key it is of"
	}
	for _, s := range signer.Subkeys {
		if s.PublicKey.KeyId == *sig.IssuerKeyId {
			names = append(names, fmt.Sprintf("%X", s.PublicKey.Fingerprint))
		}
	}
	return append(names, fmt.Sprintf("%X", signer.PrimaryKey.Fingerprint)), ""
}

// readSignature is the one signature of a block. Several are refused: which of
// them counts would be anybody's choice.
func readSignature(armored string) (*packet.Signature, error) {
	block, err := armor.Decode(strings.NewReader(armored))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it is no armored signature: %w", err)
	}
	packets := packet.NewReader(block.Body)
	p, err := packets.Next()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it cannot be read: %w", err)
	}
	sig, ok := p.(*packet.Signature)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it holds something else than a signature")
	}
	if _, err := packets.Next(); !errors.Is(err, io.EOF) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it holds more than one signature")
	}
	return sig, nil
}

// issuer is what a signature says of its key.
func issuer(sig *packet.Signature) []string {
	switch {
	case len(sig.IssuerFingerprint) > 0:
		return []string{fmt.Sprintf("%X", sig.IssuerFingerprint)}
	case sig.IssuerKeyId != nil:
		return []string{fmt.Sprintf("%016X", *sig.IssuerKeyId)}
	}
	return []string{"unknown"}
}
