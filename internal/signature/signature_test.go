package signature_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/signature"
)

// work is a real repository whose commits Git itself signs.
type work struct {
	t    *testing.T
	dir  string
	home string
}

func newWork(t *testing.T) *work {
	t.Helper()
	w := &work{t: t, dir: t.TempDir(), home: t.TempDir()}
	w.run("git", "init", "--quiet", ".")
	return w
}

func (w *work) run(name string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), name, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "GNUPGHOME=" + w.home, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit makes a commit and returns its id and the object.
func (w *work) commit(args ...string) (id string, object []byte) {
	w.t.Helper()
	all := append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@localhost"}, args...)
	w.run("git", append(all, "commit", "--quiet", "--allow-empty", "-m", "a change\n\nwith a body")...)
	id = w.run("git", "rev-parse", "HEAD")
	cmd := exec.CommandContext(w.t.Context(), "git", "cat-file", "commit", id)
	cmd.Dir = w.dir
	object, err := cmd.Output()
	if err != nil {
		w.t.Fatal(err)
	}
	return id, object
}

// gpgKey makes a key.
func (w *work) gpgKey(name string, config *packet.Config) (key *openpgp.Entity, public string) {
	w.t.Helper()
	key, err := openpgp.NewEntity(name, "", name+"@localhost", config)
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	a, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := key.Serialize(a); err != nil {
		w.t.Fatal(err)
	}
	a.Close()
	return key, out.String()
}

// sign puts a signature of a key into a commit object, as git commit -S does.
func sign(t *testing.T, commit []byte, key *openpgp.Entity, config *packet.Config) []byte {
	t.Helper()
	var sig bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&sig, key, bytes.NewReader(commit), config); err != nil {
		t.Fatal(err)
	}
	header, body, _ := bytes.Cut(commit, []byte("\n\n"))
	lines := strings.ReplaceAll(strings.TrimRight(sig.String(), "\n"), "\n", "\n ")
	return []byte(string(header) + "\ngpgsig " + lines + "\n\n" + string(body))
}

// TestSSH verifies commits that git and ssh-keygen have signed.
func TestSSH(t *testing.T) {
	w := newWork(t)
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			key := filepath.Join(w.home, kind)
			w.run("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", key)
			fingerprint := strings.Fields(w.run("ssh-keygen", "-l", "-f", key+".pub"))[1]
			id, commit := w.commit("-c", "gpg.format=ssh", "-c", "user.signingkey="+key+".pub", "-c", "commit.gpgsign=true")
			got := (&signature.Keyring{}).Verify(id, commit, time.Now())
			if got.Invalid != "" || len(got.Keys) != 1 || got.Keys[0] != fingerprint || got.Object != "commit "+id {
				t.Errorf("%+v, wanted key %s", got, fingerprint)
			}
			for name, forged := range map[string][]byte{
				"message": bytes.Replace(commit, []byte("a change"), []byte("a charge"), 1),
				"author":  bytes.Replace(commit, []byte("author Ann"), []byte("author Eve"), 1),
				"tree":    bytes.Replace(commit, []byte("tree "), []byte("tree 0"), 1),
			} {
				if got := (&signature.Keyring{}).Verify(id, forged, time.Now()); got.Invalid == "" {
					t.Errorf("another %s is taken: %+v", name, got)
				}
			}
		})
	}
	if id, commit := w.commit(); len((&signature.Keyring{}).Verify(id, commit, time.Now()).Keys) != 0 {
		t.Error("an unsigned commit has a key")
	}
}

// TestGPG verifies a commit that git and gpg have signed.
func TestGPG(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("there is no gpg here; TestOpenPGP signs without it")
	}
	w := newWork(t)
	if err := os.Chmod(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("gpgconf", "--homedir", w.home, "--kill", "all").Run() })
	w.run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Ann <ann@localhost>", "ed25519", "sign", "never")
	id, commit := w.commit("-c", "user.signingkey=ann@localhost", "-c", "commit.gpgsign=true")
	keys := &signature.Keyring{}
	got := keys.Verify(id, commit, time.Now())
	if !strings.Contains(got.Invalid, "argocd-gpg-keys-cm") {
		t.Errorf("a key that nobody registered: %+v", got)
	}
	if err := keys.SetKeys(map[string]string{"ann": w.run("gpg", "--armor", "--export", "ann@localhost")}); err != nil {
		t.Fatal(err)
	}
	if got = keys.Verify(id, commit, time.Now()); got.Invalid != "" || len(got.Keys) == 0 || len(got.Keys[0]) != 40 {
		t.Errorf("%+v", got)
	}
	if got := keys.Verify(id, bytes.Replace(commit, []byte("a change"), []byte("a charge"), 1), time.Now()); got.Invalid == "" {
		t.Error("another message is taken")
	}
}

// TestOpenPGP: what holds, and what does not: changed content, an unknown key, an
// expired one, two signatures, and one that claims to be of somebody else's key.
func TestOpenPGP(t *testing.T) {
	w := newWork(t)
	now := time.Now()
	config := &packet.Config{Time: func() time.Time { return now }}
	ann, annPublic := w.gpgKey("ann", config)
	bob, bobPublic := w.gpgKey("bob", config)
	brief, briefPublic := w.gpgKey("brief", &packet.Config{KeyLifetimeSecs: 60, Time: config.Time})
	id, plain := w.commit()
	keys := &signature.Keyring{}
	if err := keys.SetKeys(map[string]string{"ann": annPublic, "bob": bobPublic, "brief": briefPublic, "bad": "no key"}); err == nil || !strings.Contains(err.Error(), "key bad") {
		t.Errorf("a key that cannot be read: %v", err)
	}
	check := func(name string, got rutter.Signature, key *openpgp.Entity, invalid bool) {
		t.Helper()
		want := strings.ToUpper(bytesHex(key.PrimaryKey.Fingerprint))
		if (got.Invalid != "") != invalid || !invalid && got.Keys[len(got.Keys)-1] != want {
			t.Errorf("%s: %+v, wanted key %s", name, got, want)
		}
	}
	signed := sign(t, plain, ann, config)
	check("signed", keys.Verify(id, signed, now.Add(time.Second)), ann, false)
	check("changed", keys.Verify(id, bytes.Replace(signed, []byte("a change"), []byte("a charge"), 1), now.Add(time.Second)), ann, true)
	check("by bob", keys.Verify(id, sign(t, plain, bob, config), now.Add(time.Second)), bob, false)
	check("expired", keys.Verify(id, sign(t, plain, brief, config), now.Add(time.Hour)), brief, true)
	twice := sign(t, signed, bob, config)
	if got := keys.Verify(id, twice, now.Add(time.Second)); got.Invalid == "" {
		t.Errorf("two signatures are taken: %+v", got)
	}
	if got := (&signature.Keyring{}).Verify(id, signed, now.Add(time.Second)); got.Invalid == "" {
		t.Errorf("a key that is not known is taken: %+v", got)
	}
}

func bytesHex(b []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, x := range b {
		out.WriteByte(digits[x>>4])
		out.WriteByte(digits[x&15])
	}
	return out.String()
}
