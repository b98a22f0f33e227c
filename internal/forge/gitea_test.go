package forge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// realGitea is a Gitea server that runs for one test.
type realGitea struct {
	url, token string
	// run is the server's own command line.
	run func(args ...string) string
}

const giteaConfig = `APP_NAME = forge
RUN_USER = %[1]s
RUN_MODE = prod
WORK_PATH = %[2]s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[3]s
ROOT_URL = http://127.0.0.1:%[3]s/
STATIC_ROOT_PATH = %[4]s
OFFLINE_MODE = true
SSH_DOMAIN = git.example.com
[database]
DB_TYPE = sqlite3
PATH = %[2]s/gitea.db
[repository]
ROOT = %[2]s/repos
[security]
INSTALL_LOCK = true
SECRET_KEY = only-for-this-test
PASSWORD_HASH_ALGO = pbkdf2_v1
[service]
DEFAULT_ALLOW_CREATE_ORGANIZATION = true
[api]
MAX_RESPONSE_ITEMS = 5
DEFAULT_PAGING_NUM = 5
[log]
MODE = console
LEVEL = error
[cron.update_checker]
ENABLED = false
`

// startGitea runs the server that testdata/build-gitea.sh has built. It gives
// five elements a page, so that short lists have several.
func startGitea(t *testing.T) *realGitea {
	t.Helper()
	home := os.Getenv("RUTTER_GITEA")
	if home == "" {
		t.Skip("RUTTER_GITEA names no directory with a Gitea server; sh internal/forge/testdata/build-gitea.sh DIR builds one")
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "app.ini")
	if err := os.WriteFile(conf, fmt.Appendf(nil, giteaConfig, me.Username, dir, port, filepath.Join(home, "src")), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), filepath.Join(home, "gitea"), append(args, "--config", conf)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "HOME="+dir, "GITEA_WORK_DIR="+dir)
		return cmd
	}
	run := func(args ...string) string {
		out, err := command(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("gitea %s: %v\n%s", args[0], err, out)
		}
		return string(out)
	}
	run("migrate")
	run("admin", "user", "create", "--admin", "--username", "boss", "--password", "correct-horse", "--email", "boss@example.com", "--must-change-password=false")
	server := command("web")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() }) // the test's context has ended it
	g := &realGitea{url: "http://127.0.0.1:" + port, run: run}
	g.token = g.tokenOf(t, "boss")
	g.await(t, &log)
	return g
}

func (g *realGitea) tokenOf(t *testing.T, name string) string {
	t.Helper()
	said := strings.Fields(g.run("admin", "user", "generate-access-token", "--username", name, "--raw", "--scopes", "all"))
	if len(said) == 0 {
		t.Fatal("gitea gives no token")
	}
	return said[len(said)-1] // the log comes before it
}

func (g *realGitea) await(t *testing.T, log *bytes.Buffer) {
	t.Helper()
	for range 300 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/api/v1/version", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("gitea does not answer:\n%s", log.String())
}

// do changes something at the server.
func (g *realGitea) do(t *testing.T, method, path string, body object) object {
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
	said, _ := io.ReadAll(resp.Body)
	if resp.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s: %s", method, path, resp.Status, said)
	}
	var out object
	_ = json.Unmarshal(said, &out)
	return out
}

const giteaRepos = 12

// fill makes an organization with repositories, one of them archived, one
// empty, one with more branches, and pull requests in the first.
func (g *realGitea) fill(t *testing.T) {
	t.Helper()
	g.do(t, http.MethodPost, "/orgs", object{"username": "acme", "visibility": "private"})
	for i := range giteaRepos {
		g.do(t, http.MethodPost, "/orgs/acme/repos", object{"name": repoName(i), "auto_init": i != empty, "default_branch": "main", "private": true})
	}
	g.do(t, http.MethodPost, "/repos/acme/"+repoName(0)+"/labels", object{"name": "preview", "color": "#00aabb"})
	label := g.do(t, http.MethodPost, "/repos/acme/"+repoName(0)+"/labels", object{"name": "fleet", "color": "#00aabb"})
	g.do(t, http.MethodPatch, "/repos/acme/"+repoName(archived), object{"archived": true})
	g.do(t, http.MethodPost, "/repos/acme/"+repoName(branchy)+"/branches", object{"new_branch_name": "feature/x", "old_branch_name": "main"})
	content := base64.StdEncoding.EncodeToString([]byte("kind: List\n"))
	g.do(t, http.MethodPost, "/repos/acme/"+repoName(branchy)+"/contents/deploy/app.yaml", object{"content": content, "branch": "feature/x", "message": "deploy"})
	for i := range 7 {
		branch := fmt.Sprintf("feature/pr-%d", i)
		g.do(t, http.MethodPost, "/repos/acme/"+repoName(0)+"/contents/"+strconv.Itoa(i), object{"content": content, "branch": "main", "new_branch": branch, "message": "change"})
		pr := object{"title": fmt.Sprintf("Change %d", i), "head": branch, "base": "main"}
		if i%2 == 0 {
			pr["labels"] = []any{label["id"]}
		}
		g.do(t, http.MethodPost, "/repos/acme/"+repoName(0)+"/pulls", pr)
	}
	g.do(t, http.MethodPatch, "/repos/acme/"+repoName(0)+"/pulls/3", object{"state": "closed"})
}

// client asks with the login of the server's owner, or another.
func (g *realGitea) client(token string) *Client {
	return New(Options{Secrets: func(context.Context, rutter.SecretRef) (string, error) { return token, nil }})
}

func (g *realGitea) query() rutter.ForgeQuery {
	return rutter.ForgeQuery{Provider: rutter.ForgeGitea, API: g.url, Owner: "acme", Token: loginRef}
}

func TestGitea(t *testing.T) {
	g := startGitea(t)
	g.fill(t)
	t.Run("repositories", g.testRepositories)
	t.Run("branches and paths", g.testPaths)
	t.Run("pull requests", g.testPullRequests)
	t.Run("logins", g.testLogins)
	t.Run("guests", g.testGuests)
}

func (g *realGitea) testRepositories(t *testing.T) {
	for _, withArchived := range []bool{false, true} {
		q := g.query()
		q.IncludeArchived = withArchived
		got, err := g.client(g.token).Repositories(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var want, names []string
		for i := range giteaRepos {
			if i != empty && (i != archived || withArchived) {
				want = append(want, repoName(i))
			}
		}
		for _, r := range got {
			names = append(names, r.Repository)
			if r.Organization != "acme" || len(r.SHA) != 40 || r.Branch != "main" || !strings.HasSuffix(r.URL, ":acme/"+r.Repository+".git") && !strings.HasSuffix(r.URL, "/acme/"+r.Repository+".git") {
				t.Errorf("%+v", r)
			}
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"fleet", "preview"}, got[0].Labels); diff != "" {
			t.Error(diff)
		}
	}
}

func (g *realGitea) testPaths(t *testing.T) {
	q := g.query()
	q.AllBranches = true
	c := g.client(g.token)
	all, err := c.Repositories(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range all {
		if r.Repository != repoName(branchy) {
			continue
		}
		found++
		for path, want := range map[string]bool{"deploy": r.Branch != "main", "deploy/app.yaml": r.Branch != "main", "README.md": true, "other": false} {
			if got, err := c.PathExists(t.Context(), q, r, path); err != nil || got != want {
				t.Errorf("%s in %s: %v, %v", path, r.Branch, got, err)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d branches", found)
	}
	if got, err := c.PathExists(t.Context(), q, rutter.ForgeRepo{Organization: "acme", Repository: "none", Branch: "main"}, "x"); err == nil {
		t.Errorf("a path in a repository that is not there: %v", got)
	}
}

func (g *realGitea) testPullRequests(t *testing.T) {
	q := g.query()
	q.Repo = repoName(0)
	for labels, want := range map[string][]int64{"": {1, 2, 4, 5, 6, 7}, "fleet": {1, 5, 7}, "preview": nil} {
		q.Labels = nil
		if labels != "" {
			q.Labels = []string{labels}
		}
		got, err := g.client(g.token).PullRequests(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var numbers []int64
		for _, pr := range got {
			numbers = append(numbers, pr.Number)
			if pr.Author != "boss" || pr.TargetBranch != "main" || len(pr.HeadSHA) != 40 || pr.Branch != fmt.Sprintf("feature/pr-%d", pr.Number-1) {
				t.Errorf("%+v", pr)
			}
		}
		if diff := cmp.Diff(want, numbers); diff != "" {
			t.Errorf("labels %q: %s", labels, diff)
		}
	}
	q.Repo = "none"
	if _, err := g.client(g.token).PullRequests(t.Context(), q); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Error(err)
	}
}

func (g *realGitea) testLogins(t *testing.T) {
	if _, err := g.client("0123456789012345678901234567890123456789").Repositories(t.Context(), g.query()); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("a wrong token: %v", err)
	}
	q := g.query()
	q.Token = nil
	if _, err := g.client("").Repositories(t.Context(), q); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("nobody sees a private organization: %v", err)
	}
	g.do(t, http.MethodPost, "/user/repos", object{"name": "own", "auto_init": true, "default_branch": "main"})
	q = g.query()
	q.Owner = "boss"
	if got, err := g.client(g.token).Repositories(t.Context(), q); err != nil || len(got) != 1 || got[0].Repository != "own" {
		t.Errorf("a user's: %v, %v", got, err)
	}
}

// A guest's list has holes: Gitea counts what it then leaves out, so pages are
// short, or empty, in the middle.
func (g *realGitea) testGuests(t *testing.T) {
	g.do(t, http.MethodPost, "/orgs", object{"username": "open", "visibility": "public"})
	for i := range 8 {
		g.do(t, http.MethodPost, "/orgs/open/repos", object{"name": repoName(i), "auto_init": true, "default_branch": "main", "private": true})
	}
	g.do(t, http.MethodPost, "/admin/users", object{"username": "guest", "email": "guest@example.com", "password": "correct-horse", "must_change_password": false})
	g.do(t, http.MethodPut, "/repos/open/"+repoName(6)+"/collaborators/guest", object{"permission": "read"})
	q := g.query()
	q.Owner = "open"
	got, err := g.client(g.tokenOf(t, "guest")).Repositories(t.Context(), q)
	if err != nil || len(got) != 1 || got[0].Repository != repoName(6) {
		t.Errorf("%v, %v", got, err)
	}
}
