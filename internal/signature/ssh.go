package signature

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"slices"

	"golang.org/x/crypto/ssh"

	"github.com/rutterhq/rutter"
)

const sshHead = "-----BEGIN SSH SIGNATURE-----"

// magic begins a signature and what is signed (OpenSSH's PROTOCOL.sshsig).
const magic = "SSHSIG"

// purpose is what Git signs for; a signature for something else, such as a file
// or a login, proves nothing about a commit.
const purpose = "git"

// sshSignature is the content of the block, after the magic.
type sshSignature struct {
	Version                              uint32
	PublicKey, Namespace, Reserved, Hash string
	Signature                            string
}

// sshSigned is what the key has signed, after the magic.
type sshSigned struct{ Namespace, Reserved, Hash, Digest string }

// verifySSH verifies with the key that the signature carries. Its name is its
// fingerprint, SHA256:…, as ssh-keygen -l prints it.
func verifySSH(signed []byte, armored string) (names []string, invalid string) {
	key, sig, err := readSSH(armored)
	if err != nil {
		return []string{"unknown"}, err.Error()
	}
	names = []string{ssh.FingerprintSHA256(key)}
	var digest []byte
	switch sig.Hash {
	case "sha256":
		sum := sha256.Sum256(signed)
		digest = sum[:]
	case "sha512":
		sum := sha512.Sum512(signed)
		digest = sum[:]
	default:
		return names, "its hash is neither sha256 nor sha512"
	}
	var blob ssh.Signature
	if err := ssh.Unmarshal([]byte(sig.Signature), &blob); err != nil {
		return names, "it cannot be read: " + err.Error()
	}
	if blob.Format == ssh.KeyAlgoRSA { // signs with SHA-1
		return names, "it is made with SHA-1: sign with a newer OpenSSH, or an ed25519 key"
	}
	message := append([]byte(magic), ssh.Marshal(sshSigned{sig.Namespace, sig.Reserved, sig.Hash, string(digest)})...)
	if err := key.Verify(message, &blob); err != nil {
		return names, "it is not of this content"
	}
	return names, ""
}

func readSSH(armored string) (ssh.PublicKey, sshSignature, error) {
	var sig sshSignature
	block, rest := pem.Decode([]byte(armored))
	if block == nil || block.Type != "SSH SIGNATURE" || len(block.Bytes) < len(magic) || string(block.Bytes[:len(magic)]) != magic {
		return nil, sig, rutter.Errorf(rutter.CodeInvalid, "it is no SSH signature")
	}
	if slices.ContainsFunc(rest, func(b byte) bool { return b != '\n' }) {
		return nil, sig, rutter.Errorf(rutter.CodeInvalid, "it holds more than one signature")
	}
	if err := ssh.Unmarshal(block.Bytes[len(magic):], &sig); err != nil {
		return nil, sig, rutter.Errorf(rutter.CodeInvalid, "it cannot be read: %w", err)
	}
	if sig.Version != 1 || sig.Namespace != purpose {
		return nil, sig, rutter.Errorf(rutter.CodeInvalid, "it is of version %d for %q, and not of version 1 for %q", sig.Version, sig.Namespace, purpose)
	}
	key, err := ssh.ParsePublicKey([]byte(sig.PublicKey))
	if err != nil {
		return nil, sig, rutter.Errorf(rutter.CodeInvalid, "its key cannot be read: %w", err)
	}
	return key, sig, nil
}
