package httpapi

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/rutterhq/rutter"
)

// Place is a repository at a hosting service, as its webhook names it.
type Place struct {
	// Provider is one of rutter's hosting services; empty when it is not one that is asked.
	Provider string
	// Host is that of the service's own pages, in lower case and without a port;
	// empty when not told.
	Host string
	// Owner is the owner, the group with those above it, the project's key at
	// Bitbucket Server, or the organization at Azure DevOps.
	Owner string
	// Project is the team project of Azure DevOps.
	Project string
	Repo    string
	// ID is GitLab's number of the project.
	ID string
}

// PullRequest is a change of a pull request that may change a list of them.
type PullRequest struct {
	At Place
	// Number is for people.
	Number int64
}

// Concerns reports whether the change can be in the answer to a question for
// pull requests: the same service, host and repository, in whatever case.
func (p PullRequest) Concerns(q rutter.ForgeQuery, pullRequests bool) bool {
	at := p.At
	if !pullRequests || !at.hosts(q) {
		return false
	}
	switch at.Provider {
	case rutter.ForgeGitLab:
		project, err := url.PathUnescape(q.Project)
		if err != nil {
			project = q.Project
		}
		return project == at.ID || strings.EqualFold(project, at.Owner+"/"+at.Repo)
	case rutter.ForgeAzureDevOps:
		return (at.Owner == "" || strings.EqualFold(q.Owner, at.Owner)) && strings.EqualFold(q.Project, at.Project) && strings.EqualFold(q.Repo, at.Repo)
	default:
		return strings.EqualFold(q.Owner, at.Owner) && strings.EqualFold(q.Repo, at.Repo)
	}
}

// Lists reports whether the push can have changed the answer to a question for
// repositories: it names the head of a branch, and its owner's list has it.
func (p Push) Lists(q rutter.ForgeQuery, pullRequests bool) bool {
	if pullRequests || !p.At.hosts(q) || strings.HasPrefix(p.Ref, "refs/tags/") {
		return false
	}
	short := strings.TrimPrefix(p.Ref, "refs/heads/")
	if p.Ref != "" && p.DefaultBranch != "" && short != p.DefaultBranch && !q.AllBranches {
		return false
	}
	switch p.At.Provider {
	case rutter.ForgeGitLab:
		// A group by its number, and projects that others share with it, are not told.
		number := strings.Trim(q.Owner, "0123456789") == ""
		below := strings.HasPrefix(strings.ToLower(p.At.Owner)+"/", strings.ToLower(strings.Trim(q.Owner, "/"))+"/")
		return number || below && (q.IncludeSubgroups || strings.EqualFold(strings.Trim(q.Owner, "/"), p.At.Owner))
	case rutter.ForgeAzureDevOps:
		return (p.At.Owner == "" || strings.EqualFold(q.Owner, p.At.Owner)) && strings.EqualFold(q.Project, p.At.Project)
	default:
		return strings.EqualFold(q.Owner, p.At.Owner)
	}
}

// publicHosts are those of the services' own pages where a question names no API.
var publicHosts = map[string]string{
	rutter.ForgeGitHub: "github.com", rutter.ForgeGitLab: "gitlab.com",
	rutter.ForgeBitbucketCloud: "bitbucket.org", rutter.ForgeAzureDevOps: "dev.azure.com",
}

// hosts reports whether a question goes to the service that the place is at. An
// API that is asked by an address of inside the cluster may be any: a look-up
// is cheap, a missed one is not.
func (p Place) hosts(q rutter.ForgeQuery) bool {
	if p.Provider == "" || p.Provider != q.Provider {
		return false
	}
	api := publicHosts[p.Provider]
	if q.API != "" {
		u, err := url.Parse(q.API)
		if err != nil {
			return false
		}
		api = strings.TrimPrefix(strings.ToLower(u.Hostname()), "api.")
	}
	return p.Host == "" || api == "" || p.Host == api || isInternal(api)
}

// isInternal tells of names that the outside does not know.
func isInternal(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate()
	}
	if !strings.Contains(host, ".") {
		return true
	}
	for _, end := range []string{".svc", ".cluster.local", ".local", ".internal"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// placeOf is the place of a repository by the URL of its page and its full name.
func placeOf(provider, page, fullName string) Place {
	p := Place{Provider: provider, Host: hostOf(page)}
	if i := strings.LastIndexByte(fullName, '/'); i >= 0 {
		p.Owner, p.Repo = fullName[:i], fullName[i+1:]
	}
	return p
}

func hostOf(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
