package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// outage is one way in which an input breaks.
type outage struct {
	how     string
	matches func(*http.Request) bool
	act     act
}

// byID is the set with generators that give values.id, beside a list of some
// elements that has nothing to do with what they ask.
func (s *scene) byID(generators string, list ...string) string {
	own := "    - list: {elements: ["
	for _, id := range list {
		own += "{values: {id: " + id + "}}, "
	}
	text := strings.ReplaceAll(s.text("GENERATORS", "", ""), "{{.name}}", "{{.values.id}}")
	return strings.Replace(text, "GENERATORS", generators+"\n"+own+"]}", 1)
}

// survive breaks the way to an input in every way in turn. The Applications of
// what cannot be asked stay as they are, those of the list come and change.
// again makes the set ask.
func (s *scene) survive(t *testing.T, generators string, at *breaker, outages []outage, frozen []string, again func()) {
	t.Helper()
	list := []string{"l0"}
	for i, o := range outages {
		f := at.swap(o.matches, o.act)
		if again != nil {
			again()
		}
		f.await(t, 1)
		s.awaitInputsFailed(t)
		list = append(list, fmt.Sprintf("l%d", i+1))
		s.change(t, s.byID(generators, list...))
		s.awaitSynced(t, list[i+1])
		s.awaitApps(t, append(slices.Clone(frozen), list...)...)
		s.deleted(t)
		t.Log("survived:", o.how)
	}
}

// listed are the elements that survive adds.
func listed(n int) []string {
	out := make([]string, n+1)
	for i := range out {
		out[i] = fmt.Sprintf("l%d", i)
	}
	return out
}

// TestGeneratorsB3GitDies has a set with two generators, and breaks the Git
// server of one of them.
func TestGeneratorsB3GitDies(t *testing.T) {
	t.Parallel()
	outages := []outage{
		{"the server dies in the middle of a fetch", about("/git-upload-pack"), cutAfter(60)},
		{"the server hangs up", anything, hangUp},
		{"the server answers 500", anything, fail(http.StatusInternalServerError)},
		{"the server answers with a page", anything, page},
		{"the server knows no such repository", anything, fail(http.StatusNotFound)},
	}
	s := start(t).scene(t, "b3", append(listed(len(outages)), "git-a", "git-b", "git-c")...)
	folders := s.w.repo(t, "b3-folders", tree{"env/a/x": "1", "env/b/x": "1"})
	server := breakHTTP(t, s.w.git.URL())
	url := strings.Replace(folders.url, s.w.git.URL(), server.server.URL, 1)
	git := `    - git: {repoURL: "` + url + `", revision: main, directories: [{path: env/*}], values: {id: 'git-{{.path.basename}}'}}`
	s.create(t, s.byID(git, "l0"))
	s.awaitSynced(t, "git-a", "git-b", "l0")

	n := 0
	s.survive(t, git, server, outages, []string{"git-a", "git-b"}, func() {
		n++
		files := tree{"env/c/x": fmt.Sprint(n)} // which cannot be seen, as little as that b is gone
		if n == 1 {
			files["env/b/x"] = ""
		}
		folders.commit(t, files)
		pushed(t, s.w.addr, url)
	})
	server.mend()
	s.awaitSynced(t, "git-c") // nobody does anything
	s.w.awaitGone(t, s.app("git-b"))
	s.awaitWell(t)
	s.deleted(t, "git-b")
}

// scmProvider asks a hosting service every second.
func (s *scene) scmProvider(api, org string) string {
	return s.vars().expand(`    - scmProvider: {gitea: {owner: ` + org + `, api: "` + api + `", tokenRef: {secretName: "${SET}-token", key: token}}, requeueAfterSeconds: 1, values: {id: 'scm-{{.repository}}'}}`)
}

// pullRequest asks a hosting service every second.
func (s *scene) pullRequest(api, org, repo string) string {
	return s.vars().expand(`    - pullRequest: {gitea: {owner: ` + org + `, repo: ` + repo + `, api: "` + api + `", tokenRef: {secretName: "${SET}-token", key: token}}, requeueAfterSeconds: 1, values: {id: 'pr-{{.number}}'}}`)
}

// secondPage is the one after the first of a list at Gitea.
func secondPage(r *http.Request) bool { return r.URL.Query().Get("page") == "2" }

// forgeOutages are the ways in which Gitea breaks.
func forgeOutages(list string) []outage {
	of := about(list)
	second := func(r *http.Request) bool { return of(r) && secondPage(r) }
	return []outage{
		{"500", anything, fail(http.StatusInternalServerError)},
		{"a page for people, with status 200", anything, page},
		{"half of a page of the list", second, tamper(half)},
		{"an answer that is cut off", of, cutAfter(40)},
		{"an empty page in the middle", second, tamper(func(*httptest.ResponseRecorder, string) string { return "[]" })},
		{"an empty page, and that there are no more", of, tamper(func(rec *httptest.ResponseRecorder, _ string) string {
			rec.Header().Set("Content-Type", "text/html")
			return "[]"
		})},
		{"null", of, tamper(func(*httptest.ResponseRecorder, string) string { return "null" })},
		{"404", anything, fail(http.StatusNotFound)},
		{"401", anything, fail(http.StatusUnauthorized)},
		{"429", anything, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "slow down", http.StatusTooManyRequests)
		}},
	}
}

// TestGeneratorsScmProviderRubbish has a hosting service that answers rubbish.
func TestGeneratorsScmProviderRubbish(t *testing.T) {
	t.Parallel()
	w := start(t)
	g := sharedGitea(t)
	outages := forgeOutages("/repos")
	s := w.scene(t, "scm", append(listed(len(outages)), "scm-r1", "scm-r2", "scm-r3", "scm-r4", "scm-r5", "scm-r6")...)
	org := unique("org")
	g.organization(t, org, 0, "r1", "r2", "r3", "r4", "r5")
	at := breakHTTP(t, g.url)
	s.create(t, g.tokenSecret(s.set+"-token"))
	scm := s.scmProvider(at.server.URL, org)
	s.create(t, s.byID(scm, "l0"))
	frozen := []string{"scm-r1", "scm-r2", "scm-r3", "scm-r4", "scm-r5"}
	s.awaitSynced(t, append(frozen, "l0")...)
	s.survive(t, scm, at, outages, frozen, nil)
	g.repository(t, org, "r6")
	at.mend()
	s.awaitSynced(t, "scm-r6")
	s.awaitWell(t)
	s.deleted(t)
}

// TestGeneratorsPullRequestRubbish has one that answers so for pull requests.
func TestGeneratorsPullRequestRubbish(t *testing.T) {
	t.Parallel()
	w := start(t)
	g := sharedGitea(t)
	outages := forgeOutages("/pulls")
	s := w.scene(t, "pull", append(listed(len(outages)), "pr-1", "pr-2", "pr-3")...)
	org := unique("org")
	g.organization(t, org, 3, "r1")
	at := breakHTTP(t, g.url)
	s.create(t, g.tokenSecret(s.set+"-token"))
	pulls := s.pullRequest(at.server.URL, org, "r1")
	s.create(t, s.byID(pulls, "l0"))
	frozen := []string{"pr-1", "pr-2", "pr-3"}
	s.awaitSynced(t, append(frozen, "l0")...)
	s.survive(t, pulls, at, outages, frozen, nil)
	g.do(t, http.MethodPatch, "/repos/"+org+"/r1/pulls/2", map[string]string{"state": "closed"})
	at.mend()
	s.w.awaitGone(t, s.app("pr-2"))
	s.awaitWell(t)
	s.deleted(t, "pr-2")
}

// parameters is a service behind plugin generators.
type parameters struct {
	mu  sync.Mutex
	ids []string
}

// ServeHTTP implements http.Handler.
func (p *parameters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer of-the-service" {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	items := []map[string]string{}
	for _, id := range p.ids {
		items = append(items, map[string]string{"id": id})
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]any{"output": map[string]any{"parameters": items}}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (p *parameters) set(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = ids
}

// service starts a service with a breaker before it, and tells the control
// plane of it.
func (s *scene) service(t *testing.T, ids ...string) (*parameters, *breaker) {
	t.Helper()
	p := &parameters{ids: ids}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	at := breakHTTP(t, server.URL)
	s.create(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: '${SET}-service', labels: {app.kubernetes.io/part-of: argocd}}\nstringData: {token: of-the-service}\n")
	s.create(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${SET}-service'}\ndata: {baseUrl: '"+at.server.URL+"', token: '$${SET}-service:token', requestTimeout: '2'}\n")
	return p, at
}

// plugin asks the service every second.
func (s *scene) plugin() string {
	return s.vars().expand(`    - plugin: {configMapRef: {name: "${SET}-service"}, requeueAfterSeconds: 1, values: {id: 'plugin-{{.id}}'}}`)
}

// TestGeneratorsPluginRubbish has a service of parameters that breaks.
func TestGeneratorsPluginRubbish(t *testing.T) {
	t.Parallel()
	says := func(text string) act {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text)
		}
	}
	outages := []outage{
		{"500", anything, fail(http.StatusInternalServerError)},
		{"404", anything, fail(http.StatusNotFound)},
		{"a page for people, with status 200", anything, page},
		{"half of an answer", anything, tamper(half)},
		{"an answer that is cut off", anything, cutAfter(20)},
		{"no connection", anything, hangUp},
		{"nothing", anything, says("")},
		{"no output", anything, says("{}")},
		{"no parameters", anything, says(`{"output":{}}`)},
		{"null for parameters", anything, says(`{"output":{"parameters":null}}`)},
		{"no answer in time", anything, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			select {
			case <-r.Context().Done():
			case <-time.After(patience):
			}
		}},
	}
	s := start(t).scene(t, "plugin", append(listed(len(outages)), "plugin-p", "plugin-q", "plugin-r")...)
	service, at := s.service(t, "p", "q")
	s.create(t, s.byID(s.plugin(), "l0"))
	s.awaitSynced(t, "plugin-p", "plugin-q", "l0")
	s.survive(t, s.plugin(), at, outages, []string{"plugin-p", "plugin-q"}, nil)
	service.set("q", "r")
	at.mend()
	s.awaitSynced(t, "plugin-r")
	s.w.awaitGone(t, s.app("plugin-p"))
	s.awaitWell(t)
	s.deleted(t, "plugin-p")
}
