package forge

import (
	"fmt"
	"net/http"
)

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
