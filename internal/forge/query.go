package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/remote"
)

// providerOf returns what speaks a provider's API.
func providerOf(name string) (provider, error) {
	switch name {
	case rutter.ForgeGitHub:
		return github{}, nil
	case rutter.ForgeGitLab:
		return gitlab{}, nil
	case rutter.ForgeGitea:
		return gitea{}, nil
	case rutter.ForgeBitbucketServer:
		return bitbucketServer{}, nil
	case rutter.ForgeBitbucketCloud:
		return bitbucketCloud{}, nil
	case rutter.ForgeAzureDevOps:
		return azure{}, nil
	case rutter.ForgeCodeCommit:
		return codeCommit{}, nil
	}
	return nil, rutter.Errorf(rutter.CodeUnsupported, "provider %s is not one of github, gitlab, gitea, bitbucketServer, bitbucket, azureDevOps, awsCodeCommit", quote(name))
}

// parseAPI reads the address of an API: what follows its host is the beginning
// of every path, so it has neither a query nor a login.
func parseAPI(provider, text string) (*url.URL, error) {
	a, err := remote.ParseWeb(text)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: api: %w", provider, err)
	}
	u := a.URL()
	raw, err := url.Parse(strings.TrimSpace(text))
	if err != nil || raw.User != nil || raw.RawQuery != "" || raw.ForceQuery {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: api %s has a login or a query in it: write only where the API begins, and name the login's Secret", provider, quote(a.String()))
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// allowed tells whether the operator lets an API be asked.
func allowed(hosts []string, u *url.URL) bool {
	if len(hosts) == 0 {
		return true
	}
	return slices.ContainsFunc(hosts, func(entry string) bool {
		entry = strings.TrimSpace(entry)
		if !strings.Contains(entry, "://") {
			return strings.EqualFold(strings.TrimSuffix(strings.TrimRight(entry, "/"), ":443"), u.Host)
		}
		a, err := remote.ParseWeb(entry)
		if err != nil {
			return false
		}
		b := remote.Bound{Scheme: a.Scheme, Host: a.Host, Path: a.Path}
		return b.Holds(u)
	})
}

// name checks a word that becomes one part of a path.
func name(field, text string) error {
	switch {
	case text == "":
		return rutter.Errorf(rutter.CodeInvalid, "%s is empty: set it", field)
	case len(text) > 1024 || text == "." || text == ".." || strings.ContainsFunc(text, unsafeRune):
		return rutter.Errorf(rutter.CodeInvalid, "%s %s is no name that a hosting service gives: correct it", field, quote(text))
	}
	return nil
}

// segment checks a word that may have no slash in it either.
func segment(field, text string) error {
	if strings.Contains(text, "/") {
		return rutter.Errorf(rutter.CodeInvalid, "%s %s has a slash in it: write the name alone", field, quote(text))
	}
	return name(field, text)
}

func unsafeRune(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' }

// checkRepo looks at what came back from a caller: it becomes part of a path.
func checkRepo(repo rutter.ForgeRepo) error {
	if err := segment("repository", repo.Repository); err != nil {
		return err
	}
	for field, value := range map[string]string{"organization": repo.Organization, "repository_id": repo.RepositoryID} {
		if value != "" {
			if err := name(field, value); err != nil {
				return err
			}
		}
	}
	return name("branch", repo.Branch)
}

// cleanPath is a path in a repository without slashes around it; "" is its root.
func cleanPath(path string) (string, error) {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." {
			continue
		}
		if part == ".." || strings.ContainsFunc(part, unsafeRune) {
			return "", rutter.Errorf(rutter.CodeInvalid, "path %s leads out of the repository or has characters that no path has: write it from the repository's root", quote(path))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "/"), nil
}

// key is equal for equal questions by equal logins, with no event between them.
func (s *session) key(parts ...string) string {
	q, _ := json.Marshal(s.q) //nolint:errchkjson // plain data
	h := sha256.New()
	for _, part := range append(parts, string(q), s.login.digest, s.ca, strconv.FormatInt(s.heard.Load(), 10)) {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// pullRequestsOf names the repository of a query for people.
func pullRequestsOf(q rutter.ForgeQuery) string {
	var parts []string
	for _, part := range []string{q.Owner, q.Project, q.Repo} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "/")
}

// sortedRepos puts repositories in an order of their own: that of the service
// may change by itself.
func sortedRepos(repos []rutter.ForgeRepo) []rutter.ForgeRepo {
	sort.SliceStable(repos, func(i, j int) bool {
		a, b := repos[i], repos[j]
		if a.Organization != b.Organization {
			return a.Organization < b.Organization
		}
		if a.Repository != b.Repository {
			return a.Repository < b.Repository
		}
		return a.Branch < b.Branch
	})
	return repos
}

// chosen are the pull requests that have all labels, by number.
func chosen(all []rutter.ForgePullRequest, labels []string) []rutter.ForgePullRequest {
	kept := all[:0:0]
	for _, pr := range all {
		if !slices.ContainsFunc(labels, func(label string) bool { return !slices.Contains(pr.Labels, label) }) {
			kept = append(kept, pr)
		}
	}
	sort.SliceStable(kept, func(i, j int) bool { return kept[i].Number < kept[j].Number })
	return kept
}

// cloneURL chooses between the two addresses of a repository.
func cloneURL(q rutter.ForgeQuery, ssh, https string) (string, error) {
	switch q.CloneProtocol {
	case "", "ssh":
		if ssh == "" {
			return "", rutter.Errorf(rutter.CodeUnavailable, "a repository without an address for ssh: set cloneProtocol to https")
		}
		return ssh, nil
	case "https":
		if https == "" {
			return "", rutter.Errorf(rutter.CodeUnavailable, "a repository without an address for https: set cloneProtocol to ssh")
		}
		return https, nil
	}
	return "", rutter.Errorf(rutter.CodeInvalid, "cloneProtocol %s is not one that %s has: use ssh or https", quote(q.CloneProtocol), q.Provider)
}
