package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// SecretRef names a key of a Secret in the namespace of the set.
type SecretRef struct {
	SecretName string `json:"secretName"`
	Key        string `json:"key"`
}

// ConfigMapKeyRef names a key of a ConfigMap in the namespace of the set.
type ConfigMapKeyRef struct {
	ConfigMapName string `json:"configMapName"`
	Key           string `json:"key"`
}

// BasicAuthBitbucketServer is a user name and a password.
type BasicAuthBitbucketServer struct {
	Username    string     `json:"username"`
	PasswordRef *SecretRef `json:"passwordRef"`
}

// BearerTokenBitbucket is a token of Bitbucket Server.
type BearerTokenBitbucket struct {
	TokenRef *SecretRef `json:"tokenRef"`
}

// BearerTokenBitbucketCloud is a token of Bitbucket Cloud.
type BearerTokenBitbucketCloud struct {
	TokenRef *SecretRef `json:"tokenRef"`
}

// SCMProviderGenerator produces parameters from the repositories of an organisation.
type SCMProviderGenerator struct {
	Github          *SCMProviderGeneratorGithub          `json:"github,omitempty"`
	Gitlab          *SCMProviderGeneratorGitlab          `json:"gitlab,omitempty"`
	Gitea           *SCMProviderGeneratorGitea           `json:"gitea,omitempty"`
	Bitbucket       *SCMProviderGeneratorBitbucket       `json:"bitbucket,omitempty"`
	BitbucketServer *SCMProviderGeneratorBitbucketServer `json:"bitbucketServer,omitempty"`
	AzureDevOps     *SCMProviderGeneratorAzureDevOps     `json:"azureDevOps,omitempty"`
	AWSCodeCommit   *SCMProviderGeneratorAWSCodeCommit   `json:"awsCodeCommit,omitempty"`

	Filters []SCMProviderGeneratorFilter `json:"filters,omitempty"`
	// CloneProtocol is ssh or https, as the provider allows.
	CloneProtocol       string            `json:"cloneProtocol,omitempty"`
	RequeueAfterSeconds *int64            `json:"requeueAfterSeconds,omitempty"`
	Values              map[string]string `json:"values,omitempty"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// SCMProviderGeneratorGithub is an organisation on GitHub.
type SCMProviderGeneratorGithub struct {
	Organization         string     `json:"organization"`
	API                  string     `json:"api,omitempty"`
	TokenRef             *SecretRef `json:"tokenRef,omitempty"`
	AppSecretName        string     `json:"appSecretName,omitempty"`
	AllBranches          bool       `json:"allBranches,omitempty"`
	ExcludeArchivedRepos bool       `json:"excludeArchivedRepos,omitempty"`
}

// SCMProviderGeneratorGitlab is a group on GitLab.
type SCMProviderGeneratorGitlab struct {
	Group            string `json:"group"`
	IncludeSubgroups bool   `json:"includeSubgroups,omitempty"`
	// IncludeSharedProjects is true when it is absent.
	IncludeSharedProjects *bool            `json:"includeSharedProjects,omitempty"`
	API                   string           `json:"api,omitempty"`
	TokenRef              *SecretRef       `json:"tokenRef,omitempty"`
	AllBranches           bool             `json:"allBranches,omitempty"`
	Insecure              bool             `json:"insecure,omitempty"`
	CARef                 *ConfigMapKeyRef `json:"caRef,omitempty"`
	Topic                 string           `json:"topic,omitempty"`
	IncludeArchivedRepos  bool             `json:"includeArchivedRepos,omitempty"`
}

// SCMProviderGeneratorGitea is an owner on Gitea.
type SCMProviderGeneratorGitea struct {
	Owner                string     `json:"owner"`
	API                  string     `json:"api"`
	TokenRef             *SecretRef `json:"tokenRef,omitempty"`
	AllBranches          bool       `json:"allBranches,omitempty"`
	Insecure             bool       `json:"insecure,omitempty"`
	ExcludeArchivedRepos bool       `json:"excludeArchivedRepos,omitempty"`
}

// SCMProviderGeneratorBitbucket is a workspace on Bitbucket Cloud.
type SCMProviderGeneratorBitbucket struct {
	Owner          string     `json:"owner"`
	User           string     `json:"user"`
	AppPasswordRef *SecretRef `json:"appPasswordRef"`
	AllBranches    bool       `json:"allBranches,omitempty"`
}

// SCMProviderGeneratorBitbucketServer is a project on Bitbucket Server.
type SCMProviderGeneratorBitbucketServer struct {
	Project     string                    `json:"project"`
	API         string                    `json:"api"`
	BasicAuth   *BasicAuthBitbucketServer `json:"basicAuth,omitempty"`
	BearerToken *BearerTokenBitbucket     `json:"bearerToken,omitempty"`
	AllBranches bool                      `json:"allBranches,omitempty"`
	Insecure    bool                      `json:"insecure,omitempty"`
	CARef       *ConfigMapKeyRef          `json:"caRef,omitempty"`
}

// SCMProviderGeneratorAzureDevOps is a team project on Azure DevOps.
type SCMProviderGeneratorAzureDevOps struct {
	Organization   string     `json:"organization"`
	TeamProject    string     `json:"teamProject"`
	AccessTokenRef *SecretRef `json:"accessTokenRef"`
	API            string     `json:"api,omitempty"`
	AllBranches    bool       `json:"allBranches,omitempty"`
}

// SCMProviderGeneratorAWSCodeCommit is an account and region of CodeCommit.
type SCMProviderGeneratorAWSCodeCommit struct {
	TagFilters  []*TagFilter `json:"tagFilters,omitempty"`
	Role        string       `json:"role,omitempty"`
	Region      string       `json:"region,omitempty"`
	AllBranches bool         `json:"allBranches,omitempty"`
}

// TagFilter is one tag that a repository must have.
type TagFilter struct {
	Key   string `json:"key"`
	Value string `json:"value,omitempty"`
}

// SCMProviderGeneratorFilter is a conjunction of criteria on repositories and branches.
type SCMProviderGeneratorFilter struct {
	RepositoryMatch *string  `json:"repositoryMatch,omitempty"`
	LabelMatch      *string  `json:"labelMatch,omitempty"`
	BranchMatch     *string  `json:"branchMatch,omitempty"`
	PathsExist      []string `json:"pathsExist,omitempty"`
	PathsDoNotExist []string `json:"pathsDoNotExist,omitempty"`
}

// PullRequestGenerator produces parameters from the pull requests of a repository.
type PullRequestGenerator struct {
	Github          *PullRequestGeneratorGithub          `json:"github,omitempty"`
	Gitlab          *PullRequestGeneratorGitLab          `json:"gitlab,omitempty"`
	Gitea           *PullRequestGeneratorGitea           `json:"gitea,omitempty"`
	BitbucketServer *PullRequestGeneratorBitbucketServer `json:"bitbucketServer,omitempty"`
	Bitbucket       *PullRequestGeneratorBitbucket       `json:"bitbucket,omitempty"`
	AzureDevOps     *PullRequestGeneratorAzureDevOps     `json:"azuredevops,omitempty"`

	Filters []PullRequestGeneratorFilter `json:"filters,omitempty"`
	// ContinueOnRepoNotFoundError takes a repository that is gone as one without pull requests.
	ContinueOnRepoNotFoundError bool              `json:"continueOnRepoNotFoundError,omitempty"`
	RequeueAfterSeconds         *int64            `json:"requeueAfterSeconds,omitempty"`
	Values                      map[string]string `json:"values,omitempty"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// PullRequestGeneratorGithub is a repository on GitHub.
type PullRequestGeneratorGithub struct {
	Owner         string     `json:"owner"`
	Repo          string     `json:"repo"`
	API           string     `json:"api,omitempty"`
	TokenRef      *SecretRef `json:"tokenRef,omitempty"`
	AppSecretName string     `json:"appSecretName,omitempty"`
	Labels        []string   `json:"labels,omitempty"`
}

// PullRequestGeneratorGitLab is a project on GitLab.
type PullRequestGeneratorGitLab struct {
	// Project is an id or a path.
	Project  string     `json:"project"`
	API      string     `json:"api,omitempty"`
	TokenRef *SecretRef `json:"tokenRef,omitempty"`
	Labels   []string   `json:"labels,omitempty"`
	// PullRequestState is opened, closed, merged, locked, or empty for all.
	PullRequestState string           `json:"pullRequestState,omitempty"`
	Insecure         bool             `json:"insecure,omitempty"`
	CARef            *ConfigMapKeyRef `json:"caRef,omitempty"`
}

// PullRequestGeneratorGitea is a repository on Gitea.
type PullRequestGeneratorGitea struct {
	Owner    string     `json:"owner"`
	Repo     string     `json:"repo"`
	API      string     `json:"api"`
	TokenRef *SecretRef `json:"tokenRef,omitempty"`
	Insecure bool       `json:"insecure,omitempty"`
	Labels   []string   `json:"labels,omitempty"`
}

// PullRequestGeneratorBitbucketServer is a repository on Bitbucket Server.
type PullRequestGeneratorBitbucketServer struct {
	Project     string                    `json:"project"`
	Repo        string                    `json:"repo"`
	API         string                    `json:"api"`
	BasicAuth   *BasicAuthBitbucketServer `json:"basicAuth,omitempty"`
	BearerToken *BearerTokenBitbucket     `json:"bearerToken,omitempty"`
	Insecure    bool                      `json:"insecure,omitempty"`
	CARef       *ConfigMapKeyRef          `json:"caRef,omitempty"`
}

// PullRequestGeneratorBitbucket is a repository on Bitbucket Cloud.
type PullRequestGeneratorBitbucket struct {
	Owner       string                     `json:"owner"`
	Repo        string                     `json:"repo"`
	API         string                     `json:"api,omitempty"`
	BasicAuth   *BasicAuthBitbucketServer  `json:"basicAuth,omitempty"`
	BearerToken *BearerTokenBitbucketCloud `json:"bearerToken,omitempty"`
}

// PullRequestGeneratorAzureDevOps is a repository on Azure DevOps.
type PullRequestGeneratorAzureDevOps struct {
	Organization string     `json:"organization"`
	Project      string     `json:"project"`
	Repo         string     `json:"repo"`
	API          string     `json:"api,omitempty"`
	TokenRef     *SecretRef `json:"tokenRef,omitempty"`
	Labels       []string   `json:"labels,omitempty"`
}

// PullRequestGeneratorFilter is a conjunction of criteria on pull requests.
type PullRequestGeneratorFilter struct {
	BranchMatch       *string `json:"branchMatch,omitempty"`
	TargetBranchMatch *string `json:"targetBranchMatch,omitempty"`
	TitleMatch        *string `json:"titleMatch,omitempty"`
}
