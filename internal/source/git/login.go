package git

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/rutterhq/rutter"
)

// helper is a credential helper in the shell that git brings along anyway. It
// answers only for the scheme, host and path that the credential is bound to,
// whatever git was redirected to, and takes the secret from the environment.
const helper = `!f() { test "$1" = get || exit 0
p=; h=; q=
while IFS= read -r l && test -n "$l"; do
case "$l" in protocol=*) p=${l#*=};; host=*) h=${l#*=};; path=*) q=${l#*=};; esac
done
test "$p" = "$RUTTER_GIT_SCHEME" && test "$h" = "$RUTTER_GIT_HOST" || exit 0
case "$q" in
"$RUTTER_GIT_PATH"|"$RUTTER_GIT_PATH".git|"$RUTTER_GIT_PATH"/*) ;;
"$RUTTER_GIT_PATH"*) test -n "$RUTTER_GIT_PREFIX" || exit 0;;
*) exit 0;;
esac
printf 'username=%s\npassword=%s\n' "$RUTTER_GIT_USER" "$RUTTER_GIT_PASSWORD"
}; f`

// login is the environment that logs git in to one repository, and the private
// folder with the files that takes. Close removes the folder.
type login struct {
	env []string
	dir string
	// access is what it was made of, ssh the command that connects (SSH only).
	access access
	ssh    string
	tunnel *tunnel
}

func (l *login) Close() {
	if l.tunnel != nil {
		l.tunnel.close()
	}
	if l.dir != "" {
		_ = os.RemoveAll(l.dir)
	}
}

// talk runs a git command that speaks to r's server. In what it says afterwards
// is no secret, and a token that was refused is not used again.
func (f *Fetcher) talk(ctx context.Context, r remote, c command) ([]byte, error) {
	l, err := f.login(ctx, r)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	c.env = append(c.env, l.env...)
	out, err := f.git.run(ctx, c)
	if failed, ok := errors.AsType[*exitError](err); ok {
		failed.stderr = l.access.scrub(failed.stderr)
		if rutter.CodeOf(r.explain(err)) == rutter.CodeForbidden {
			f.refused(r)
		}
	}
	return out, err
}

func (f *Fetcher) login(ctx context.Context, r remote) (*login, error) {
	a, err := f.current(ctx, r)
	if err != nil {
		return nil, err
	}
	return f.git.login(ctx, r.location, a)
}

// login prepares a command that talks to the repository at loc.
func (r *runner) login(ctx context.Context, loc location, a access) (*login, error) {
	out := &login{access: a}
	set := base()
	var err error
	switch loc.scheme {
	case "http", "https":
		set, err = r.loginHTTP(out, set, loc, a)
	case "ssh":
		err = r.loginSSH(ctx, out, loc, a)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	out.env = append(out.env, set.env()...)
	return out, nil
}

func (r *runner) loginHTTP(out *login, set settings, loc location, a access) (settings, error) {
	c := a.cred
	if strings.ContainsAny(c.Username+c.Password+c.BearerToken, "\x00\r\n") {
		return nil, rutter.Errorf(rutter.CodeInvalid, "repository %q: %s has a line break in its username, password or token; remove it", loc.display(), a.describe())
	}
	switch {
	case c.Password != "":
		user, prefix := c.Username, ""
		if user == "" {
			user = "x-access-token"
		}
		if c.Template && !a.inline {
			prefix = "1"
		}
		set = append(set, [2]string{"credential.helper", helper}, [2]string{"credential.useHttpPath", "true"})
		if c.ForceHTTPBasicAuth {
			set = append(set, [2]string{"http.emptyAuth", "false"})
		}
		out.env = append(out.env, "RUTTER_GIT_SCHEME="+loc.scheme, "RUTTER_GIT_HOST="+loc.host, "RUTTER_GIT_PATH="+a.path,
			"RUTTER_GIT_PREFIX="+prefix, "RUTTER_GIT_USER="+user, "RUTTER_GIT_PASSWORD="+c.Password)
	case c.BearerToken != "":
		// git repeats a header to wherever it is redirected: so it is not redirected.
		set = append(set, [2]string{"http.followRedirects", "false"}, [2]string{"http.extraHeader", "Authorization: Bearer " + c.BearerToken})
	}
	if c.Proxy != "" {
		if _, err := parseProxy(c); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "repository %q: %s: %w", loc.display(), a.describe(), err)
		}
		set = append(set, [2]string{"http.proxy", c.Proxy})
		out.env = append(out.env, "NO_PROXY="+c.NoProxy, "no_proxy="+c.NoProxy)
	}
	if c.Insecure {
		set = append(set, [2]string{"http.sslVerify", "false"})
	}
	return r.loginTLS(out, set, a)
}

func (r *runner) loginTLS(out *login, set settings, a access) (settings, error) {
	files := []struct{ setting, name, content string }{
		{"http.sslCAInfo", "ca.pem", a.ca},
		{"http.sslCert", "tls.crt", a.cred.TLSClientCert},
		{"http.sslKey", "tls.key", a.cred.TLSClientKey},
	}
	for _, f := range files {
		if f.content == "" {
			continue
		}
		path, err := r.private(out, f.name, f.content)
		if err != nil {
			return nil, err
		}
		set = append(set, [2]string{f.setting, path})
	}
	if a.cred.TLSClientCert != "" {
		set = append(set, [2]string{"http.followRedirects", "false"})
	}
	return set, nil
}

func (r *runner) loginSSH(ctx context.Context, out *login, loc location, a access) error {
	c := a.cred
	if c.GitHubApp != nil && c.SSHPrivateKey == "" {
		return rutter.Errorf(rutter.CodeInvalid, "repository %q: %s logs in over HTTPS only; write the https URL of the repository", loc.display(), a.describe())
	}
	hosts, err := r.private(out, "known_hosts", a.knownHosts+"\n")
	if err != nil {
		return err
	}
	strict, hosts := "yes", sshPath(hosts)
	if c.InsecureIgnoreHostKey || c.Insecure {
		strict, hosts = "no", "/dev/null"
	}
	opts := []string{"BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "ClearAllForwardings=yes", "ForwardAgent=no",
		"PasswordAuthentication=no", "KbdInteractiveAuthentication=no", "ControlMaster=no", "ControlPath=none", "PermitLocalCommand=no",
		"ConnectTimeout=20", "ServerAliveInterval=15", "ServerAliveCountMax=4", "UpdateHostKeys=no", "CanonicalizeHostname=no", "CheckHostIP=no",
		"GlobalKnownHostsFile=/dev/null", "LogLevel=ERROR", "StrictHostKeyChecking=" + strict, "UserKnownHostsFile=" + hosts}
	if c.SSHPrivateKey != "" {
		key, err := r.private(out, "id", strings.TrimSpace(strings.ReplaceAll(c.SSHPrivateKey, "\r\n", "\n"))+"\n")
		if err != nil {
			return err
		}
		opts = append(opts, "IdentityFile="+sshPath(key))
	} else {
		opts = append(opts, "IdentityFile=none", "PubkeyAuthentication=no")
	}
	proxy, err := sshProxy(ctx, out, loc, a)
	if err != nil {
		return err
	}
	var cmd strings.Builder
	cmd.WriteString("ssh -F /dev/null")
	for _, o := range append(opts, proxy...) {
		cmd.WriteString(" -o " + shellQuote(o))
	}
	out.ssh = cmd.String()
	out.env = append(out.env, "GIT_SSH_COMMAND="+out.ssh, "GIT_SSH_VARIANT=ssh")
	return nil
}

// sshProxy connects by the credential's proxy, if it has one for this host.
func sshProxy(ctx context.Context, out *login, loc location, a access) ([]string, error) {
	if a.cred.Proxy == "" || bypasses(a.cred.NoProxy, loc.hostname(), loc.port()) {
		return nil, nil
	}
	by, err := parseProxy(a.cred)
	if err == nil {
		out.tunnel, err = openTunnel(ctx, by, net.JoinHostPort(loc.hostname(), loc.port()), out.dir)
	}
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "repository %q: %s: %w", loc.display(), a.describe(), err)
	}
	return []string{"ProxyCommand=" + strings.ReplaceAll(out.tunnel.command(), "%", "%%")}, nil
}

// private writes a file that only this user can read, in a folder of its own
// that lives as long as the command.
func (r *runner) private(out *login, name, content string) (string, error) {
	if out.dir == "" {
		dir, err := os.MkdirTemp(r.tmp, "login-")
		if err != nil {
			return "", rutter.Errorf(rutter.CodeUnavailable, "preparing a Git login: %w", err)
		}
		out.dir = dir
	}
	path := filepath.Join(out.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return "", rutter.Errorf(rutter.CodeUnavailable, "preparing a Git login: %w", err)
	}
	return path, nil
}

// sshPath quotes a path for an ssh option, where % and spaces have a meaning.
func sshPath(path string) string { return `"` + strings.ReplaceAll(path, "%", "%%") + `"` }

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
