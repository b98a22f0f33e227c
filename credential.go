package rutter

import "strings"

// RepoCredential is a repository, or a template for all repositories whose
// URL begins with URL, and how to log in to it (reference 1.12). It is never
// logged: it has no String method and its fields are not in any response.
type RepoCredential struct {
	URL  string
	Name string
	// Type is git, helm or oci.
	Type string
	// Project restricts use to one project; empty means unscoped.
	Project string
	// Template is true for repo-creds: URL is a prefix, the longest wins.
	Template bool

	Username      string
	Password      string
	BearerToken   string
	SSHPrivateKey string
	TLSClientCert string
	TLSClientKey  string
	// Insecure skips TLS verification; InsecureIgnoreHostKey that of SSH.
	Insecure              bool
	InsecureIgnoreHostKey bool
	ForceHTTPBasicAuth    bool
	Proxy                 string
	NoProxy               string
	// GitHubApp logs in as an installation of a GitHub App; nil means not.
	GitHubApp *GitHubApp
	// EnableLFS replaces pointers of Git LFS by the files they stand for.
	EnableLFS bool
	// EnableOCI says that a Helm repository is a registry; PlainHTTP speaks HTTP to it.
	EnableOCI bool
	PlainHTTP bool
	// Depth is how many commits of history are fetched; 0 means what is needed.
	Depth int
	// Unsupported names fields that were set and that Rutter does not act on yet.
	Unsupported []string
}

// DecryptionKey is one Secret with keys that open files sealed by SOPS.
type DecryptionKey struct {
	// Name is the Secret's, for errors.
	Name string
	// Project restricts use to one project; empty means unscoped.
	Project string
	// Data are age identities (*.agekey), armored PGP private keys (*.asc) and the
	// logins of key services (sops.vault-token, sops.aws-kms, sops.gcp-kms, sops.azure-kv).
	Data map[string][]byte
}

// GitHubApp is the login of a GitHub App (reference 1.12).
type GitHubApp struct {
	ID int64
	// InstallationID is looked up for the repository's owner when it is 0.
	InstallationID int64
	// PrivateKey is PEM.
	PrivateKey string
	// BaseURL is the API of a GitHub Enterprise server; empty means github.com.
	BaseURL string
}

// RepoTrust is what the operator trusts: lines of known_hosts and a CA bundle
// (PEM) for each host (argocd-ssh-known-hosts-cm, argocd-tls-certs-cm).
type RepoTrust struct {
	KnownHosts string
	CAs        map[string]string
}

// ClusterCredential is how to reach and log in to a member (reference 1.12).
type ClusterCredential struct {
	Username           string
	Password           string
	BearerToken        string
	TLS                ClusterTLS
	Exec               *ExecProvider
	ProxyURL           string
	DisableCompression bool
	// Unsupported names what was set and is not acted upon (awsAuthConfig).
	Unsupported []string
}

// ClusterTLS is the TLS part of a ClusterCredential; data are PEM.
type ClusterTLS struct {
	Insecure   bool
	ServerName string
	CAData     []byte
	CertData   []byte
	KeyData    []byte
}

// ExecProvider is a credential plugin. It is refused unless its command is
// one that the operator listed.
type ExecProvider struct {
	Command     string
	Args        []string
	Env         map[string]string
	APIVersion  string
	InstallHint string
}

// NormalizeGitURL returns the form in which two spellings of a repository's
// URL are compared (reference 1.12): lower case, no .git, scp form as a path.
func NormalizeGitURL(url string) string {
	u := strings.ToLower(strings.TrimSpace(url))
	u = strings.TrimSuffix(u, "/")
	u = strings.TrimSuffix(u, ".git")
	if !strings.Contains(u, "://") {
		if host, path, ok := strings.Cut(u, ":"); ok && !strings.Contains(host, "/") {
			u = host + "/" + strings.TrimPrefix(path, "/")
		}
	}
	return strings.TrimPrefix(u, "ssh://")
}
