package argo

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
)

// The label that says what a Secret configures, and its values (reference 1.12).
const (
	LabelSecretType      = "argocd.argoproj.io/secret-type"
	SecretTypeCluster    = "cluster"
	SecretTypeRepository = "repository"
	SecretTypeRepoCreds  = "repo-creds"
	// SecretTypeSOPSKeys holds keys that open files sealed by SOPS, in the form
	// that Flux reads: *.agekey, *.asc, sops.* (not in the reference).
	SecretTypeSOPSKeys = "sops-keys"
)

// repositoryKeys are the keys that are acted on.
var repositoryKeys = []string{"url", "type", "name", "project", "username", "password", "bearerToken", "sshPrivateKey", "insecure",
	"insecureIgnoreHostKey", "tlsClientCertData", "tlsClientCertKey", "forceHttpBasicAuth", "proxy", "noProxy", "enableLfs", "enableOCI",
	"insecureOCIForceHttp", "depth", "githubAppID", "githubAppInstallationID", "githubAppPrivateKey", "githubAppEnterpriseBaseUrl",
	"webhookManifestCacheWarmDisabled"}

// ParseRepository reads a repository or repo-creds Secret. Keys that are set
// and not acted on yet are in Unsupported.
func ParseRepository(s *corev1.Secret) (rutter.RepoCredential, error) {
	c := rutter.RepoCredential{
		URL: strings.TrimSpace(data(s, "url")), Name: data(s, "name"), Type: data(s, "type"), Project: data(s, "project"),
		Template: s.Labels[LabelSecretType] == SecretTypeRepoCreds,
		Username: data(s, "username"), Password: data(s, "password"), BearerToken: data(s, "bearerToken"), SSHPrivateKey: data(s, "sshPrivateKey"),
		TLSClientCert: data(s, "tlsClientCertData"), TLSClientKey: data(s, "tlsClientCertKey"), Proxy: data(s, "proxy"), NoProxy: data(s, "noProxy"),
	}
	for _, f := range []struct {
		key string
		to  *bool
	}{{"insecure", &c.Insecure}, {"insecureIgnoreHostKey", &c.InsecureIgnoreHostKey}, {"forceHttpBasicAuth", &c.ForceHTTPBasicAuth},
		{"enableLfs", &c.EnableLFS}, {"enableOCI", &c.EnableOCI}, {"insecureOCIForceHttp", &c.PlainHTTP}} {
		var err error
		if *f.to, err = flag(s, f.key); err != nil {
			return c, err
		}
	}
	for _, k := range keys(s) {
		if v := data(s, k); !slices.Contains(repositoryKeys, k) && v != "" && v != "false" {
			c.Unsupported = append(c.Unsupported, k)
		}
	}
	var err error
	if c.GitHubApp, err = githubApp(s); err != nil {
		return c, err
	}
	if c.Depth, err = number[int](s, "depth"); err != nil {
		return c, err
	}
	if c.Type == "" {
		c.Type = "git"
	}
	switch {
	case c.URL == "":
		return c, secretError(s, rutter.CodeInvalid, "key url is missing or empty")
	case !slices.Contains([]string{"git", "helm", "oci"}, c.Type):
		return c, secretError(s, rutter.CodeInvalid, "key type must be git, helm or oci")
	case (c.TLSClientCert == "") != (c.TLSClientKey == ""):
		return c, secretError(s, rutter.CodeInvalid, "keys tlsClientCertData and tlsClientCertKey must be set together")
	}
	return c, nil
}

// githubApp reads the login of a GitHub App; nil when there is none.
func githubApp(s *corev1.Secret) (*rutter.GitHubApp, error) {
	app := rutter.GitHubApp{PrivateKey: data(s, "githubAppPrivateKey"), BaseURL: strings.TrimSpace(data(s, "githubAppEnterpriseBaseUrl"))}
	var err error
	if app.ID, err = number[int64](s, "githubAppID"); err != nil {
		return nil, err
	}
	if app.InstallationID, err = number[int64](s, "githubAppInstallationID"); err != nil {
		return nil, err
	}
	switch {
	case app.ID == 0 && app.PrivateKey == "":
		return nil, nil //nolint:nilnil // no App is no error
	case app.ID == 0 || app.PrivateKey == "":
		return nil, secretError(s, rutter.CodeInvalid, "keys githubAppID and githubAppPrivateKey must be set together")
	}
	return &app, nil
}

// number reads a key that holds a number which is not negative; 0 when it is missing.
func number[T int | int64](s *corev1.Secret, key string) (T, error) {
	text := strings.TrimSpace(data(s, key))
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, secretError(s, rutter.CodeInvalid, "key %s must be a number that is not negative", key)
	}
	return T(n), nil
}

// ParseDecryptionKey reads a Secret with keys that open files sealed by SOPS.
func ParseDecryptionKey(s *corev1.Secret) rutter.DecryptionKey {
	keys := maps.Clone(s.Data)
	delete(keys, "project")
	return rutter.DecryptionKey{Name: s.Namespace + "/" + s.Name, Project: data(s, "project"), Data: keys}
}
