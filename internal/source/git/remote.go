package git

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
)

// remote is how a mirror reaches its repository.
type remote struct {
	url   string
	cred  *rutter.RepoCredential
	trust rutter.RepoTrust
}

// run calls git with a clean environment. User input is never an option: it
// comes after --end-of-options or in the environment.
func (f *Fetcher) run(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, f.opts.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.git, args...) //nolint:gosec // arguments are ours; input stands after --end-of-options
	cmd.Dir = dir
	cmd.Env = append(baseEnv(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return nil, rutter.Errorf(rutter.CodeUnavailable, "git %s did not end within %s: %w", args[0], f.opts.Timeout, ctx.Err())
		}
		return nil, classify(args[0], stderr.String(), err)
	}
	return out, nil
}

// baseEnv keeps the machine's own Git configuration out, and with it whatever
// helpers and rewrites somebody has set up there.
func baseEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ALLOW_PROTOCOL=http:https:ssh:file", "GIT_PROTOCOL_FROM_USER=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false",
	}
}

// config gives git settings through the environment, where they show in no
// list of processes.
type config struct{ env []string }

func (c *config) set(key, value string) {
	n := len(c.env) / 2
	c.env = append(c.env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, value))
}

func (c *config) done() []string {
	return append(c.env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(c.env)/2))
}

// environment prepares credentials, trust and proxies for one call. cleanup
// removes the files that git and ssh must read.
func (r remote) environment() (env []string, cleanup func(), err error) {
	c := &config{}
	c.set("protocol.version", "2")
	c.set("core.symlinks", "false")
	c.set("gc.auto", "0")
	c.set("safe.directory", "*") // a repository on disk that belongs to somebody else is only read
	c.set("http.followRedirects", "initial")
	cleanup = func() {}
	u, parseErr := url.Parse(r.url)
	isHTTP := parseErr == nil && (u.Scheme == "http" || u.Scheme == "https")
	ssh := parseErr != nil || u.Scheme == "ssh" || u.Scheme == ""
	if !isHTTP && !ssh {
		return c.done(), cleanup, nil
	}
	dir, err := os.MkdirTemp("", "rutter-git-")
	if err != nil {
		return nil, cleanup, fmt.Errorf("make a folder for credentials: %w", err)
	}
	cleanup = func() { os.RemoveAll(dir) }
	var extra []string
	if isHTTP {
		err = r.http(c, u, dir)
	} else {
		extra, err = r.ssh(dir)
	}
	if r.cred != nil && r.cred.Proxy != "" {
		extra = append(extra, "http_proxy="+r.cred.Proxy, "https_proxy="+r.cred.Proxy, "no_proxy="+r.cred.NoProxy)
	}
	return append(c.done(), extra...), cleanup, err
}

// http sets the login as a header that is bound to this repository's host and
// path; git sends it nowhere else, redirects included.
func (r remote) http(c *config, u *url.URL, dir string) error {
	scope := "http." + u.Scheme + "://" + u.Host + u.Path
	if ca := r.trust.CAs[u.Hostname()]; ca != "" {
		if err := file(dir, "ca.pem", ca, c, "http.sslCAInfo"); err != nil {
			return err
		}
	}
	if r.cred == nil {
		return nil
	}
	switch {
	case r.cred.BearerToken != "":
		c.set(scope+".extraHeader", "Authorization: Bearer "+r.cred.BearerToken)
	case r.cred.Password != "" || r.cred.Username != "":
		basic := base64.StdEncoding.EncodeToString([]byte(r.cred.Username + ":" + r.cred.Password))
		c.set(scope+".extraHeader", "Authorization: Basic "+basic)
	}
	if r.cred.Insecure {
		c.set("http.sslVerify", "false")
	}
	if r.cred.TLSClientCert != "" {
		return errors.Join(file(dir, "client.crt", r.cred.TLSClientCert, c, "http.sslCert"), file(dir, "client.key", r.cred.TLSClientKey, c, "http.sslKey"))
	}
	return nil
}

// file writes what git can only read from a file.
func file(dir, name, content string, c *config, key string) error {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write a file for git: %w", err)
	}
	if c != nil {
		c.set(key, path)
	}
	return nil
}

// ssh makes the command that git connects with. Without a known host key the
// connection is refused, unless the operator waived that for the repository.
func (r remote) ssh(dir string) ([]string, error) {
	cmd := "ssh -F /dev/null -o BatchMode=yes -o IdentitiesOnly=yes -o ConnectTimeout=15 -o ForwardAgent=no"
	known := filepath.Join(dir, "known_hosts")
	if err := file(dir, "known_hosts", r.trust.KnownHosts, nil, ""); err != nil {
		return nil, err
	}
	cmd += " -o UserKnownHostsFile='" + known + "' -o GlobalKnownHostsFile=/dev/null"
	if r.cred != nil && (r.cred.InsecureIgnoreHostKey || r.cred.Insecure) {
		cmd += " -o StrictHostKeyChecking=no"
	} else {
		cmd += " -o StrictHostKeyChecking=yes"
	}
	if r.cred != nil && r.cred.SSHPrivateKey != "" {
		if err := file(dir, "key", strings.TrimRight(r.cred.SSHPrivateKey, "\n")+"\n", nil, ""); err != nil {
			return nil, err
		}
		cmd += " -o IdentityAgent=none -i '" + filepath.Join(dir, "key") + "'"
	}
	return []string{"GIT_SSH_COMMAND=" + cmd, "GIT_SSH_VARIANT=ssh"}, nil
}

// classify reads git's own words once, for the code and for a hint.
func classify(verb, stderr string, err error) error {
	words := lastLines(stderr)
	low := strings.ToLower(stderr)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(low, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("host key verification failed"):
		return rutter.Errorf(rutter.CodeForbidden, "the host's SSH key is not known: add it to the ConfigMap argocd-ssh-known-hosts-cm (%s)", words)
	case has("authentication failed", "could not read username", "permission denied", "403", "401", "invalid username or password", "access denied"):
		return rutter.Errorf(rutter.CodeForbidden, "access is denied: add or correct a Secret labelled argocd.argoproj.io/secret-type: repository (%s)", words)
	case has("not found", "does not exist", "does not appear to be a git repository", "no such file or directory"):
		return rutter.Errorf(rutter.CodeNotFound, "not found, or no access without credentials (%s)", words)
	case has("no space left"):
		return rutter.Errorf(rutter.CodeUnavailable, "the disk is full (%s)", words)
	case has("could not resolve host", "failed to connect", "couldn't connect", "connection refused", "timed out", "connection reset", "early eof", "unable to access", "could not read from remote"):
		return rutter.Errorf(rutter.CodeUnavailable, "the repository's host does not answer (%s)", words)
	default:
		return rutter.Errorf(rutter.CodeInternal, "git %s: %w (%s)", verb, err, words)
	}
}

// lastLines is what git said, on one line, without any URL's user and password.
func lastLines(stderr string) string {
	words := strings.Fields(stderr)
	for i, w := range words {
		if strings.Contains(w, "://") {
			words[i] = strings.Trim(redact(strings.Trim(w, "'\":,")), " ")
		}
	}
	s := strings.Join(words, " ")
	const limit = 300
	if len(s) > limit {
		s = "… " + s[len(s)-limit:]
	}
	return s
}
