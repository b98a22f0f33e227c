package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Application declares which sources, rendered how, belong to which cluster
// and namespace, and how they are kept equal (reference 1.1).
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=applications,shortName=app;apps
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Sync Status",type=string,JSONPath=`.status.sync.status`
// +kubebuilder:printcolumn:name="Health Status",type=string,JSONPath=`.status.health.status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.sync.revision`,priority=10
// +kubebuilder:printcolumn:name="Project",type=string,JSONPath=`.spec.project`,priority=10
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ApplicationSpec   `json:"spec"`
	Status ApplicationStatus `json:"status,omitempty"`
	// Operation asks for a sync; it is removed when that has ended.
	Operation *Operation `json:"operation,omitempty"`
}

// ApplicationList is a list of Applications.
//
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Application `json:"items"`
}

// ApplicationSpec is what a user declares.
type ApplicationSpec struct {
	// Source is where the manifests are; ignored when Sources is not empty.
	Source *ApplicationSource `json:"source,omitempty"`
	// Destination is required; without it the application says so in a condition.
	//
	// +optional
	Destination ApplicationDestination `json:"destination"`
	// Project is the AppProject that limits the application; empty means default.
	Project           string                      `json:"project,omitempty"`
	SyncPolicy        *SyncPolicy                 `json:"syncPolicy,omitempty"`
	IgnoreDifferences []ResourceIgnoreDifferences `json:"ignoreDifferences,omitempty"`
	// Info is shown to people and has no effect.
	Info []Info `json:"info,omitempty"`
	// RevisionHistoryLimit is how many entries of status.history are kept; default 10.
	RevisionHistoryLimit *int64              `json:"revisionHistoryLimit,omitempty"`
	Sources              []ApplicationSource `json:"sources,omitempty"`
	SourceHydrator       *SourceHydrator     `json:"sourceHydrator,omitempty"`
}

// Info is a name and a value for people.
type Info struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ApplicationDestination is the cluster, by exactly one of server and name, and
// the namespace of objects that have none.
type ApplicationDestination struct {
	Server    string `json:"server,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// ResourceIgnoreDifferences names fields whose live value is not compared.
type ResourceIgnoreDifferences struct {
	Group                 string   `json:"group,omitempty"`
	Kind                  string   `json:"kind"`
	Name                  string   `json:"name,omitempty"`
	Namespace             string   `json:"namespace,omitempty"`
	JSONPointers          []string `json:"jsonPointers,omitempty"`
	JQPathExpressions     []string `json:"jqPathExpressions,omitempty"`
	ManagedFieldsManagers []string `json:"managedFieldsManagers,omitempty"`
}

// SourceHydrator renders from one branch into another (reference 1.8).
type SourceHydrator struct {
	DrySource  DrySource  `json:"drySource"`
	SyncSource SyncSource `json:"syncSource"`
	HydrateTo  *HydrateTo `json:"hydrateTo,omitempty"`
}

// DrySource is where hydration reads.
type DrySource struct {
	RepoURL        string                      `json:"repoURL"`
	TargetRevision string                      `json:"targetRevision"`
	Path           string                      `json:"path"`
	Helm           *ApplicationSourceHelm      `json:"helm,omitempty"`
	Kustomize      *ApplicationSourceKustomize `json:"kustomize,omitempty"`
	Directory      *ApplicationSourceDirectory `json:"directory,omitempty"`
	Plugin         *ApplicationSourcePlugin    `json:"plugin,omitempty"`
}

// SyncSource is where hydrated manifests are synced from.
type SyncSource struct {
	RepoURL      string `json:"repoURL,omitempty"`
	TargetBranch string `json:"targetBranch"`
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path"`
}

// HydrateTo is the branch that hydration pushes to when it is not the one that is synced.
type HydrateTo struct {
	TargetBranch string `json:"targetBranch"`
}

// Operation is a sync that a person or a tool asks for.
type Operation struct {
	Sync        *SyncOperation     `json:"sync,omitempty"`
	InitiatedBy OperationInitiator `json:"initiatedBy,omitempty"`
	Info        []Info             `json:"info,omitempty"`
	Retry       RetryStrategy      `json:"retry,omitempty"`
}

// OperationInitiator is who asked.
type OperationInitiator struct {
	Username  string `json:"username,omitempty"`
	Automated bool   `json:"automated,omitempty"`
}

// SyncOperation is what to sync and how (reference 2.1).
type SyncOperation struct {
	Revision              string                  `json:"revision,omitempty"`
	Prune                 bool                    `json:"prune,omitempty"`
	DryRun                bool                    `json:"dryRun,omitempty"`
	SyncStrategy          *SyncStrategy           `json:"syncStrategy,omitempty"`
	Resources             []SyncOperationResource `json:"resources,omitempty"`
	Source                *ApplicationSource      `json:"source,omitempty"`
	Manifests             []string                `json:"manifests,omitempty"`
	SyncOptions           []string                `json:"syncOptions,omitempty"`
	Sources               []ApplicationSource     `json:"sources,omitempty"`
	Revisions             []string                `json:"revisions,omitempty"`
	AutoHealAttemptsCount int64                   `json:"autoHealAttemptsCount,omitempty"`
}

// SyncOperationResource selects one resource.
type SyncOperationResource struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
}

// SyncStrategy is with hooks (the default) or without (apply).
type SyncStrategy struct {
	Apply *SyncStrategyApply `json:"apply,omitempty"`
	Hook  *SyncStrategyHook  `json:"hook,omitempty"`
}

// SyncStrategyApply syncs without hooks.
type SyncStrategyApply struct {
	Force bool `json:"force,omitempty"`
}

// SyncStrategyHook syncs with hooks.
type SyncStrategyHook struct {
	SyncStrategyApply `json:",inline"`
}

// SyncPolicy is what is done without being asked (reference 1.10).
type SyncPolicy struct {
	Automated                *SyncPolicyAutomated      `json:"automated,omitempty"`
	SyncOptions              []string                  `json:"syncOptions,omitempty"`
	Retry                    *RetryStrategy            `json:"retry,omitempty"`
	ManagedNamespaceMetadata *ManagedNamespaceMetadata `json:"managedNamespaceMetadata,omitempty"`
}

// SyncPolicyAutomated turns automated sync on by being there.
type SyncPolicyAutomated struct {
	Prune      bool  `json:"prune,omitempty"`
	SelfHeal   bool  `json:"selfHeal,omitempty"`
	AllowEmpty bool  `json:"allowEmpty,omitempty"`
	Enabled    *bool `json:"enabled,omitempty"`
}

// RetryStrategy is how a failed sync is tried again.
type RetryStrategy struct {
	// Limit is the number of retries; negative means without end.
	Limit   int64    `json:"limit,omitempty"`
	Backoff *Backoff `json:"backoff,omitempty"`
	// Refresh uses the newest revision for a retry.
	Refresh bool `json:"refresh,omitempty"`
}

// Backoff is the pause between retries: durations like 5s, or seconds.
type Backoff struct {
	Duration    string `json:"duration,omitempty"`
	Factor      *int64 `json:"factor,omitempty"`
	MaxDuration string `json:"maxDuration,omitempty"`
}

// ManagedNamespaceMetadata goes onto the namespace that CreateNamespace makes.
type ManagedNamespaceMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}
