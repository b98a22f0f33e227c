package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/rutterhq/rutter"
)

// provider knows one forge's webhook (reference 8.5).
type provider struct {
	name string
	// header, when present, marks the provider's requests.
	header string
	// secretKey is the key of argocd-secret that a request is verified with.
	secretKey string
	verify    func(h http.Header, body []byte, secret string) bool
	// read decodes what is told.
	read func(h http.Header, body []byte) (event, error)
}

// azureUser is the other half of Azure DevOps' login.
const azureUser = "webhook.azuredevops.username"

// secret is what a provider's requests are verified with; "" when it is not configured.
func (p *provider) secret(of map[string]string) string {
	secret := of[p.secretKey]
	if secret != "" && p.header == azureHeader {
		return of[azureUser] + ":" + secret
	}
	return secret
}

const azureHeader = "X-Vss-Activityid"

// providers are tried in order: Gitea sends GitHub's header too, and Bitbucket
// Cloud that of Bitbucket Server, so these come first.
func providers() []*provider {
	return []*provider{
		{name: "Azure DevOps", header: azureHeader, secretKey: "webhook.azuredevops.password", verify: basicAuth, read: readAzure},
		{name: "Gitea", header: "X-Gitea-Event", secretKey: "webhook.gogs.secret", verify: hexSignature("X-Gitea-Signature"), read: readHub(rutter.ForgeGitea, "X-Gitea-Event")},
		{name: "Gogs", header: "X-Gogs-Event", secretKey: "webhook.gogs.secret", verify: hexSignature("X-Gogs-Signature"), read: readHub("", "X-Gogs-Event")},
		{name: "GitHub", header: "X-GitHub-Event", secretKey: "webhook.github.secret", verify: prefixedSignature("X-Hub-Signature-256"), read: readHub(rutter.ForgeGitHub, "X-GitHub-Event")},
		{name: "GitLab", header: "X-Gitlab-Event", secretKey: "webhook.gitlab.secret", verify: token("X-Gitlab-Token"), read: readGitLab},
		{name: "Bitbucket", header: "X-Hook-UUID", secretKey: "webhook.bitbucket.uuid", verify: token("X-Hook-UUID"), read: readBitbucketCloud},
		{name: "Bitbucket Server", header: "X-Event-Key", secretKey: "webhook.bitbucketserver.secret", verify: prefixedSignature("X-Hub-Signature"), read: readBitbucketServer},
	}
}

func providerOf(h http.Header) *provider {
	for _, p := range providers() {
		if h.Get(p.header) != "" {
			return p
		}
	}
	return nil
}

func hexSignature(header string) func(http.Header, []byte, string) bool {
	return func(h http.Header, body []byte, secret string) bool {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		got, err := hex.DecodeString(h.Get(header))
		return err == nil && hmac.Equal(got, mac.Sum(nil))
	}
}

func prefixedSignature(header string) func(http.Header, []byte, string) bool {
	verify := hexSignature(header)
	return func(h http.Header, body []byte, secret string) bool {
		sum, ok := strings.CutPrefix(h.Get(header), "sha256=")
		return ok && verify(http.Header{header: []string{sum}}, body, secret)
	}
}

func token(header string) func(http.Header, []byte, string) bool {
	return func(h http.Header, _ []byte, secret string) bool {
		return subtle.ConstantTimeCompare([]byte(h.Get(header)), []byte(secret)) == 1
	}
}

// basicAuth compares user:password.
func basicAuth(h http.Header, _ []byte, secret string) bool {
	user, password, ok := (&http.Request{Header: h}).BasicAuth()
	return ok && subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(secret)) == 1
}
