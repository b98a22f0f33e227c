package argo_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const pemText = "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n"

var pem64 = base64.StdEncoding.EncodeToString([]byte(pemText))

func secret(kind string, kv ...string) *corev1.Secret {
	s := &corev1.Secret{Data: map[string][]byte{}}
	s.Namespace, s.Name, s.Labels = "argocd", "x", map[string]string{argo.LabelSecretType: kind}
	for i := 0; i < len(kv); i += 2 {
		s.Data[kv[i]] = []byte(kv[i+1])
	}
	return s
}

func allow(command string) bool { return command == "aws-auth" }

func TestParseClusterInfo(t *testing.T) {
	s := secret("cluster", "name", "prod", "server", "https://prod:6443/", "namespaces", "a, b,", "clusterResources", "true", "project", "team", "shard", "1", "config", "{}")
	s.Annotations = map[string]string{"kept": "yes", corev1.LastAppliedConfigAnnotation: "secret"}
	info, cred, err := argo.ParseCluster(s, allow)
	if err != nil {
		t.Fatal(err)
	}
	want := rutter.ClusterInfo{Name: "prod", Server: "https://prod:6443", Project: "team", Labels: s.Labels,
		Annotations: map[string]string{"kept": "yes"}, Namespaces: []string{"a", "b"}, ClusterResources: true}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"shard"}, cred.Unsupported); diff != "" {
		t.Error(diff)
	}
	s = secret("cluster")
	s.StringData = map[string]string{"server": "https://prod:6443", "config": `{"bearerToken":"t"}`}
	if info, cred, err := argo.ParseCluster(s, nil); err != nil || info.Name != "https://prod:6443" || cred.BearerToken != "t" {
		t.Errorf("from stringData: %+v, %v", info, err)
	}
}

func TestParseClusterConfig(t *testing.T) {
	for _, tc := range []struct {
		name, config string
		want         rutter.ClusterCredential
	}{
		{"empty", "", rutter.ClusterCredential{}},
		{"token", `{"bearerToken":"t","tlsClientConfig":{"insecure":true}}`, rutter.ClusterCredential{BearerToken: "t", TLS: rutter.ClusterTLS{Insecure: true}}},
		{"basic", `{"username":"u","password":"p","disableCompression":true}`, rutter.ClusterCredential{Username: "u", Password: "p", DisableCompression: true}},
		{"tls", `{"tlsClientConfig":{"serverName":"s","caData":"` + pem64 + `","certData":"` + pem64 + `","keyData":"` + pem64 + `"}}`,
			rutter.ClusterCredential{TLS: rutter.ClusterTLS{ServerName: "s", CAData: []byte(pemText), CertData: []byte(pemText), KeyData: []byte(pemText)}}},
		{"proxy", `{"proxyUrl":"socks5://proxy:1080"}`, rutter.ClusterCredential{ProxyURL: "socks5://proxy:1080"}},
		{"exec", `{"execProviderConfig":{"command":"aws-auth","args":["token"],"env":{"A":"b"},"apiVersion":"client.authentication.k8s.io/v1","installHint":"h","provideClusterInfo":true,"config":{"a":1}}}`,
			rutter.ClusterCredential{Exec: &rutter.ExecProvider{Command: "aws-auth", Args: []string{"token"}, Env: map[string]string{"A": "b"}, APIVersion: "client.authentication.k8s.io/v1", InstallHint: "h"},
				Unsupported: []string{"config.execProviderConfig.provideClusterInfo", "config.execProviderConfig.config"}}},
		{"unknown", `{"bearerToken":"t","tokenn":"x","tlsClientConfig":{"ca":"x"}}`, rutter.ClusterCredential{BearerToken: "t", Unsupported: []string{"config.tokenn", "config.tlsClientConfig.ca"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, cred, err := argo.ParseCluster(secret("cluster", "server", "https://x", "config", tc.config), allow)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, cred); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestParseClusterErrors: each names the Secret, the key and the field, and
// none shows a value.
func TestParseClusterErrors(t *testing.T) {
	const hidden = "hunter2"
	for _, tc := range []struct {
		kv   []string
		says string
		code rutter.Code
	}{
		{nil, "Secret argocd/x: key server is missing or empty", rutter.CodeInvalid},
		{[]string{"server", hidden}, "key server must be a URL such as https://host:6443", rutter.CodeInvalid},
		{[]string{"server", "ftp://" + hidden}, "key server must be a URL", rutter.CodeInvalid},
		{[]string{"server", "https://x", "clusterResources", hidden}, "key clusterResources must be true or false", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"bearerToken": "hunter2`}, "key config: not valid JSON at character 24", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `"hunter2"`}, "key config: must be a JSON object", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"bearerToken": 2}`}, "key config: field bearerToken must be a string", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"tlsClientConfig": {"insecure": "hunter2"}}`}, "key config: field tlsClientConfig.insecure must be true or false", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"tlsClientConfig": {"caData": "%hunter2"}}`}, "key config: field tlsClientConfig.caData is not base64", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"tlsClientConfig": {"keyData": "aHVudGVyMg==", "certData": "` + pem64 + `"}}`}, "key config: field tlsClientConfig.keyData is not PEM in base64", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"tlsClientConfig": {"certData": "` + pem64 + `"}}`}, "certData and tlsClientConfig.keyData must be set together", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"tlsClientConfig": {"insecure": true, "caData": "` + pem64 + `"}}`}, "exclude each other", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"username": "hunter2", "bearerToken": "hunter2"}`}, "bearerToken and username exclude each other", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"proxyUrl": "ftp://hunter2@x"}`}, "key config: field proxyUrl", rutter.CodeInvalid},
		{[]string{"server", "https://x", "config", `{"awsAuthConfig": {"clusterName": "hunter2"}}`}, "key config: field awsAuthConfig is not acted on yet", rutter.CodeUnsupported},
		{[]string{"server", "https://x", "config", `{"execProviderConfig": {"command": "/bin/sh"}}`}, `field execProviderConfig.command is "/bin/sh", which the operator has not allowed`, rutter.CodeForbidden},
		{[]string{"server", "https://x", "config", `{"execProviderConfig": {}}`}, "field execProviderConfig.command is missing", rutter.CodeInvalid},
	} {
		_, cred, err := argo.ParseCluster(secret("cluster", tc.kv...), allow)
		if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.HasPrefix(err.Error(), "Secret argocd/x: ") || rutter.CodeOf(err) != tc.code {
			t.Errorf("%q: %v, want %s %q", tc.kv, err, tc.code, tc.says)
			continue
		}
		if strings.Contains(err.Error(), hidden) || cred.Exec != nil {
			t.Errorf("%q: %v shows a value, or the command is used", tc.kv, err)
		}
	}
}

func TestParseRepository(t *testing.T) {
	c, err := argo.ParseRepository(secret("repository", "url", " https://x/y ", "username", "u", "password", "p", "insecure", "true", "project", "team",
		"depth", "3", "enableLfs", "true", "enableOCI", "false", "githubAppID", "1", "githubAppInstallationID", "2", "githubAppPrivateKey", "pem",
		"githubAppEnterpriseBaseUrl", "https://ghe/api/v3", "gcpServiceAccountKey", "{}"))
	want := rutter.RepoCredential{URL: "https://x/y", Type: "git", Username: "u", Password: "p", Insecure: true, Project: "team", EnableLFS: true,
		GitHubApp: &rutter.GitHubApp{ID: 1, InstallationID: 2, PrivateKey: "pem", BaseURL: "https://ghe/api/v3"}, Depth: 3, Unsupported: []string{"gcpServiceAccountKey"}}
	if diff := cmp.Diff(want, c); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	c, err = argo.ParseRepository(secret("repo-creds", "url", "git@x:org/", "sshPrivateKey", "k", "type", "git", "insecureIgnoreHostKey", "1"))
	want = rutter.RepoCredential{URL: "git@x:org/", Type: "git", SSHPrivateKey: "k", InsecureIgnoreHostKey: true, Template: true}
	if diff := cmp.Diff(want, c); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for says, kv := range map[string][]string{
		"key url is missing":                    {"password", "hunter2"},
		"key type must be git, helm or oci":     {"url", "https://x", "type", "hunter2"},
		"key insecure must be true or false":    {"url", "https://x", "insecure", "hunter2"},
		"key depth must be a number":            {"url", "https://x", "depth", "hunter2"},
		"githubAppPrivateKey must be set":       {"url", "https://x", "githubAppID", "7"},
		"tlsClientCertKey must be set together": {"url", "https://x", "tlsClientCertData", "hunter2"},
	} {
		if _, err := argo.ParseRepository(secret("repository", kv...)); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, want %q", kv, err, says)
		}
	}
}

func TestParseTrust(t *testing.T) {
	if got := argo.ParseTrust(nil, nil); got.KnownHosts != "" || got.CAs != nil {
		t.Errorf("%+v", got)
	}
	got := argo.ParseTrust(&corev1.ConfigMap{Data: map[string]string{"ssh_known_hosts": "h"}}, &corev1.ConfigMap{Data: map[string]string{"x": pemText}})
	if diff := cmp.Diff(rutter.RepoTrust{KnownHosts: "h", CAs: map[string]string{"x": pemText}}, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzParseCluster: no config makes the parser fail otherwise than with an
// error, and no error shows the token.
func FuzzParseCluster(f *testing.F) {
	f.Add(`{"bearerToken":"t0ps3cr3t","tlsClientConfig":{"caData":"x"}}`)
	f.Add(`{"execProviderConfig":{"args":[1]}}`)
	f.Add(`{"bearerToken":["t0ps3cr3t"]}`)
	f.Fuzz(func(t *testing.T, config string) {
		_, cred, err := argo.ParseCluster(secret("cluster", "server", "https://x", "config", config), nil)
		if cred.Exec != nil {
			t.Error("a command is used that nobody allowed")
		}
		if err != nil && strings.Contains(err.Error(), "t0ps3cr3t") {
			t.Errorf("%v", err)
		}
	})
}
