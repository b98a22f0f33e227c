package lint

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// sealedMark begins a value that SOPS has sealed.
const sealedMark = "ENC[AES256_GCM,"

// notSecret are keys of the control plane's own Secrets that hold no secret.
var notSecret = []string{
	"name", "server", "url", "type", "project", "namespaces", "clusterResources", "shard", "insecure", "insecureIgnoreHostKey", "enableLfs",
	"enableOCI", "enableOci", "insecureOCIForceHttp", "proxy", "noProxy", "forceHttpBasicAuth", "depth", "useAzureWorkloadIdentity", "githubAppID",
	"githubAppInstallationID", "githubAppEnterpriseBaseUrl",
}

func checkSecrets(r *run, d *document) {
	if d.is("", "Secret") {
		r.secret(d)
	}
	if d.is("kustomize.config.k8s.io", "Kustomization") {
		for _, g := range items(d.root, "secretGenerator") {
			for _, l := range items(g, "literals") {
				if _, value, _ := strings.Cut(l.Value, "="); value != "" && !templatedText(value) && !strings.HasPrefix(value, sealedMark) {
					name, _, _ := strings.Cut(l.Value, "=")
					r.reportAs(Error, "generate the Secret from a file that is sealed with SOPS; and change the value: it stays in the history", d, l,
						"the secretGenerator %s has %s in plaintext", text(g, "name"), name)
				}
			}
		}
	}
}

// secret looks at the values of a Secret, without ever quoting one.
func (r *run) secret(d *document) {
	argo := text(d.root, "metadata", "labels", prefixArgo+"secret-type") != ""
	sealed := get(d.root, "sops") != nil
	var plain []string
	var at *node
	for _, field := range []string{"data", "stringData"} {
		entries(get(d.root, field), func(k, v *node) {
			if v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null" || v.Value == "" || argo && harmless(k.Value, v.Value, field == "data") || opaque(v.Value, field == "data") {
				return
			}
			plain = append(plain, k.Value)
			if at == nil {
				at = k
			}
		})
	}
	switch {
	case len(plain) == 0:
	case sealed:
		r.reportAs(Error, "correct encrypted_regex in .sops.yaml, and seal it again; and change the value: it stays in the history", d, at,
			"this Secret is sealed with SOPS, but not its %s: encrypted_regex does not match", strings.Join(plain, ", "))
	default:
		r.report(d, at, "the values of this Secret can be read by everybody who reads the repository: %s", strings.Join(plain, ", "))
	}
}

// opaque tells whether a value is sealed, or filled in by somebody later.
func opaque(value string, encoded bool) bool {
	if strings.HasPrefix(value, sealedMark) || templatedText(value) {
		return true
	}
	if !encoded {
		return false
	}
	plain, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return false
	}
	return bytes.HasPrefix(plain, []byte(sealedMark)) || bytes.Contains(plain, []byte("sops")) && bytes.Contains(plain, []byte(sealedMark)) || templatedText(string(plain))
}

// harmless tells whether an entry of a Secret for the control plane is no
// secret. A cluster's config is one when it holds a credential.
func harmless(key, value string, encoded bool) bool {
	if slices.Contains(notSecret, key) {
		return true
	}
	if key != "config" {
		return false
	}
	if encoded {
		plain, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return false
		}
		value = string(plain)
	}
	var config struct {
		Password string `json:"password"`
		Token    string `json:"bearerToken"`
		TLS      struct {
			Key string `json:"keyData"`
		} `json:"tlsClientConfig"`
		Exec struct {
			Env map[string]string `json:"env"`
		} `json:"execProviderConfig"`
	}
	return json.Unmarshal([]byte(value), &config) == nil &&
		(config.Password == "" || templatedText(config.Password)) && (config.Token == "" || templatedText(config.Token)) &&
		(config.TLS.Key == "" || templatedText(config.TLS.Key)) && len(config.Exec.Env) == 0
}
