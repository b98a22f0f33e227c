package forge

import (
	"context"
	"fmt"
	"net/http"

	"github.com/rutterhq/rutter"
)

func secrets(value string) func(context.Context, rutter.SecretRef) (string, error) {
	return func(_ context.Context, ref rutter.SecretRef) (string, error) {
		if ref.Name != "login" || ref.Key != "token" {
			return "", rutter.Errorf(rutter.CodeNotFound, "no Secret %q", ref.Name)
		}
		return value + "\n", nil
	}
}

var loginRef = &rutter.SecretRef{Namespace: "team", Name: "login", Key: "token"}

// providers are the tests' services, each after its provider's documentation.
func providers() []under {
	return []under{
		{
			name: "github", protocol: githubServer("/api/v3", "Bearer "+secretOf), org: "acme", archives: true, shas: true, linked: true,
			query:      rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "acme", Token: loginRef},
			repoLabels: []string{"fleet", "go"},
		},
		{
			name: "gitlab", protocol: gitlabServer(), org: "acme/team", archives: true, shas: true, linked: true,
			query:      rutter.ForgeQuery{Provider: rutter.ForgeGitLab, Owner: "acme/team", Token: loginRef, IncludeSubgroups: true, IncludeShared: true},
			repoLabels: []string{"fleet", "go"},
		},
		{
			name: "gitea", protocol: giteaServer(), org: "acme", archives: true, shas: true, linked: true,
			query:      rutter.ForgeQuery{Provider: rutter.ForgeGitea, Owner: "acme", Token: loginRef},
			repoLabels: []string{"bug", "fleet"},
		},
		{
			name: "bitbucketServer", protocol: bitbucketServerServer(), org: "ACME", suffix: "/rest", shas: true, noLabels: true,
			query: rutter.ForgeQuery{Provider: rutter.ForgeBitbucketServer, Owner: "ACME", User: "bot", Password: loginRef},
		},
		{
			name: "bitbucket", protocol: bitbucketCloudServer(), org: "acme", suffix: "/2.0", shas: true, noLabels: true,
			query: rutter.ForgeQuery{Provider: rutter.ForgeBitbucketCloud, Owner: "acme", Token: loginRef},
		},
		{
			name: "azureDevOps", protocol: azureServer(), org: "acme", shas: true, https: true,
			query: rutter.ForgeQuery{Provider: rutter.ForgeAzureDevOps, Owner: "acme", Project: "My Team", Token: loginRef},
		},
		{
			name: "awsCodeCommit", protocol: codeCommitServer(), org: "123456789012", noPulls: true, noLabels: true,
			query: rutter.ForgeQuery{Provider: rutter.ForgeCodeCommit, Region: "eu-central-1"},
		},
	}
}

func labelsOf(i int) []any {
	labels := []any{object{"name": "app"}}
	if i%2 == 0 {
		labels = append(labels, object{"name": "preview"})
	}
	return labels
}

// githubPullOf is of the form that Gitea has, too.
func githubPullOf(i int) any {
	branch := fmt.Sprintf("feature/pr-%d", i)
	return object{
		"number": i + 1, "title": fmt.Sprintf("Change %d", i), "state": "open", "user": object{"login": "ann"}, "labels": labelsOf(i),
		"head": object{"ref": branch, "sha": shaOf(repoName(0), branch), "repo": nil}, "base": object{"ref": "main", "sha": shaOf(repoName(0), "main")},
	}
}

func branchOf(repo, branch, id string) any {
	return object{"name": branch, "commit": object{id: shaOf(repo, branch)}, "protected": false}
}

func githubServer(prefix, authorization string) http.Handler {
	mux := http.NewServeMux()
	notFound := object{"message": "Not Found", "documentation_url": "https://docs.github.com/rest"}
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc("GET "+prefix+pattern, f)
	}
	handle("/users/acme", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, object{"login": "acme", "type": "Organization"})
	})
	handle("/users/ann", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, object{"login": "ann", "type": "User"}) })
	repo := func(owner string) func(int) any {
		return func(i int) any {
			return object{
				"id": 1000 + i, "name": repoName(i), "full_name": owner + "/" + repoName(i), "owner": object{"login": owner}, "default_branch": "main",
				"ssh_url": "git@example.com:" + owner + "/" + repoName(i) + ".git", "clone_url": "https://example.com/" + owner + "/" + repoName(i) + ".git",
				"archived": i == archived, "topics": []string{"fleet", "go"}, "private": true,
			}
		}
	}
	handle("/orgs/acme/repos", func(w http.ResponseWriter, r *http.Request) { pages(w, r, "per_page", manyRepos, repo("acme")) })
	// This list exists for organizations, too, and has only what is public.
	handle("/users/acme/repos", func(w http.ResponseWriter, r *http.Request) { pages(w, r, "per_page", 1, repo("acme")) })
	handle("/users/ann/repos", func(w http.ResponseWriter, r *http.Request) { pages(w, r, "per_page", 2, repo("ann")) })
	handle("/repos/{owner}/{repo}/branches", func(w http.ResponseWriter, r *http.Request) {
		all := branchesOf(repoIndex(r.PathValue("repo")))
		pages(w, r, "per_page", len(all), func(i int) any { return branchOf(r.PathValue("repo"), all[i], "sha") })
	})
	handle("/repos/{owner}/{repo}/branches/{branch}", func(w http.ResponseWriter, r *http.Request) {
		i := repoIndex(r.PathValue("repo"))
		switch {
		case i < 0:
			answer(w, 404, notFound)
		case i == empty:
			answer(w, 404, object{"message": "Branch not found"})
		default:
			answer(w, 200, branchOf(r.PathValue("repo"), r.PathValue("branch"), "sha"))
		}
	})
	handle("/repos/acme/{repo}/contents/{path...}", func(w http.ResponseWriter, r *http.Request) {
		if !hasPath(r.PathValue("path")) || r.URL.Query().Get("ref") == "" {
			answer(w, 404, notFound)
			return
		}
		answer(w, 200, object{"type": "file", "path": r.PathValue("path")})
	})
	handle("/repos/acme/"+repoName(0)+"/pulls", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("state") != "open" {
			answer(w, 422, object{"message": "state"})
			return
		}
		pages(w, r, "per_page", manyPulls, githubPullOf)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answer(w, 404, notFound) })
	return guard("Authorization", authorization, object{"message": "Bad credentials"}, mux)
}

func gitlabServer() http.Handler {
	mux := http.NewServeMux()
	const project, prefix = 500, "GET /api/v4"
	repo := func(i int) any {
		p := object{
			"id": project + i, "path": repoName(i), "path_with_namespace": "acme/team/" + repoName(i), "namespace": object{"full_path": "acme/team"},
			"default_branch": "main", "ssh_url_to_repo": "git@example.com:acme/team/" + repoName(i) + ".git",
			"http_url_to_repo": "https://example.com/acme/team/" + repoName(i) + ".git", "topics": []string{"fleet", "go"}, "archived": i == archived, "empty_repo": i == empty,
		}
		if i == empty {
			p["default_branch"] = nil
		}
		return p
	}
	mux.HandleFunc(prefix+"/groups/{group}/projects", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.PathValue("group") != "acme/team" || q.Get("include_subgroups") != "true" || q.Get("with_shared") != "true" {
			answer(w, 404, object{"message": "404 Group Not Found"})
			return
		}
		indices := []int{}
		for i := range manyRepos {
			if i != archived || q.Get("archived") != "false" {
				indices = append(indices, i)
			}
		}
		w.Header().Set("X-Total", fmt.Sprint(len(indices)))
		pages(w, r, "per_page", len(indices), func(i int) any { return repo(indices[i]) })
	})
	repoOf := func(r *http.Request) (string, bool) {
		var id int
		_, err := fmt.Sscanf(r.PathValue("id"), "%d", &id)
		name := repoName(id - project)
		return name, err == nil && repoIndex(name) >= 0
	}
	mux.HandleFunc(prefix+"/projects/{id}/repository/branches", func(w http.ResponseWriter, r *http.Request) {
		name, _ := repoOf(r)
		all := branchesOf(repoIndex(name))
		w.Header().Set("X-Total", fmt.Sprint(len(all)))
		pages(w, r, "per_page", len(all), func(i int) any { return branchOf(name, all[i], "id") })
	})
	mux.HandleFunc(prefix+"/projects/{id}/repository/branches/{branch}", func(w http.ResponseWriter, r *http.Request) {
		name, ok := repoOf(r)
		if !ok {
			answer(w, 404, object{"message": "404 Project Not Found"})
			return
		}
		answer(w, 200, branchOf(name, r.PathValue("branch"), "id"))
	})
	mux.HandleFunc(prefix+"/projects/{id}/repository/tree", func(w http.ResponseWriter, r *http.Request) {
		if path := r.URL.Query().Get("path"); path != "deploy" {
			answer(w, 404, object{"message": "404 invalid revision or path Not Found"})
			return
		}
		answer(w, 200, []any{object{"path": "deploy/app.yaml", "type": "blob"}})
	})
	mux.HandleFunc(prefix+"/projects/{id}/repository/files/{path}", func(w http.ResponseWriter, r *http.Request) {
		if path := r.PathValue("path"); path == "deploy" || !hasPath(path) {
			answer(w, 404, object{"message": "404 File Not Found"})
			return
		}
		answer(w, 200, object{"file_path": r.PathValue("path"), "content": "YQ=="})
	})
	mux.HandleFunc(prefix+"/projects/{id}/merge_requests", gitlabMergeRequests)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answer(w, 404, object{"error": "404 Not Found"}) })
	return guard("PRIVATE-TOKEN", secretOf, object{"message": "401 Unauthorized"}, mux)
}

func gitlabMergeRequests(w http.ResponseWriter, r *http.Request) {
	if id := r.PathValue("id"); id != "acme/team/"+repoName(0) && id != "500" {
		answer(w, 404, object{"message": "404 Project Not Found"})
		return
	}
	var indices []int
	for i := range manyPulls {
		if r.URL.Query().Get("labels") != "preview" || i%2 == 0 {
			indices = append(indices, i)
		}
	}
	w.Header().Set("X-Total", fmt.Sprint(len(indices)))
	pages(w, r, "per_page", len(indices), func(at int) any {
		i := indices[at]
		branch := fmt.Sprintf("feature/pr-%d", i)
		names := []string{}
		for _, l := range labelsOf(i) {
			names = append(names, l.(object)["name"].(string))
		}
		return object{
			"iid": i + 1, "id": 90000 + i, "title": fmt.Sprintf("Change %d", i), "state": "opened", "source_branch": branch, "target_branch": "main",
			"sha": shaOf(repoName(0), branch), "labels": names, "author": object{"username": "ann"},
		}
	})
}

func giteaServer() http.Handler {
	mux := http.NewServeMux()
	const prefix = "GET /api/v1"
	notFound := object{"message": "The target couldn't be found.", "url": "https://example.com/api/swagger", "errors": []any{}}
	total := func(w http.ResponseWriter, r *http.Request, n int, element func(int) any) {
		w.Header().Set("X-Total-Count", fmt.Sprint(n))
		pages(w, r, "limit", n, element)
	}
	repo := func(i int) any {
		return object{
			"id": 1000 + i, "name": repoName(i), "owner": object{"login": "acme"}, "default_branch": "main", "empty": i == empty, "archived": i == archived,
			"ssh_url": "git@example.com:acme/" + repoName(i) + ".git", "clone_url": "https://example.com/acme/" + repoName(i) + ".git",
		}
	}
	mux.HandleFunc(prefix+"/orgs/acme", func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, object{"id": 2, "username": "acme"}) })
	mux.HandleFunc(prefix+"/orgs/acme/repos", func(w http.ResponseWriter, r *http.Request) { total(w, r, manyRepos, repo) })
	mux.HandleFunc(prefix+"/repos/acme/{repo}/labels", func(w http.ResponseWriter, r *http.Request) {
		total(w, r, 2, func(i int) any { return object{"id": i + 1, "name": []string{"bug", "fleet"}[i]} })
	})
	mux.HandleFunc(prefix+"/repos/acme/{repo}/branches", func(w http.ResponseWriter, r *http.Request) {
		all := branchesOf(repoIndex(r.PathValue("repo")))
		total(w, r, len(all), func(i int) any { return branchOf(r.PathValue("repo"), all[i], "id") })
	})
	mux.HandleFunc(prefix+"/repos/acme/{repo}/branches/{branch...}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, branchOf(r.PathValue("repo"), r.PathValue("branch"), "id"))
	})
	mux.HandleFunc(prefix+"/repos/acme/{repo}/contents/{path...}", func(w http.ResponseWriter, r *http.Request) {
		if !hasPath(r.PathValue("path")) {
			answer(w, 404, notFound)
			return
		}
		answer(w, 200, object{"type": "file"})
	})
	mux.HandleFunc(prefix+"/repos/acme/"+repoName(0)+"/pulls", func(w http.ResponseWriter, r *http.Request) { total(w, r, manyPulls, githubPullOf) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answer(w, 404, notFound) })
	return guard("Authorization", "token "+secretOf, object{"message": "user does not exist [uid: 0, name: ]"}, mux)
}
