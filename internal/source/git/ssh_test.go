package git

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/rutterhq/rutter"
)

// sshServer lets one key in and runs git-upload-pack on the origins' folder.
type sshServer struct {
	addr string
	host ssh.Signer
	key  string
	// lfs is what the server says to git-lfs-authenticate, whose arguments are asked.
	lfs   string
	asked string
}

func newKey(t *testing.T) (signer ssh.Signer, text string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if signer, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

func serveSSH(t *testing.T, root string) *sshServer {
	t.Helper()
	s := &sshServer{}
	var client ssh.Signer
	client, s.key = newKey(t)
	s.host, _ = newKey(t)
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return &ssh.Permissions{}, nil
	}}
	cfg.AddHostKey(s.host)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	s.addr = listener.Addr().String()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serveConn(conn, cfg, root)
		}
	}()
	return s
}

func (s *sshServer) serveConn(conn net.Conn, cfg *ssh.ServerConfig, root string) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, cfg)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		if c.ChannelType() != "session" {
			_ = c.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		ch, reqs, err := c.Accept()
		if err != nil {
			return
		}
		go s.session(ch, reqs, root)
	}
}

func (s *sshServer) session(ch ssh.Channel, reqs <-chan *ssh.Request, root string) {
	defer ch.Close()
	env := []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "HOME=/nonexistent"}
	for r := range reqs {
		switch r.Type {
		case "env":
			var kv struct{ Name, Value string }
			if ssh.Unmarshal(r.Payload, &kv) == nil && kv.Name == "GIT_PROTOCOL" {
				env = append(env, kv.Name+"="+kv.Value)
			}
			_ = r.Reply(true, nil)
		case "exec":
			var line struct{ Command string }
			_ = ssh.Unmarshal(r.Payload, &line)
			_ = r.Reply(true, nil)
			if args, ok := strings.CutPrefix(line.Command, "git-lfs-authenticate "); ok && s.lfs != "" {
				s.asked = args
				_, _ = io.WriteString(ch, s.lfs)
				_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{}))
				return
			}
			name, ok := strings.CutPrefix(line.Command, "git-upload-pack ")
			cmd := exec.Command("git", "upload-pack", filepath.Join(root, strings.Trim(name, "'")))
			cmd.Env, cmd.Stdout, cmd.Stderr = env, ch, ch.Stderr()
			in, err := cmd.StdinPipe()
			status := struct{ Status uint32 }{1}
			if ok && err == nil && cmd.Start() == nil {
				go func() { _, _ = io.Copy(in, ch); in.Close() }()
				if cmd.Wait() == nil {
					status.Status = 0
				}
			}
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(status))
			return
		default:
			_ = r.Reply(false, nil)
		}
	}
}

func TestSSH(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveSSH(t, filepath.Dir(o.bare))
	url := "ssh://git@" + s.addr + "/fleet.git"
	known := knownhosts.Line([]string{knownhosts.Normalize(s.addr)}, s.host.PublicKey())
	other, wrongKey := newKey(t)
	changed := knownhosts.Line([]string{knownhosts.Normalize(s.addr)}, other.PublicKey())
	login := func(key string) []rutter.RepoCredential {
		return []rutter.RepoCredential{{URL: url, SSHPrivateKey: key}}
	}

	// A folder whose name has to be quoted.
	dir := filepath.Join(t.TempDir(), "it's 100% a folder")
	tests := []struct {
		name  string
		creds []rutter.RepoCredential
		known string
		code  rutter.Code
		words string
	}{
		{"known host, right key", login(s.key), known, "", ""},
		{"key without its last line's end, and with those of Windows", login(strings.TrimSpace(strings.ReplaceAll(s.key, "\n", "\r\n"))), known, "", ""},
		{"unknown host", login(s.key), "", rutter.CodeForbidden, "argocd-ssh-known-hosts-cm"},
		{"changed host", login(s.key), changed, rutter.CodeForbidden, "argocd-ssh-known-hosts-cm"},
		{"host key ignored", []rutter.RepoCredential{{URL: url, SSHPrivateKey: s.key, InsecureIgnoreHostKey: true}}, "", "", ""},
		{"template", []rutter.RepoCredential{{URL: "ssh://git@" + s.addr, Template: true, SSHPrivateKey: s.key}}, known, "", ""},
		{"wrong key", login(wrongKey), known, rutter.CodeForbidden, "refused the login"},
		{"no key", nil, known, rutter.CodeForbidden, "refused the login"},
		{"another project's key", []rutter.RepoCredential{{URL: url, Project: "other", SSHPrivateKey: s.key}}, known, rutter.CodeForbidden, "no credential"},
		{"proxy of an unknown protocol", []rutter.RepoCredential{{URL: url, SSHPrivateKey: s.key, Proxy: "gopher://proxy:3128"}}, known, rutter.CodeInvalid, "proxy"},
		{"proxy that is not there", []rutter.RepoCredential{{URL: url, SSHPrivateKey: s.key, Proxy: "http://127.0.0.1:1"}}, known, rutter.CodeUnavailable, "by the proxy 127.0.0.1:1"},
		{"proxy not for this host", []rutter.RepoCredential{{URL: url, SSHPrivateKey: s.key, Proxy: "http://127.0.0.1:1", NoProxy: "example.com,127.0.0.0/8"}}, known, "", ""},
		{"GitHub App", []rutter.RepoCredential{{URL: url, GitHubApp: &rutter.GitHubApp{ID: 1}}}, known, rutter.CodeInvalid, "HTTPS only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFetcher(t, Options{Dir: filepath.Join(dir, tt.name)})
			f.SetCredentials(tt.creds, rutter.RepoTrust{KnownHosts: tt.known})
			snapshot, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: "main", Project: "team"}, rutter.ResolveOptions{})
			if rutter.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.words) {
				t.Fatalf("%v; want code %q and the words %q", err, tt.code, tt.words)
			}
			if err == nil {
				wantFile(t, snapshot, "f", "1")
			}
			noSecretOnDisk(t, f.opts.Dir, "PRIVATE KEY")
		})
	}
}
