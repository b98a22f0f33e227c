package generate

import (
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// asker turns the provider of a generator into a question.
type asker struct {
	// producer names the generator in errors; namespace is that of the set, in
	// which the Secrets are.
	producer, namespace string
	providers           []string
	query               rutter.ForgeQuery
	// missing are required fields that are empty.
	missing []string
}

// provider notes a provider that is set, and what it must say.
func (a *asker) provider(name string, q rutter.ForgeQuery, required map[string]string) {
	a.providers = append(a.providers, name)
	a.query = q
	for _, field := range sortedKeys(required) {
		if required[field] == "" {
			a.missing = append(a.missing, name+"."+field)
		}
	}
}

// done is the question, or what is wrong with how it was put.
func (a *asker) done(known string) (rutter.ForgeQuery, error) {
	switch {
	case len(a.providers) == 0:
		return rutter.ForgeQuery{}, rutter.Errorf(rutter.CodeInvalid, "%s: no provider is set; set one of %s", a.producer, known)
	case len(a.providers) > 1:
		return rutter.ForgeQuery{}, rutter.Errorf(rutter.CodeInvalid, "%s: has the providers %s; write one generator for each",
			a.producer, strings.Join(a.providers, " and "))
	case len(a.missing) > 0:
		return rutter.ForgeQuery{}, rutter.Errorf(rutter.CodeInvalid, "%s.%s: is empty", a.producer, a.missing[0])
	}
	return a.query, nil
}

func (a *asker) secret(ref *v1alpha1.SecretRef) *rutter.SecretRef {
	if ref == nil {
		return nil
	}
	return &rutter.SecretRef{Namespace: a.namespace, Name: ref.SecretName, Key: ref.Key}
}

func (a *asker) configMap(ref *v1alpha1.ConfigMapKeyRef) *rutter.SecretRef {
	if ref == nil {
		return nil
	}
	return &rutter.SecretRef{Namespace: a.namespace, Name: ref.ConfigMapName, Key: ref.Key}
}

// basic puts a user name and a password into the question.
func (a *asker) basic(q *rutter.ForgeQuery, auth *v1alpha1.BasicAuthBitbucketServer) {
	if auth != nil {
		q.User, q.Password = auth.Username, a.secret(auth.PasswordRef)
	}
}

// cloneProtocols are those of each provider; the others have ssh and https.
var cloneProtocols = map[string][]string{
	rutter.ForgeAzureDevOps: {"https"},
	rutter.ForgeCodeCommit:  {"https", "ssh", "https-fips"},
}

// repositoryQuery is the question of an scmProvider generator. Only GitLab
// leaves archived repositories out unless it is told otherwise.
func repositoryQuery(producer, namespace string, g *v1alpha1.SCMProviderGenerator) (rutter.ForgeQuery, error) {
	a := asker{producer: producer, namespace: namespace}
	a.repositoryHosts(g)
	a.repositoryServers(g)
	q, err := a.done("github, gitlab, gitea, bitbucketServer, bitbucket, azureDevOps, awsCodeCommit")
	if err != nil {
		return q, err
	}
	allowed, ok := cloneProtocols[q.Provider]
	if !ok {
		allowed = []string{"ssh", "https"}
	}
	if g.CloneProtocol != "" && !slices.Contains(allowed, g.CloneProtocol) {
		return q, rutter.Errorf(rutter.CodeInvalid, "%s.cloneProtocol: %s has no %q; use %s",
			producer, q.Provider, g.CloneProtocol, strings.Join(allowed, " or "))
	}
	q.CloneProtocol = g.CloneProtocol
	return q, nil
}

// repositoryHosts are the services that everybody shares.
func (a *asker) repositoryHosts(g *v1alpha1.SCMProviderGenerator) {
	if p := g.Github; p != nil {
		a.provider("github", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: p.API, Owner: p.Organization, Token: a.secret(p.TokenRef),
			AppSecret: p.AppSecretName, AllBranches: p.AllBranches, IncludeArchived: !p.ExcludeArchivedRepos},
			map[string]string{"organization": p.Organization})
	}
	if p := g.Gitlab; p != nil {
		a.provider("gitlab", rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: p.API, Owner: p.Group, Token: a.secret(p.TokenRef),
			AllBranches: p.AllBranches, IncludeArchived: p.IncludeArchivedRepos, IncludeSubgroups: p.IncludeSubgroups,
			IncludeShared: p.IncludeSharedProjects == nil || *p.IncludeSharedProjects, Topic: p.Topic,
			Insecure: p.Insecure, CA: a.configMap(p.CARef)}, map[string]string{"group": p.Group})
	}
	if p := g.Bitbucket; p != nil {
		a.provider("bitbucket", rutter.ForgeQuery{Provider: rutter.ForgeBitbucketCloud, Owner: p.Owner, User: p.User,
			Password: a.secret(p.AppPasswordRef), AllBranches: p.AllBranches, IncludeArchived: true}, map[string]string{"owner": p.Owner})
	}
	if p := g.AzureDevOps; p != nil {
		a.provider("azureDevOps", rutter.ForgeQuery{Provider: rutter.ForgeAzureDevOps, API: p.API, Owner: p.Organization, Project: p.TeamProject,
			Token: a.secret(p.AccessTokenRef), AllBranches: p.AllBranches, IncludeArchived: true},
			map[string]string{"organization": p.Organization, "teamProject": p.TeamProject})
	}
	if p := g.AWSCodeCommit; p != nil {
		q := rutter.ForgeQuery{Provider: rutter.ForgeCodeCommit, Region: p.Region, Role: p.Role, AllBranches: p.AllBranches, IncludeArchived: true}
		for _, f := range p.TagFilters {
			if f != nil {
				if q.TagFilters == nil {
					q.TagFilters = map[string]string{}
				}
				q.TagFilters[f.Key] = f.Value
			}
		}
		a.provider("awsCodeCommit", q, nil)
	}
}

// repositoryServers are the services that their users run.
func (a *asker) repositoryServers(g *v1alpha1.SCMProviderGenerator) {
	if p := g.Gitea; p != nil {
		a.provider("gitea", rutter.ForgeQuery{Provider: rutter.ForgeGitea, API: p.API, Owner: p.Owner, Token: a.secret(p.TokenRef),
			AllBranches: p.AllBranches, IncludeArchived: !p.ExcludeArchivedRepos, Insecure: p.Insecure},
			map[string]string{"owner": p.Owner, "api": p.API})
	}
	if p := g.BitbucketServer; p != nil {
		q := rutter.ForgeQuery{Provider: rutter.ForgeBitbucketServer, API: p.API, Owner: p.Project, AllBranches: p.AllBranches,
			IncludeArchived: true, Insecure: p.Insecure, CA: a.configMap(p.CARef)}
		a.basic(&q, p.BasicAuth)
		if p.BearerToken != nil {
			q.Token = a.secret(p.BearerToken.TokenRef)
		}
		a.provider("bitbucketServer", q, map[string]string{"project": p.Project, "api": p.API})
	}
}

// pullRequestQuery is the question of a pullRequest generator.
func pullRequestQuery(producer, namespace string, g *v1alpha1.PullRequestGenerator) (rutter.ForgeQuery, error) {
	a := asker{producer: producer, namespace: namespace}
	if err := a.pullRequestHosts(g); err != nil {
		return rutter.ForgeQuery{}, err
	}
	a.pullRequestServers(g)
	return a.done("github, gitlab, gitea, bitbucketServer, bitbucket, azuredevops")
}

func (a *asker) pullRequestHosts(g *v1alpha1.PullRequestGenerator) error {
	if p := g.Github; p != nil {
		a.provider("github", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: p.API, Owner: p.Owner, Repo: p.Repo, Token: a.secret(p.TokenRef),
			AppSecret: p.AppSecretName, Labels: p.Labels}, map[string]string{"owner": p.Owner, "repo": p.Repo})
	}
	if p := g.Gitlab; p != nil {
		switch p.PullRequestState {
		case "", "opened", "closed", "merged", "locked":
		default:
			return rutter.Errorf(rutter.CodeInvalid, "%s.gitlab.pullRequestState: %q is not opened, closed, merged or locked; leave it out for all",
				a.producer, p.PullRequestState)
		}
		a.provider("gitlab", rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: p.API, Project: p.Project, Token: a.secret(p.TokenRef),
			Labels: p.Labels, State: p.PullRequestState, Insecure: p.Insecure, CA: a.configMap(p.CARef)}, map[string]string{"project": p.Project})
	}
	if p := g.Bitbucket; p != nil {
		q := rutter.ForgeQuery{Provider: rutter.ForgeBitbucketCloud, API: p.API, Owner: p.Owner, Repo: p.Repo}
		a.basic(&q, p.BasicAuth)
		if p.BearerToken != nil {
			q.Token = a.secret(p.BearerToken.TokenRef)
		}
		a.provider("bitbucket", q, map[string]string{"owner": p.Owner, "repo": p.Repo})
	}
	if p := g.AzureDevOps; p != nil {
		a.provider("azuredevops", rutter.ForgeQuery{Provider: rutter.ForgeAzureDevOps, API: p.API, Owner: p.Organization, Project: p.Project, Repo: p.Repo,
			Token: a.secret(p.TokenRef), Labels: p.Labels},
			map[string]string{"organization": p.Organization, "project": p.Project, "repo": p.Repo})
	}
	return nil
}

func (a *asker) pullRequestServers(g *v1alpha1.PullRequestGenerator) {
	if p := g.Gitea; p != nil {
		a.provider("gitea", rutter.ForgeQuery{Provider: rutter.ForgeGitea, API: p.API, Owner: p.Owner, Repo: p.Repo, Token: a.secret(p.TokenRef),
			Labels: p.Labels, Insecure: p.Insecure}, map[string]string{"owner": p.Owner, "repo": p.Repo, "api": p.API})
	}
	if p := g.BitbucketServer; p != nil {
		q := rutter.ForgeQuery{Provider: rutter.ForgeBitbucketServer, API: p.API, Owner: p.Project, Repo: p.Repo, Insecure: p.Insecure, CA: a.configMap(p.CARef)}
		a.basic(&q, p.BasicAuth)
		if p.BearerToken != nil {
			q.Token = a.secret(p.BearerToken.TokenRef)
		}
		a.provider("bitbucketServer", q, map[string]string{"project": p.Project, "repo": p.Repo, "api": p.API})
	}
}
