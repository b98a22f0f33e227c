package decrypt

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	sopsage "github.com/getsops/sops/v3/age"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/pgp"
	"github.com/getsops/sops/v3/shamir"
	"github.com/getsops/sops/v3/stores"
	"go.yaml.in/yaml/v3"
)

// ageKey returns a new age key as a Secret's value, and its recipient.
func ageKey(t *testing.T) (private []byte, recipient string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return []byte("# created: now\n# public key: " + id.Recipient().String() + "\n" + id.String() + "\n"), id.Recipient().String()
}

// pgpKey returns a new PGP key as a Secret's value, and the key.
func pgpKey(t *testing.T, passphrase string) ([]byte, *openpgp.Entity) {
	t.Helper()
	e, err := openpgp.NewEntity("Rutter", "", "rutter@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	if passphrase != "" {
		if err := e.EncryptPrivateKeys([]byte(passphrase), nil); err != nil {
			t.Fatal(err)
		}
	}
	return armored(t, openpgp.PrivateKeyType, func(w *bytes.Buffer) error {
		if passphrase != "" {
			return e.SerializePrivateWithoutSigning(w, nil)
		}
		return e.SerializePrivate(w, nil)
	}), e
}

func armored(t *testing.T, kind string, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var raw, out bytes.Buffer
	if err := write(&raw); err != nil {
		t.Fatal(err)
	}
	w, err := armor.Encode(&out, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(raw.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func forAge(recipient string) keys.MasterKey { return &sopsage.MasterKey{Recipient: recipient} }

// pgpRecipient seals with a key in memory; the library's own would run gpg.
type pgpRecipient struct {
	*pgp.MasterKey

	key *openpgp.Entity
}

func forPGP(e *openpgp.Entity) keys.MasterKey {
	return pgpRecipient{MasterKey: pgp.NewMasterKeyFromFingerprint(fmt.Sprintf("%X", e.PrimaryKey.Fingerprint)), key: e}
}

func (r pgpRecipient) Encrypt(dataKey []byte) error {
	var out bytes.Buffer
	a, err := armor.Encode(&out, "PGP MESSAGE", nil)
	if err != nil {
		return err
	}
	w, err := openpgp.Encrypt(a, openpgp.EntityList{r.key}, nil, nil, nil)
	if err != nil {
		return err
	}
	if _, err := w.Write(dataKey); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := a.Close(); err != nil {
		return err
	}
	r.EncryptedKey = out.String()
	return nil
}

// seal makes a sealed file with the SOPS library.
func seal(t *testing.T, f format, plain string, meta sops.Metadata, groups ...sops.KeyGroup) []byte {
	t.Helper()
	dataKey := make([]byte, 32)
	if _, err := rand.Read(dataKey); err != nil {
		t.Fatal(err)
	}
	return sealWith(t, f, plain, meta, dataKey, groups...)
}

// sealWith seals with a data key of the test's choice.
func sealWith(t *testing.T, f format, plain string, meta sops.Metadata, dataKey []byte, groups ...sops.KeyGroup) []byte {
	t.Helper()
	var doc document
	var err error
	if f == formatBinary {
		doc.branches = sops.TreeBranches{{{Key: "data", Value: plain}}}
	} else if doc, err = load(place{file: "plain"}, f, []byte(plain)); err != nil {
		t.Fatal(err)
	}
	meta.KeyGroups = sealKey(t, dataKey, meta.ShamirThreshold, groups)
	if meta.UnencryptedSuffix+meta.EncryptedRegex+meta.EncryptedSuffix+meta.UnencryptedRegex+meta.EncryptedCommentRegex+meta.UnencryptedCommentRegex == "" {
		meta.UnencryptedSuffix = sops.DefaultUnencryptedSuffix
	}
	meta.Version, meta.LastModified = "3.13.3", time.Now().UTC().Truncate(time.Second)
	tree := sops.Tree{Branches: doc.branches, Metadata: meta}
	mac, err := tree.Encrypt(dataKey, aes.NewCipher())
	if err != nil {
		t.Fatal(err)
	}
	if tree.Metadata.MessageAuthenticationCode, err = aes.NewCipher().Encrypt(mac, dataKey, meta.LastModified.Format(time.RFC3339)); err != nil {
		t.Fatal(err)
	}
	branches, err := stores.SerializeMetadata(tree, doc.metadata)
	if err != nil {
		t.Fatal(err)
	}
	return writeSealed(t, f, branches)
}

// sealKey seals the data key for all recipients, in parts when there are several groups.
func sealKey(t *testing.T, dataKey []byte, threshold int, groups []sops.KeyGroup) []sops.KeyGroup {
	t.Helper()
	parts := [][]byte{dataKey}
	if len(groups) > 1 {
		var err error
		if parts, err = shamir.Split(dataKey, len(groups), threshold); err != nil {
			t.Fatal(err)
		}
	}
	var out []sops.KeyGroup
	for i, g := range groups {
		var group sops.KeyGroup
		for _, k := range g {
			if len(k.EncryptedDataKey()) == 0 {
				if err := k.Encrypt(parts[i]); err != nil {
					t.Fatal(err)
				}
			}
			if r, ok := k.(pgpRecipient); ok {
				k = r.MasterKey
			}
			group = append(group, k)
		}
		out = append(out, group)
	}
	return out
}

func writeSealed(t *testing.T, f format, branches sops.TreeBranches) []byte {
	t.Helper()
	write := map[format]func(sops.TreeBranches, map[string]string) ([]byte, error){
		formatJSON: writeJSON, formatBinary: writeJSON, formatDotenv: writeDotenv, formatINI: writeINI,
	}[f]
	if f == formatYAML {
		var docs []string
		for _, b := range branches {
			out, err := yaml.Marshal(yamlNode(b))
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, string(out))
		}
		return []byte(strings.Join(docs, "---\n"))
	}
	out, err := write(branches, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// yamlNode is a tree as YAML, without its comments.
func yamlNode(v any) *yaml.Node {
	n := &yaml.Node{}
	switch v := v.(type) {
	case sops.TreeBranch:
		n.Kind = yaml.MappingNode
		for _, item := range v {
			if _, comment := item.Key.(sops.Comment); !comment {
				n.Content = append(n.Content, yamlNode(item.Key), yamlNode(item.Value))
			}
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, e := range v {
			if _, comment := e.(sops.Comment); !comment {
				n.Content = append(n.Content, yamlNode(e))
			}
		}
	default:
		_ = n.Encode(v) // scalars of the tests
	}
	return n
}
