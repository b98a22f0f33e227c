package decrypt

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/azkv"
	"github.com/getsops/sops/v3/gcpkms"
	"github.com/getsops/sops/v3/hcvault"
	"github.com/getsops/sops/v3/keys"
	"github.com/getsops/sops/v3/kms"

	"github.com/rutterhq/rutter"
)

// remote is a recipient that some service opens; sealing keeps the data key in
// the clear, as base64, behind a prefix, for the test's service to give back.
type remote struct {
	keys.MasterKey

	prefix string
}

func (r remote) Encrypt(dataKey []byte) error {
	r.SetEncryptedDataKey([]byte(r.prefix + base64.StdEncoding.EncodeToString(dataKey)))
	return nil
}

// sealRemote seals a file for a service.
func sealRemote(t *testing.T, key keys.MasterKey, prefix string) []byte {
	t.Helper()
	dataKey := []byte("0123456789abcdef0123456789abcdef")
	if err := (remote{MasterKey: key, prefix: prefix}).Encrypt(dataKey); err != nil {
		t.Fatal(err)
	}
	return sealWith(t, formatYAML, secretYAML, sops.Metadata{}, dataKey, sops.KeyGroup{key})
}

// vault answers like Vault's transit engine for the token "good-token".
func vault(t *testing.T, asked *int) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		switch {
		case r.URL.Path == "/v1/slow/decrypt/key":
			_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client left
			<-r.Context().Done()
		case r.Header.Get("X-Vault-Token") != "good-token":
			http.Error(w, `{"errors": ["permission denied for `+r.Header.Get("X-Vault-Token")+`"]}`, http.StatusForbidden)
		case r.URL.Path != "/v1/transit/decrypt/key":
			http.Error(w, `{"errors": []}`, http.StatusNotFound)
		default:
			var body struct {
				Ciphertext string `json:"ciphertext"`
			}
			_ = json.NewDecoder(r.Body).Decode(&body) // the client is ours
			fmt.Fprintf(w, `{"data": {"plaintext": %q}}`, strings.TrimPrefix(body.Ciphertext, "vault:v1:"))
		}
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestVault(t *testing.T) {
	t.Setenv("VAULT_TOKEN", "good-token")
	asked := 0
	srv := vault(t, &asked)
	secret := func(token, address string) rutter.DecryptionKey {
		return keySecret("vault", "", map[string][]byte{"sops.vault-token": []byte(token + "\n"), "sops.vault-address": []byte(address)})
	}
	for _, c := range []struct {
		name, engine string
		keys         []rutter.DecryptionKey
		code         rutter.Code
		asked        bool
		want         string
	}{
		{name: "opened", engine: "transit", keys: []rutter.DecryptionKey{secret("good-token", "https://other.example.com, "+srv.URL)}, asked: true},
		{name: "a token for another server is not sent", engine: "transit", keys: []rutter.DecryptionKey{secret("good-token", "https://vault.example.com")}, code: rutter.CodeForbidden, want: "is not for this server"},
		{name: "no token, though the environment has one", engine: "transit", code: rutter.CodeForbidden, want: "Vault " + srv.URL + "/v1/transit/keys/key"},
		{name: "refused", engine: "transit", keys: []rutter.DecryptionKey{secret(canary, srv.URL)}, code: rutter.CodeForbidden, asked: true, want: "Vault refused the token of Secret argocd/vault with 403"},
		{name: "silent", engine: "slow", keys: []rutter.DecryptionKey{secret("good-token", srv.URL)}, code: rutter.CodeUnavailable, asked: true, want: "Vault did not answer"},
	} {
		asked = 0
		d := New(Options{Timeout: 300 * time.Millisecond})
		if err := d.SetKeys(c.keys); err != nil {
			t.Fatal(err)
		}
		file := sealRemote(t, hcvault.NewMasterKey(srv.URL, c.engine, "key"), "vault:v1:")
		plain, _, err := d.Decrypt(t.Context(), "", "db.yaml", file)
		if rutter.CodeOf(err) != c.code || (err == nil) != strings.Contains(string(plain), canary) || !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), canary) {
			t.Errorf("%s: %v", c.name, err)
		}
		if (asked > 0) != c.asked {
			t.Errorf("%s: the server was asked %d times", c.name, asked)
		}
	}
}

// answers is the transport of a cloud that answers every request alike.
type answers func(*http.Request) (int, string)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := a(r)
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.1"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

func TestAWS(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "FROMENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "fromenv")
	t.Setenv("AWS_PROFILE", "no-such-profile")
	const key = "arn:aws:kms:eu-central-1:123456789012:key/abc"
	good := keySecret("aws", "", map[string][]byte{"sops.aws-kms": []byte("aws_access_key_id: AKIDGIVEN\naws_secret_access_key: " + canary)})
	opened := fmt.Sprintf(`{"Plaintext": %q}`, base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef")))
	for _, c := range []struct {
		name, arn string
		status    int
		body      string
		keys      []rutter.DecryptionKey
		code      rutter.Code
		want      string
	}{
		{"opened", key, http.StatusOK, opened, []rutter.DecryptionKey{good}, "", ""},
		{"no credentials, though the environment has some", key, http.StatusOK, opened, nil, rutter.CodeForbidden, "AWS KMS " + key},
		{"refused", key, http.StatusBadRequest, `{"__type": "AccessDeniedException", "message": "` + canary + `"}`, []rutter.DecryptionKey{good}, rutter.CodeForbidden, "with AccessDeniedException"},
		{"damaged", key, http.StatusBadRequest, `{"__type": "InvalidCiphertextException"}`, []rutter.DecryptionKey{good}, rutter.CodeInvalid, "the sealed data key is damaged"},
		{"a region that is none", "arn:aws:kms:evil.example.com/x:123456789012:key/abc", http.StatusOK, opened, []rutter.DecryptionKey{good}, rutter.CodeInvalid, "damaged"},
	} {
		d := New(Options{HTTPClient: &http.Client{Transport: answers(func(r *http.Request) (int, string) {
			if r.URL.Host != "kms.eu-central-1.amazonaws.com" || !strings.Contains(r.Header.Get("Authorization"), "AKIDGIVEN") {
				t.Errorf("%s: %s is asked as %s", c.name, r.URL.Host, r.Header.Get("Authorization"))
			}
			return c.status, c.body
		})}})
		if err := d.SetKeys(c.keys); err != nil {
			t.Fatal(err)
		}
		file := sealRemote(t, kms.NewMasterKeyFromArn(c.arn, nil, "prod"), "")
		plain, _, err := d.Decrypt(t.Context(), "", "db.yaml", file)
		if rutter.CodeOf(err) != c.code || (err == nil) != strings.Contains(string(plain), canary) || !strings.Contains(fmt.Sprint(err), c.want) || strings.Contains(fmt.Sprint(err), canary) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestCloudForms: the forms of Google's and Azure's credentials, and that a file
// cannot send them to a host of its own.
func TestCloudForms(t *testing.T) {
	for name, c := range map[string]struct {
		key, value string
		good       bool
	}{
		"a service account":       {"sops.gcp-kms", `{"type": "service_account", "client_email": "a@b", "private_key": "x"}`, true},
		"a program's credentials": {"sops.gcp-kms", `{"type": "external_account", "credential_source": {"executable": {"command": "/bin/sh"}}}`, false},
		"a secret":                {"sops.azure-kv", "tenantId: a\nclientId: b\nclientSecret: c", true},
		"as az prints it":         {"sops.azure-kv", `{"appId": "b", "password": "c", "tenant": "a"}`, true},
		"a managed identity":      {"sops.azure-kv", "clientId: b", true},
		"half a secret":           {"sops.azure-kv", "clientId: b\nclientSecret: c", false},
		"a broken certificate":    {"sops.azure-kv", "tenantId: a\nclientId: b\nclientCertificate: c", false},
	} {
		err := New(Options{}).SetKeys([]rutter.DecryptionKey{keySecret("cloud", "", map[string][]byte{c.key: []byte(c.value)})})
		if (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	d, _ := newTest(t, keySecret("azure", "", map[string][]byte{"sops.azure-kv": []byte("tenantId: a\nclientId: b\nclientSecret: c")}))
	_, _, err := d.Decrypt(t.Context(), "", "a.yaml", sealRemote(t, azkv.NewMasterKey("https://vault.azure.net.evil.example.com", "key", "1"), ""))
	if rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "not one of Azure's key vaults") {
		t.Error(err)
	}
	_, _, err = d.Decrypt(t.Context(), "", "a.yaml", sealRemote(t, gcpkms.NewMasterKeyFromResourceID("projects/p/locations/l/keyRings/r/cryptoKeys/k"), ""))
	if rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "GCP KMS projects/p/locations/l/keyRings/r/cryptoKeys/k") {
		t.Error(err)
	}
}
