package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rutterhq/rutter/internal/testenv"
)

// gitea is a hosting service: the real one.
type gitea struct {
	url, token string
	dir, home  string
}

const giteaConfig = `APP_NAME = forge
RUN_USER = %[1]s
RUN_MODE = prod
WORK_PATH = %[2]s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]d
ROOT_URL = http://127.0.0.1:%[3]d/
STATIC_ROOT_PATH = %[4]s/src
OFFLINE_MODE = true
DISABLE_SSH = true
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[repository]
ROOT = %[2]s/repos
[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-this-test
PASSWORD_HASH_ALGO = pbkdf2_v1
[api]
MAX_RESPONSE_ITEMS = 2
DEFAULT_PAGING_NUM = 2
[log]
MODE = console
LEVEL = error
[cron.update_checker]
ENABLED = false
`

var startedGitea struct {
	sync.Mutex

	server *gitea
}

// sharedGitea returns the server that all tests share; the first that asks starts it.
// It gives two elements a page.
func sharedGitea(t *testing.T) *gitea {
	t.Helper()
	home := os.Getenv("RUTTER_GITEA")
	if home == "" {
		t.Skip("RUTTER_GITEA names no directory with a Gitea server; sh internal/forge/testdata/build-gitea.sh DIR builds one")
	}
	startedGitea.Lock()
	defer startedGitea.Unlock()
	if startedGitea.server == nil {
		w := start(t)
		g := &gitea{dir: filepath.Join(w.dir, "gitea"), home: home}
		g.start(t, w)
		startedGitea.server = g
	}
	return startedGitea.server
}

func (g *gitea) start(t *testing.T, w *world) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of a TCP listener
	_ = l.Close()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.dir, "app.ini"), fmt.Appendf(nil, giteaConfig, me.Username, g.dir, port, g.home), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run(t, "migrate")
	g.run(t, "admin", "user", "create", "--admin", "--username", "boss", "--password", "correct-horse", "--email", "boss@example.com", "--must-change-password=false")
	said := strings.Fields(g.run(t, "admin", "user", "generate-access-token", "--username", "boss", "--raw", "--scopes", "all"))
	if len(said) == 0 {
		t.Fatal("gitea gives no token")
	}
	g.url, g.token = fmt.Sprintf("http://127.0.0.1:%d", port), said[len(said)-1]
	server := g.command(context.WithoutCancel(t.Context()), "web")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	w.atEnd(func() {
		_ = server.Process.Kill() // its data is thrown away
		_ = server.Wait()
	})
	testenv.Eventually(t, patience, func() error {
		_, err := request(t.Context(), http.MethodGet, g.url+"/api/v1/version", nil, nil)
		return err
	})
}

func (g *gitea) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(g.home, "gitea"), append(args, "--config", filepath.Join(g.dir, "app.ini"))...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "HOME="+g.dir, "GITEA_WORK_DIR="+g.dir)
	return cmd
}

func (g *gitea) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := g.command(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("gitea %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// do changes something at the server.
func (g *gitea) do(t *testing.T, method, path string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, g.url+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "token "+g.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
}

// organization makes one with repositories, and pull requests in the first.
func (g *gitea) organization(t *testing.T, name string, pulls int, repos ...string) {
	t.Helper()
	type fields map[string]any
	g.do(t, http.MethodPost, "/orgs", fields{"username": name, "visibility": "private"})
	for _, r := range repos {
		g.repository(t, name, r)
	}
	for i := range pulls {
		branch := fmt.Sprintf("change-%d", i+1)
		g.do(t, http.MethodPost, "/repos/"+name+"/"+repos[0]+"/contents/"+branch+".txt", fields{"content": "eA==", "message": "x", "branch": "main", "new_branch": branch})
		g.do(t, http.MethodPost, "/repos/"+name+"/"+repos[0]+"/pulls", fields{"title": branch, "head": branch, "base": "main"})
	}
}

func (g *gitea) repository(t *testing.T, org, name string) {
	t.Helper()
	g.do(t, http.MethodPost, "/orgs/"+org+"/repos", map[string]any{"name": name, "auto_init": true, "default_branch": "main", "private": true})
}

// tokenSecret has the login for generators.
func (g *gitea) tokenSecret(name string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {token: " + g.token + "}\n"
}
