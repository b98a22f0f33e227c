package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

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
			w.Header().Set("X-Ms-Continuationtoken", fmt.Sprint(at+1))
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
		_ = json.Unmarshal(body, &in) //nolint:musttag // the names are the service's
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
