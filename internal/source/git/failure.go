package git

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// verdict is what a line of git's output means, and what to do about it.
type verdict struct {
	code rutter.Code
	// text follows the repository's URL; hint follows the cause.
	text string
	hint string
}

// symptoms translate git's and ssh's messages (which are not localised: LC_ALL
// is C). The first match wins, so the specific ones come first.
var symptoms = []struct {
	words string
	verdict
}{
	{"No space left on device", verdict{rutter.CodeUnavailable, "could not be stored: the disk is full", "free space in the data folder"}},
	{"Disk quota exceeded", verdict{rutter.CodeUnavailable, "could not be stored: the disk quota is used up", "free space in the data folder"}},
	{"Read-only file system", verdict{rutter.CodeUnavailable, "could not be stored: the data folder is read-only", "make it writable"}},
	{"Host key verification failed", verdict{rutter.CodeForbidden, "was not contacted: the SSH host key of its server is not known or has changed", "add the server's line to argocd-ssh-known-hosts-cm (ssh-keyscan prints it; check it against the provider's published key)"}},
	{"dubious ownership", verdict{rutter.CodeForbidden, "belongs to another user on this machine", "give the folder to the user that runs rutter"}},
	{"certificate", verdict{rutter.CodeUnavailable, "was not contacted: the TLS certificate of its server is not trusted", "add the authority's certificate for the host to argocd-tls-certs-cm"}},
	{"Authentication failed", verdict{rutter.CodeForbidden, "refused the login", "correct the login in the repository's Secret"}},
	{"could not read Username", verdict{rutter.CodeForbidden, "wants a login", "add a repository Secret with a login for it"}},
	{"could not read Password", verdict{rutter.CodeForbidden, "wants a login", "add a repository Secret with a login for it"}},
	{"error: 401", verdict{rutter.CodeForbidden, "refused the login", "correct the login in the repository's Secret"}},
	{"error: 403", verdict{rutter.CodeForbidden, "refused access", "give the login read access to it"}},
	{"Permission denied (", verdict{rutter.CodeForbidden, "refused the login", "add a repository Secret with an sshPrivateKey that may read it"}},
	{"Load key", verdict{rutter.CodeInvalid, "cannot be logged in to: the SSH private key cannot be read", "put an unencrypted private key in sshPrivateKey"}},
	{"error: 301", verdict{rutter.CodeInvalid, "has moved, and a bearer token or client certificate is not sent to another address", "write its new URL"}},
	{"error: 302", verdict{rutter.CodeInvalid, "has moved, and a bearer token or client certificate is not sent to another address", "write its new URL"}},
	{"error: 307", verdict{rutter.CodeInvalid, "has moved, and a bearer token or client certificate is not sent to another address", "write its new URL"}},
	{"error: 308", verdict{rutter.CodeInvalid, "has moved, and a bearer token or client certificate is not sent to another address", "write its new URL"}},
	{"error: 429", verdict{rutter.CodeUnavailable, "did not answer: its server limits the rate of requests", "poll less often, or use a webhook"}},
	{"Could not resolve", verdict{rutter.CodeUnavailable, "did not answer: its host name was not found", "check the URL and the name server"}},
	{"not found", verdict{rutter.CodeNotFound, "not found or no access", "check the URL, or add a repository Secret with a login for it"}},
	{"does not appear to be a git repository", verdict{rutter.CodeNotFound, "not found or no access", "check the URL, or add a repository Secret with a login for it"}},
	{"does not exist", verdict{rutter.CodeNotFound, "not found or no access", "check the URL, or add a repository Secret with a login for it"}},
	{"error: 404", verdict{rutter.CodeNotFound, "not found or no access", "check the URL, or add a repository Secret with a login for it"}},
	{"not our ref", verdict{rutter.CodeNotFound, "does not have the commit", "check the revision"}},
	{"unadvertised object", verdict{rutter.CodeNotFound, "does not serve the commit", "check the revision"}},
	{"mismatched algorithms", verdict{rutter.CodeUnsupported, "names its objects by SHA-256, which is not supported", "use a SHA-1 repository"}},
	{"fsck error", verdict{rutter.CodeInvalid, "holds an object that git refuses, as malformed or as a trap", "repair the repository; git fsck --strict says more"}},
	{"transport '", verdict{rutter.CodeInvalid, "uses a protocol that is not allowed", "use https, http, ssh or file"}},
}

// explain turns a failed command into the error that a user sees. It names the
// repository, what happened, which login was used and what to do; secrets are
// removed from what git said.
func explain(err error, loc location, a access) error {
	var failed *exitError
	if !errors.As(err, &failed) {
		return err
	}
	if errors.Is(failed.err, context.DeadlineExceeded) {
		return rutter.Errorf(rutter.CodeUnavailable, "repository %q did not answer in time", loc.display())
	}
	if errors.Is(failed.err, context.Canceled) {
		return rutter.Errorf(rutter.CodeUnavailable, "repository %q: %w", loc.display(), failed.err)
	}
	said := a.scrub(lastLine(failed.stderr))
	if i := strings.Index(failed.stderr, "error: object "); i >= 0 && strings.Contains(failed.stderr, "fsck error") {
		line, _, _ := strings.Cut(failed.stderr[i:], "\n")
		said = cut(printable(a.scrub(line)))
	}
	v := verdict{rutter.CodeUnavailable, "did not answer", "check the network and the server"}
	for _, s := range symptoms {
		if strings.Contains(failed.stderr, s.words) {
			v = s.verdict
			break
		}
	}
	text := v.text
	if v.code == rutter.CodeForbidden || v.code == rutter.CodeNotFound {
		text += " (used " + a.describe() + a.unsupported() + ")"
	}
	return rutter.Errorf(v.code, "repository %q %s: %s: git said: %s", loc.display(), text, v.hint, said)
}

func (a access) unsupported() string {
	if len(a.cred.Unsupported) == 0 {
		return ""
	}
	return "; its fields " + strings.Join(a.cred.Unsupported, ", ") + " are not acted on yet"
}

// scrub removes every secret of the credential, and every userinfo, from text.
func (a access) scrub(text string) string {
	text = redact(text)
	secrets := []string{a.cred.Password, a.cred.BearerToken}
	if by, err := parseProxy(a.cred); err == nil && by.User != nil {
		password, _ := by.User.Password()
		secrets = append(secrets, password)
	}
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// lastLine picks the line that says why: the last fatal one, else the last.
func lastLine(stderr string) string {
	last := ""
	lines := strings.Split(stderr, "\n")
	for _, line := range slices.Backward(lines) {
		line := printable(line)
		switch {
		case strings.HasPrefix(line, "fatal: Could not read from remote"):
			continue
		case strings.HasPrefix(line, "fatal: "):
			return cut(strings.TrimPrefix(line, "fatal: "))
		case last == "" && line != "" && !strings.HasPrefix(line, "Please make sure") && !strings.HasPrefix(line, "and the repository exists"):
			last = line
		}
	}
	if last == "" {
		return "nothing"
	}
	return cut(last)
}

func cut(line string) string {
	const longest = 300
	if len(line) > longest {
		return strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return line
}

// printable drops control characters, which a hostile server may send.
func printable(line string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\uFFFD' {
			return ' '
		}
		return r
	}, line))
}
