package rutter

import "context"

// The hosting services that list repositories and pull requests (reference 5.6, 5.7).
const (
	ForgeGitHub          = "github"
	ForgeGitLab          = "gitlab"
	ForgeGitea           = "gitea"
	ForgeBitbucketServer = "bitbucketServer"
	ForgeBitbucketCloud  = "bitbucket"
	ForgeAzureDevOps     = "azureDevOps"
	ForgeCodeCommit      = "awsCodeCommit"
)

// SecretRef names one key of a Secret, or of a ConfigMap for certificates. It
// is only ever a name: what it holds is looked up by who sends it.
type SecretRef struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Key       string `json:"key,omitempty"`
}

// ForgeQuery asks a hosting service. Equal queries have equal answers for as
// long as one evaluation lasts. It holds no secrets, only where they lie.
type ForgeQuery struct {
	Provider string `json:"provider"`
	// API is the base URL of the service's API; empty means the public one.
	API string `json:"api,omitempty"`
	// Owner is the organization, group, owner or Bitbucket Server project; of
	// Azure DevOps the organization.
	Owner string `json:"owner,omitempty"`
	// Project is the team project of Azure DevOps, or the project (id or path) of
	// GitLab's merge requests.
	Project string `json:"project,omitempty"`
	// Repo is the repository whose pull requests are listed.
	Repo string `json:"repo,omitempty"`

	// AllBranches lists all branches of each repository, else the default one.
	AllBranches bool `json:"allBranches,omitempty"`
	// CloneProtocol is ssh, https or https-fips; empty is the provider's default.
	CloneProtocol    string            `json:"cloneProtocol,omitempty"`
	IncludeArchived  bool              `json:"includeArchived,omitempty"`
	IncludeSubgroups bool              `json:"includeSubgroups,omitempty"`
	IncludeShared    bool              `json:"includeShared,omitempty"`
	Topic            string            `json:"topic,omitempty"`
	Region           string            `json:"region,omitempty"`
	Role             string            `json:"role,omitempty"`
	TagFilters       map[string]string `json:"tagFilters,omitempty"`

	// Labels must all be on a pull request; State is GitLab's state filter.
	Labels []string `json:"labels,omitempty"`
	State  string   `json:"state,omitempty"`

	Insecure bool `json:"insecure,omitempty"`
	// CA is a ConfigMap key with certificates.
	CA *SecretRef `json:"ca,omitempty"`
	// Token is sent as the provider's token or bearer token; User and Password log
	// in by basic authentication; AppSecret names a repo-creds Secret with a GitHub App.
	Token     *SecretRef `json:"token,omitempty"`
	User      string     `json:"user,omitempty"`
	Password  *SecretRef `json:"password,omitempty"`
	AppSecret string     `json:"appSecret,omitempty"`
}

// ForgeRepo is one branch of one repository.
type ForgeRepo struct {
	Organization string
	Repository   string
	RepositoryID string
	URL          string
	Branch       string
	SHA          string
	Labels       []string
}

// ForgePullRequest is one pull or merge request.
type ForgePullRequest struct {
	Number       int64
	Title        string
	Branch       string
	TargetBranch string
	HeadSHA      string
	Author       string
	Labels       []string
}

// Forges lists what hosting services hold. An answer is complete or an error:
// CodeNotFound (the owner or repository itself), CodeForbidden (login, or a host that
// the operator does not allow), CodeUnavailable (no answer, quota, a page that
// is cut off or not what the API promises), CodeInvalid (the query).
type Forges interface {
	Repositories(ctx context.Context, q ForgeQuery) ([]ForgeRepo, error)
	PullRequests(ctx context.Context, q ForgeQuery) ([]ForgePullRequest, error)
	// PathExists reports whether a file or folder is in a branch of a repository.
	PathExists(ctx context.Context, q ForgeQuery, repo ForgeRepo, path string) (bool, error)
}
