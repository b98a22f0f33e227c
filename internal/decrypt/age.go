package decrypt

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"

	"github.com/rutterhq/rutter"
)

// maxDataKey bounds an opened data key: 32 bytes, or 33 as a Shamir part.
const maxDataKey = 1 << 10

// parseAge reads age identities, one a line, or one SSH private key. Plugins
// are refused: they are programs, and Rutter runs none.
func parseAge(value []byte) ([]age.Identity, error) {
	if bytes.Contains(value, []byte("PRIVATE KEY-----")) {
		return parseSSH(value)
	}
	var ids []age.Identity
	for i, line := range strings.Split(string(value), "\n") {
		line = strings.TrimSpace(line)
		var id age.Identity
		var err error
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "AGE-PLUGIN-"):
			return ids, rutter.Errorf(rutter.CodeUnsupported, "line %d is the identity of an age plugin, a program that Rutter doesn't run: use a native age key (age-keygen)", i+1)
		case strings.HasPrefix(line, "AGE-SECRET-KEY-PQ-1"):
			id, err = age.ParseHybridIdentity(line)
		default:
			id, err = age.ParseX25519Identity(line)
		}
		if err != nil {
			return ids, rutter.Errorf(rutter.CodeInvalid, "line %d is no age identity: it has the form AGE-SECRET-KEY-1... as age-keygen writes it", i+1)
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil, rutter.Errorf(rutter.CodeInvalid, "holds no age identity: put the output of age-keygen here")
	}
	return ids, nil
}

func parseSSH(value []byte) ([]age.Identity, error) {
	id, err := agessh.ParseIdentity(value)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the SSH key has a passphrase: store it without one (ssh-keygen -p)")
	}
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is no SSH private key that age can use: use an Ed25519 or RSA key, or an age key")
	}
	return []age.Identity{id}, nil
}

// openAge tries all identities on one recipient's data key.
func openAge(keys []*keySet, sealed []byte) ([]byte, error) {
	var ids []age.Identity
	for _, k := range keys {
		ids = append(ids, k.age...)
	}
	if len(ids) == 0 {
		return nil, errNoKey
	}
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(sealed)), ids...)
	if _, other := errors.AsType[*age.NoIdentityMatchError](err); other {
		return nil, errNoKey
	}
	if err != nil {
		return nil, errDamaged
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxDataKey))
	if err != nil {
		return nil, errDamaged
	}
	return plain, nil
}
