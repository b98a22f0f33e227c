package decrypt

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/getsops/sops/v3"
	"golang.org/x/crypto/ssh"

	"github.com/rutterhq/rutter"
)

// TestSSHKeys: an age identity may be an SSH key, without a passphrase.
func TestSSHKeys(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	recipient, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	open, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(canary))
	if err != nil {
		t.Fatal(err)
	}
	d, _ := newTest(t, keySecret("ssh", "", map[string][]byte{"id.agekey": pem.EncodeToMemory(open)}))
	file := seal(t, formatYAML, secretYAML, sops.Metadata{}, sops.KeyGroup{forAge(strings.TrimSpace(string(ssh.MarshalAuthorizedKey(recipient))))})
	if _, _, err := d.Decrypt(t.Context(), "", "a.yaml", file); err != nil {
		t.Error(err)
	}
	err = d.SetKeys([]rutter.DecryptionKey{keySecret("ssh", "", map[string][]byte{"id.agekey": pem.EncodeToMemory(locked)})})
	if err == nil || !strings.Contains(err.Error(), "has a passphrase") {
		t.Error(err)
	}
}

// TestLarge: what is too large is an error when it is sealed, and left alone when not.
func TestLarge(t *testing.T) {
	private, recipient := ageKey(t)
	d, _ := newTest(t, keySecret("age", "", map[string][]byte{"a.agekey": private}))
	padding := strings.Repeat("#\n", maxSealed/2)
	file := string(seal(t, formatYAML, secretYAML, sops.Metadata{}, sops.KeyGroup{forAge(recipient)}))
	if _, sealed, err := d.Decrypt(t.Context(), "", "a.yaml", []byte(file+padding)); !sealed || rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Error(sealed, err)
	}
	if _, sealed, err := d.Decrypt(t.Context(), "", "a.yaml", []byte("sops: {enabled: true}\n"+padding)); sealed || err != nil {
		t.Error(sealed, err)
	}
}
