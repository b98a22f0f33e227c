package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

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
	mux.HandleFunc(prefix+"/projects/{id}/merge_requests", func(w http.ResponseWriter, r *http.Request) {
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
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { answer(w, 404, object{"error": "404 Not Found"}) })
	return guard("PRIVATE-TOKEN", secretOf, object{"message": "401 Unauthorized"}, mux)
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

func bitbucketServerServer() http.Handler {
	mux := http.NewServeMux()
	const prefix = "GET /rest/api/1.0/projects/ACME/repos"
	refuse := func(w http.ResponseWriter, exception string) {
		answer(w, 404, object{"errors": []any{object{"context": nil, "message": "It is not there.", "exceptionName": "com.atlassian.bitbucket." + exception}}})
	}
	part := func(w http.ResponseWriter, r *http.Request, n int, element func(int) any) {
		start, limit := intOf(r, "start", 0), intOf(r, "limit", 25)
		values := slice(n, start, limit, element)
		body := object{"size": len(values), "limit": limit, "start": start, "isLastPage": start+limit >= n, "values": values, "nextPageStart": nil}
		if start+limit < n {
			body["nextPageStart"] = start + limit
		}
		answer(w, 200, body)
	}
	branch := func(repo, name string) object {
		return object{"id": "refs/heads/" + name, "displayId": name, "type": "BRANCH", "latestCommit": shaOf(repo, name), "isDefault": name == "main"}
	}
	mux.HandleFunc(prefix, func(w http.ResponseWriter, r *http.Request) {
		part(w, r, manyRepos, func(i int) any {
			return object{"id": 1000 + i, "slug": repoName(i), "name": "App " + repoName(i), "project": object{"key": "ACME"}, "state": "AVAILABLE", "links": object{"clone": []any{
				object{"name": "http", "href": "https://example.com/scm/acme/" + repoName(i) + ".git"},
				object{"name": "ssh", "href": "ssh://git@example.com:7999/acme/" + repoName(i) + ".git"},
			}}}
		})
	})
	mux.HandleFunc(prefix+"/{repo}/branches/default", func(w http.ResponseWriter, r *http.Request) {
		switch i := repoIndex(r.PathValue("repo")); i {
		case empty:
			refuse(w, "repository.NoDefaultBranchException")
		case 10: // as a server that has not this question any more
			answer(w, 404, object{"message": "HTTP 404 Not Found"})
		default:
			answer(w, 200, branch(r.PathValue("repo"), "main"))
		}
	})
	mux.HandleFunc(prefix+"/{repo}/branches", func(w http.ResponseWriter, r *http.Request) {
		all := branchesOf(repoIndex(r.PathValue("repo")))
		part(w, r, len(all), func(i int) any { return branch(r.PathValue("repo"), all[i]) })
	})
	mux.HandleFunc(prefix+"/{repo}/browse/{path...}", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("at") != "refs/heads/main" && r.URL.Query().Get("at") != "refs/heads/feature/x":
			refuse(w, "commit.NoSuchCommitException")
		case !hasPath(r.PathValue("path")):
			refuse(w, "content.NoSuchPathException")
		default:
			answer(w, 200, object{"type": "FILE"})
		}
	})
	mux.HandleFunc(prefix+"/"+repoName(0)+"/pull-requests", func(w http.ResponseWriter, r *http.Request) {
		part(w, r, manyPulls, func(i int) any {
			name := fmt.Sprintf("feature/pr-%d", i)
			return object{
				"id": i + 1, "title": fmt.Sprintf("Change %d", i), "state": "OPEN", "fromRef": branch(repoName(0), name), "toRef": branch(repoName(0), "main"),
				"author": object{"user": object{"name": "ann"}},
			}
		})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, "project.NoSuchProjectException") })
	return guard("Authorization", basic("bot", secretOf), object{"errors": []any{object{"message": "Authentication failed."}}}, mux)
}

func bitbucketCloudServer() http.Handler {
	mux := http.NewServeMux()
	const prefix = "GET /2.0/repositories/acme"
	part := func(w http.ResponseWriter, r *http.Request, n int, element func(int) any) {
		page, size := intOf(r, "page", 1), intOf(r, "pagelen", 10)
		body := object{"pagelen": size, "page": page, "size": n, "values": slice(n, (page-1)*size, size, element)}
		if page*size < n {
			q := r.URL.Query()
			q.Set("page", fmt.Sprint(page+1))
			body["next"] = fmt.Sprintf("http://%s%s?%s", r.Host, r.URL.EscapedPath(), q.Encode())
		}
		answer(w, 200, body)
	}
	branch := func(repo, name string) any { return object{"name": name, "target": object{"hash": shaOf(repo, name)}} }
	mux.HandleFunc(prefix, func(w http.ResponseWriter, r *http.Request) {
		part(w, r, manyRepos, func(i int) any {
			repo := object{"uuid": fmt.Sprintf("{0000-%d}", i), "slug": repoName(i), "name": "App " + repoName(i), "mainbranch": object{"name": "main"}, "links": object{"clone": []any{
				object{"name": "https", "href": "https://example.com/acme/" + repoName(i) + ".git"},
				object{"name": "ssh", "href": "git@example.com:acme/" + repoName(i) + ".git"},
			}}}
			if i == empty {
				repo["mainbranch"] = nil
			}
			return repo
		})
	})
	mux.HandleFunc(prefix+"/{repo}/refs/branches", func(w http.ResponseWriter, r *http.Request) {
		all := branchesOf(repoIndex(r.PathValue("repo")))
		part(w, r, len(all), func(i int) any { return branch(r.PathValue("repo"), all[i]) })
	})
	mux.HandleFunc(prefix+"/{repo}/refs/branches/{branch...}", func(w http.ResponseWriter, r *http.Request) {
		answer(w, 200, branch(r.PathValue("repo"), r.PathValue("branch")))
	})
	mux.HandleFunc(prefix+"/{repo}/src/{sha}/{path...}", func(w http.ResponseWriter, r *http.Request) {
		if !hasPath(r.PathValue("path")) {
			answer(w, 404, object{"type": "error", "error": object{"message": "No such file or directory: " + r.PathValue("path")}})
			return
		}
		answer(w, 200, object{"type": "commit_file"})
	})
	mux.HandleFunc(prefix+"/"+repoName(0)+"/pullrequests", func(w http.ResponseWriter, r *http.Request) {
		if intOf(r, "pagelen", 10) > 50 {
			answer(w, 400, object{"type": "error", "error": object{"message": "Invalid pagelen"}})
			return
		}
		part(w, r, manyPulls, func(i int) any {
			name := fmt.Sprintf("feature/pr-%d", i)
			return object{
				"id": i + 1, "title": fmt.Sprintf("Change %d", i), "author": object{"nickname": "ann"},
				"source":      object{"branch": object{"name": name}, "commit": object{"hash": shaOf(repoName(0), name)[:12]}},
				"destination": object{"branch": object{"name": "main"}, "commit": object{"hash": shaOf(repoName(0), "main")[:12]}},
			}
		})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 404, object{"type": "error", "error": object{"message": "No workspace"}})
	})
	return guard("Authorization", "Bearer "+secretOf, object{"type": "error", "error": object{"message": "Token is invalid"}}, mux)
}

func azureServer() http.Handler {
	mux := http.NewServeMux()
	const prefix = "GET /acme/{project}/_apis/git/repositories"
	counted := func(w http.ResponseWriter, values []any) {
		answer(w, 200, object{"count": len(values), "value": values})
	}
	mux.HandleFunc(prefix, func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("project") != "My Team" {
			answer(w, 404, object{"typeKey": "ProjectDoesNotExistWithNameException", "message": "TF200016: The project does not exist."})
			return
		}
		counted(w, slice(manyRepos, 0, manyRepos, func(i int) any {
			repo := object{"id": fmt.Sprintf("id-%d", i), "name": repoName(i), "remoteUrl": "https://acme@example.com/acme/My%20Team/_git/" + repoName(i), "defaultBranch": "refs/heads/main", "isDisabled": false}
			if i == empty {
				delete(repo, "defaultBranch")
			}
			return repo
		}))
	})
	mux.HandleFunc(prefix+"/{id}/refs", func(w http.ResponseWriter, r *http.Request) {
		var i int
		_, _ = fmt.Sscanf(r.PathValue("id"), "id-%d", &i)
		var refs []any
		for _, b := range branchesOf(i) {
			if strings.HasPrefix("heads/"+b, r.URL.Query().Get("filter")) {
				refs = append(refs, object{"name": "refs/heads/" + b, "objectId": shaOf(repoName(i), b)})
			}
		}
		// One ref an answer, so that the token is needed.
		at := intOf(r, "continuationToken", 0)
		if at+1 < len(refs) {
			w.Header().Set("x-ms-continuationtoken", fmt.Sprint(at+1))
		}
		counted(w, slice(len(refs), at, 1, func(i int) any { return refs[i] }))
	})
	mux.HandleFunc(prefix+"/{id}/items", func(w http.ResponseWriter, r *http.Request) {
		if !hasPath(strings.TrimPrefix(r.URL.Query().Get("path"), "/")) {
			answer(w, 404, object{"typeKey": "GitItemNotFoundException", "message": "TF401174: The item could not be found."})
			return
		}
		answer(w, 200, object{"objectId": "1"})
	})
	mux.HandleFunc(prefix+"/"+repoName(0)+"/pullrequests", func(w http.ResponseWriter, r *http.Request) {
		counted(w, slice(manyPulls, intOf(r, "$skip", 0), intOf(r, "$top", 101), func(i int) any {
			branch := fmt.Sprintf("feature/pr-%d", i)
			return object{
				"pullRequestId": i + 1, "title": fmt.Sprintf("Change %d", i), "status": "active", "sourceRefName": "refs/heads/" + branch, "targetRefName": "refs/heads/main",
				"lastMergeSourceCommit": object{"commitId": shaOf(repoName(0), branch)}, "createdBy": object{"uniqueName": "ann@example.com"}, "labels": labelsOf(i),
			}
		}))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 404, object{"typeKey": "Unknown", "message": "TF: not there"})
	})
	// A refused login gets the page to sign in at, with a status that is no error.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != basic("", secretOf) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(http.StatusNonAuthoritativeInfo)
			_, _ = io.WriteString(w, "<!DOCTYPE html><html>Sign In</html>")
			return
		}
		if r.URL.Query().Get("api-version") == "" {
			answer(w, 400, object{"message": "api-version"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func identity(context.Context) (AWSKey, error) {
	return AWSKey{ID: "AKIDEXAMPLE", Secret: secretOf, Session: "session"}, nil
}

// codeCommitServer checks signatures by signing what it got itself.
func codeCommitServer() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		refuse := func(kind string) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.1")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(object{"__type": kind, "message": "refused"})
		}
		if !signedWell(r, body) {
			refuse("com.amazon.coral.service#InvalidSignatureException")
			return
		}
		var in struct {
			NextToken, PaginationToken, RepositoryName, FolderPath, CommitSpecifier string
			RepositoryNames                                                         []string
			TagFilters                                                              []struct {
				Key    string
				Values []string
			}
		}
		_ = json.Unmarshal(body, &in)
		at := 0
		_, _ = fmt.Sscanf(in.NextToken+in.PaginationToken, "token-%d", &at)
		token := func(n, size int) string {
			if at+size < n {
				return fmt.Sprintf("token-%d", at+size)
			}
			return ""
		}
		switch strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "CodeCommit_20150413.") {
		case "ListRepositories":
			out := object{"repositories": slice(manyRepos, at, 50, func(i int) any { return object{"repositoryName": repoName(i), "repositoryId": fmt.Sprintf("id-%d", i)} })}
			if next := token(manyRepos, 50); next != "" {
				out["nextToken"] = next
			}
			answer(w, 200, out)
		case "ResourceGroupsTaggingAPI_20170126.GetResources":
			if len(in.TagFilters) != 2 || in.TagFilters[0].Key != "fleet" || in.TagFilters[0].Values != nil || in.TagFilters[1].Values[0] != "prod" {
				refuse("InvalidParameterException")
				return
			}
			answer(w, 200, object{"PaginationToken": token(4, 2), "ResourceTagMappingList": slice(4, at, 2, func(i int) any {
				return object{"ResourceARN": "arn:aws:codecommit:eu-central-1:123456789012:" + repoName(i)}
			})})
		case "BatchGetRepositories":
			repos := []any{}
			for _, name := range in.RepositoryNames {
				repo := object{
					"accountId": "123456789012", "repositoryId": fmt.Sprintf("id-%d", repoIndex(name)), "repositoryName": name, "defaultBranch": "main",
					"cloneUrlHttp": "https://git-codecommit.eu-central-1.amazonaws.com/v1/repos/" + name, "cloneUrlSsh": "ssh://git-codecommit.eu-central-1.amazonaws.com/v1/repos/" + name,
				}
				if repoIndex(name) == empty {
					delete(repo, "defaultBranch")
				}
				repos = append(repos, repo)
			}
			answer(w, 200, object{"repositories": repos, "repositoriesNotFound": []any{}, "errors": []any{}})
		case "ListBranches":
			all := branchesOf(repoIndex(in.RepositoryName))
			if all == nil {
				all = []string{}
			}
			answer(w, 200, object{"branches": all})
		case "GetFolder":
			switch {
			case in.CommitSpecifier != "refs/heads/main" && in.CommitSpecifier != "refs/heads/feature/x":
				refuse("CommitDoesNotExistException")
			case in.FolderPath == "/":
				answer(w, 200, object{"folderPath": "", "files": []any{}, "subFolders": []any{object{"absolutePath": "deploy"}}})
			case in.FolderPath == "deploy":
				answer(w, 200, object{"folderPath": "deploy", "files": []any{object{"absolutePath": "deploy/app.yaml"}, object{"absolutePath": "deploy/ü n.yaml"}}})
			default:
				refuse("FolderDoesNotExistException")
			}
		default:
			refuse("UnknownOperationException")
		}
	})
}
