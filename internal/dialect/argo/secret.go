package argo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
)

// data reads a key of a Secret, as stored or as written in a file.
func data(s *corev1.Secret, key string) string {
	if v, ok := s.Data[key]; ok {
		return string(v)
	}
	return s.StringData[key]
}

// clusterConfig is the JSON under the key config (reference 1.12).
type clusterConfig struct {
	Username        string `json:"username"`
	Password        string `json:"password"`
	BearerToken     string `json:"bearerToken"`
	TLSClientConfig struct {
		Insecure   bool   `json:"insecure"`
		ServerName string `json:"serverName"`
		CAData     []byte `json:"caData"`
		CertData   []byte `json:"certData"`
		KeyData    []byte `json:"keyData"`
	} `json:"tlsClientConfig"`
	AWSAuthConfig      *json.RawMessage `json:"awsAuthConfig"`
	ExecProviderConfig *struct {
		Command            string            `json:"command"`
		Args               []string          `json:"args"`
		Env                map[string]string `json:"env"`
		APIVersion         string            `json:"apiVersion"`
		InstallHint        string            `json:"installHint"`
		ProvideClusterInfo bool              `json:"provideClusterInfo"`
	} `json:"execProviderConfig"`
	ProxyURL           string `json:"proxyUrl"`
	DisableCompression bool   `json:"disableCompression"`
}

// ParseCluster reads a cluster Secret. The info is as complete as can be even
// with an error, so that the cluster can be shown with its problem.
func ParseCluster(s *corev1.Secret, allowExec func(command string) bool) (rutter.ClusterInfo, rutter.ClusterCredential, error) {
	info := rutter.ClusterInfo{
		Name: data(s, "name"), Server: strings.TrimSuffix(strings.TrimSpace(data(s, "server")), "/"), Project: data(s, "project"),
		Labels: maps.Clone(s.Labels), Annotations: visible(s.Annotations), ClusterResources: data(s, "clusterResources") == "true",
	}
	for _, ns := range strings.Split(data(s, "namespaces"), ",") {
		if ns = strings.TrimSpace(ns); ns != "" {
			info.Namespaces = append(info.Namespaces, ns)
		}
	}
	var cred rutter.ClusterCredential
	if info.Server == "" {
		return info, cred, rutter.Errorf(rutter.CodeInvalid, "Secret %s: key server is missing or empty", s.Name)
	}
	if info.Name == "" {
		info.Name = info.Server
	}
	var cfg clusterConfig
	if raw := data(s, "config"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &cfg); err != nil {
			return info, cred, rutter.Errorf(rutter.CodeInvalid, "Secret %s: key config: %s", s.Name, jsonProblem(err))
		}
	}
	cred = rutter.ClusterCredential{Username: cfg.Username, Password: cfg.Password, BearerToken: cfg.BearerToken,
		ProxyURL: cfg.ProxyURL, DisableCompression: cfg.DisableCompression,
		TLS: rutter.ClusterTLS{Insecure: cfg.TLSClientConfig.Insecure, ServerName: cfg.TLSClientConfig.ServerName,
			CAData: cfg.TLSClientConfig.CAData, CertData: cfg.TLSClientConfig.CertData, KeyData: cfg.TLSClientConfig.KeyData}}
	if cfg.AWSAuthConfig != nil {
		return info, cred, rutter.Errorf(rutter.CodeUnsupported, "Secret %s: config.awsAuthConfig is not acted on yet: use a token or an allowed execProviderConfig", s.Name)
	}
	if e := cfg.ExecProviderConfig; e != nil {
		if allowExec == nil || !allowExec(e.Command) {
			return info, cred, rutter.Errorf(rutter.CodeForbidden, "Secret %s: config.execProviderConfig.command %q is not one that the operator allows (--allow-exec)", s.Name, e.Command)
		}
		cred.Exec = &rutter.ExecProvider{Command: e.Command, Args: e.Args, Env: e.Env, APIVersion: e.APIVersion, InstallHint: e.InstallHint}
	}
	return info, cred, nil
}

// visible leaves out what tools keep of a Secret's content in its annotations.
func visible(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	delete(out, "kubectl.kubernetes.io/last-applied-configuration")
	if len(out) == 0 {
		return nil
	}
	return out
}

// jsonProblem says what is wrong with a JSON text without quoting the text,
// which holds credentials.
func jsonProblem(err error) string {
	switch e := err.(type) { //nolint:errorlint // the decoder returns these as they are
	case *json.SyntaxError:
		return fmt.Sprintf("not valid JSON at character %d", e.Offset)
	case *json.UnmarshalTypeError:
		return fmt.Sprintf("field %s must be of type %s", e.Field, e.Type)
	default:
		return "a value cannot be read (caData, certData and keyData must be base64)"
	}
}

// repositoryKeys are the keys that are acted on.
var repositoryKeys = []string{"url", "type", "name", "project", "username", "password", "bearerToken", "sshPrivateKey", "insecure",
	"insecureIgnoreHostKey", "tlsClientCertData", "tlsClientCertKey", "forceHttpBasicAuth", "proxy", "noProxy"}

// ParseRepository reads a repository or repo-creds Secret.
func ParseRepository(s *corev1.Secret) (rutter.RepoCredential, error) {
	c := rutter.RepoCredential{
		URL: strings.TrimSpace(data(s, "url")), Name: data(s, "name"), Type: data(s, "type"), Project: data(s, "project"),
		Template: s.Labels["argocd.argoproj.io/secret-type"] == "repo-creds",
		Username: data(s, "username"), Password: data(s, "password"), BearerToken: data(s, "bearerToken"), SSHPrivateKey: data(s, "sshPrivateKey"),
		TLSClientCert: data(s, "tlsClientCertData"), TLSClientKey: data(s, "tlsClientCertKey"),
		Insecure: data(s, "insecure") == "true", InsecureIgnoreHostKey: data(s, "insecureIgnoreHostKey") == "true",
		ForceHTTPBasicAuth: data(s, "forceHttpBasicAuth") == "true", Proxy: data(s, "proxy"), NoProxy: data(s, "noProxy"),
	}
	if c.URL == "" {
		return c, rutter.Errorf(rutter.CodeInvalid, "Secret %s: key url is missing or empty", s.Name)
	}
	if c.Type == "" {
		c.Type = "git"
	}
	if !slices.Contains([]string{"git", "helm", "oci"}, c.Type) {
		return c, rutter.Errorf(rutter.CodeInvalid, "Secret %s: key type is %q: use git, helm or oci", s.Name, c.Type)
	}
	keys := slices.Concat(slices.Collect(maps.Keys(s.Data)), slices.Collect(maps.Keys(s.StringData)))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		if !slices.Contains(repositoryKeys, k) && data(s, k) != "" && data(s, k) != "false" {
			c.Unsupported = append(c.Unsupported, k)
		}
	}
	return c, nil
}

// ParseTrust reads argocd-ssh-known-hosts-cm and argocd-tls-certs-cm; either
// may be empty.
func ParseTrust(knownHosts, tlsCerts *corev1.ConfigMap) rutter.RepoTrust {
	return rutter.RepoTrust{KnownHosts: knownHosts.Data["ssh_known_hosts"], CAs: maps.Clone(tlsCerts.Data)}
}
