package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AppProject limits what its Applications may use and where they may go
// (reference 6.1).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=appprojects,shortName=appproj;appprojs
type AppProject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   AppProjectSpec   `json:"spec"`
	Status AppProjectStatus `json:"status,omitempty"`
}

// AppProjectList is a list of AppProjects.
//
// +kubebuilder:object:root=true
type AppProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []AppProject `json:"items"`
}

// AppProjectSpec is what a project allows.
type AppProjectSpec struct {
	SourceRepos  []string                 `json:"sourceRepos,omitempty"`
	Destinations []ApplicationDestination `json:"destinations,omitempty"`
	// +kubebuilder:validation:MaxLength=255
	Description                string                       `json:"description,omitempty"`
	Roles                      []ProjectRole                `json:"roles,omitempty"`
	ClusterResourceWhitelist   []ClusterResourceRestriction `json:"clusterResourceWhitelist,omitempty"`
	NamespaceResourceBlacklist []GroupKind                  `json:"namespaceResourceBlacklist,omitempty"`
	OrphanedResources          *OrphanedResources           `json:"orphanedResources,omitempty"`
	SyncWindows                []SyncWindow                 `json:"syncWindows,omitempty"`
	// NamespaceResourceWhitelist: absent allows all kinds, an empty list none.
	NamespaceResourceWhitelist      *[]GroupKind                           `json:"namespaceResourceWhitelist,omitempty"`
	SignatureKeys                   []SignatureKey                         `json:"signatureKeys,omitempty"`
	ClusterResourceBlacklist        []ClusterResourceRestriction           `json:"clusterResourceBlacklist,omitempty"`
	SourceNamespaces                []string                               `json:"sourceNamespaces,omitempty"`
	PermitOnlyProjectScopedClusters bool                                   `json:"permitOnlyProjectScopedClusters,omitempty"`
	DestinationServiceAccounts      []ApplicationDestinationServiceAccount `json:"destinationServiceAccounts,omitempty"`
	SourceIntegrity                 *SourceIntegrity                       `json:"sourceIntegrity,omitempty"`
}

// GroupKind is a kind, by patterns.
type GroupKind struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
}

// ClusterResourceRestriction is a cluster-scoped kind, and maybe names of it, by patterns.
type ClusterResourceRestriction struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name,omitempty"`
}

// ProjectRole grants rights within the project.
type ProjectRole struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Policies    []string   `json:"policies,omitempty"`
	JWTTokens   []JWTToken `json:"jwtTokens,omitempty"`
	Groups      []string   `json:"groups,omitempty"`
}

// JWTToken is an issued token, without its secret.
type JWTToken struct {
	IssuedAt  int64  `json:"iat"`
	ExpiresAt int64  `json:"exp,omitempty"`
	ID        string `json:"id,omitempty"`
}

// OrphanedResources turns the search for unmanaged objects on by being there.
type OrphanedResources struct {
	Warn   *bool                 `json:"warn,omitempty"`
	Ignore []OrphanedResourceKey `json:"ignore,omitempty"`
}

// OrphanedResourceKey is an object that is no orphan, by patterns.
type OrphanedResourceKey struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Name  string `json:"name,omitempty"`
}

// SyncWindow is a time in which syncs are allowed or denied (reference 2.13).
type SyncWindow struct {
	Kind           string   `json:"kind,omitempty"`
	Schedule       string   `json:"schedule,omitempty"`
	Duration       string   `json:"duration,omitempty"`
	Applications   []string `json:"applications,omitempty"`
	Namespaces     []string `json:"namespaces,omitempty"`
	Clusters       []string `json:"clusters,omitempty"`
	ManualSync     bool     `json:"manualSync,omitempty"`
	TimeZone       string   `json:"timeZone,omitempty"`
	UseAndOperator bool     `json:"andOperator,omitempty"`
	// +kubebuilder:validation:MaxLength=255
	Description string `json:"description,omitempty"`
	SyncOverrun bool   `json:"syncOverrun,omitempty"`
}

// SignatureKey is a key whose signatures are accepted; deprecated.
type SignatureKey struct {
	KeyID string `json:"keyID"`
}

// ApplicationDestinationServiceAccount is whose identity syncs use at a destination.
type ApplicationDestinationServiceAccount struct {
	Server                string `json:"server"`
	Namespace             string `json:"namespace,omitempty"`
	DefaultServiceAccount string `json:"defaultServiceAccount"`
}

// SourceIntegrity says which commits must be signed (reference 6.7).
type SourceIntegrity struct {
	Git *SourceIntegrityGit `json:"git,omitempty"`
}

// SourceIntegrityGit are the rules for Git.
type SourceIntegrityGit struct {
	Policies []SourceIntegrityGitPolicy `json:"policies,omitempty"`
}

// SourceIntegrityGitPolicy is one rule for some repositories.
type SourceIntegrityGitPolicy struct {
	Repos []SourceIntegrityGitRepo `json:"repos,omitempty"`
	GPG   *SourceIntegrityGitGPG   `json:"gpg,omitempty"`
}

// SourceIntegrityGitRepo is a repository, by a pattern.
type SourceIntegrityGitRepo struct {
	URL string `json:"url"`
}

// SourceIntegrityGitGPG is the mode (none, head, strict) and the accepted keys.
type SourceIntegrityGitGPG struct {
	Mode string   `json:"mode,omitempty"`
	Keys []string `json:"keys,omitempty"`
}

// AppProjectStatus holds the tokens that were issued.
type AppProjectStatus struct {
	JWTTokensByRole map[string]JWTTokens `json:"jwtTokensByRole,omitempty"`
}

// JWTTokens is a list of tokens.
type JWTTokens struct {
	Items []JWTToken `json:"items,omitempty"`
}
