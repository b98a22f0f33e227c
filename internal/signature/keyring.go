package signature

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/rutterhq/rutter"
)

// Keyring are the OpenPGP keys whose signatures can be verified. It is empty
// until keys are set, and safe for concurrent use.
type Keyring struct {
	keys atomic.Pointer[openpgp.EntityList]
}

// SetKeys replaces all keys: armored public ones, by the names that they are
// registered under. The error names those that cannot be used; the others serve.
func (k *Keyring) SetKeys(armored map[string]string) error {
	var all openpgp.EntityList
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(armored)) {
		keys, err := readPublicKeys(armored[name])
		if err != nil {
			problems = append(problems, fmt.Errorf("key %s: %w", name, err))
			continue
		}
		all = append(all, keys...)
	}
	k.keys.Store(&all)
	return errors.Join(problems...)
}

// Verify says by whom a commit object is signed, and whether that holds at a time.
func (k *Keyring) Verify(id string, commit []byte, now time.Time) rutter.Signature {
	out := rutter.Signature{Object: "commit " + id}
	signed, text, n := split(commit)
	switch {
	case n == 0:
		return out
	case n > 1:
		out.Keys, out.Invalid = []string{"unknown"}, "it holds more than one signature"
	case strings.HasPrefix(text, pgpHead):
		var keys openpgp.EntityList
		if all := k.keys.Load(); all != nil {
			keys = *all
		}
		out.Keys, out.Invalid = verifyPGP(keys, signed, text, now)
	case strings.HasPrefix(text, sshHead):
		out.Keys, out.Invalid = verifySSH(signed, text)
	default:
		out.Keys, out.Invalid = []string{"unknown"}, "it is neither an OpenPGP nor an SSH signature"
	}
	return out
}
