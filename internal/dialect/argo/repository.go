package argo

import (
	"slices"
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
)

// repositoryKeys are the keys that are acted on.
var repositoryKeys = []string{"url", "type", "name", "project", "username", "password", "bearerToken", "sshPrivateKey", "insecure",
	"insecureIgnoreHostKey", "tlsClientCertData", "tlsClientCertKey", "forceHttpBasicAuth", "proxy", "noProxy"}

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
	}{{"insecure", &c.Insecure}, {"insecureIgnoreHostKey", &c.InsecureIgnoreHostKey}, {"forceHttpBasicAuth", &c.ForceHTTPBasicAuth}} {
		var err error
		if *f.to, err = flag(s, f.key); err != nil {
			return c, err
		}
	}
	for _, k := range keys(s) {
		if v := data(s, k); !slices.Contains(repositoryKeys, k) && v != "" && v != "false" && (k != "depth" || v != "0") {
			c.Unsupported = append(c.Unsupported, k)
		}
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
