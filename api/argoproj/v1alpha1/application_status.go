package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApplicationStatus is what was last observed (reference 1.13).
type ApplicationStatus struct {
	Resources            []ResourceStatus       `json:"resources,omitempty"`
	Sync                 SyncStatus             `json:"sync,omitempty"`
	Health               AppHealthStatus        `json:"health,omitempty"`
	History              []RevisionHistory      `json:"history,omitempty"`
	Conditions           []ApplicationCondition `json:"conditions,omitempty"`
	ReconciledAt         *metav1.Time           `json:"reconciledAt,omitempty"`
	OperationState       *OperationState        `json:"operationState,omitempty"`
	ObservedAt           *metav1.Time           `json:"observedAt,omitempty"`
	SourceType           string                 `json:"sourceType,omitempty"`
	Summary              ApplicationSummary     `json:"summary,omitempty"`
	ResourceHealthSource string                 `json:"resourceHealthSource,omitempty"`
	SourceTypes          []string               `json:"sourceTypes,omitempty"`
	ControllerNamespace  string                 `json:"controllerNamespace,omitempty"`
	SourceHydrator       *SourceHydratorStatus  `json:"sourceHydrator,omitempty"`
}

// ResourceStatus is one object of the application.
type ResourceStatus struct {
	Group                        string        `json:"group,omitempty"`
	Version                      string        `json:"version,omitempty"`
	Kind                         string        `json:"kind,omitempty"`
	Namespace                    string        `json:"namespace,omitempty"`
	Name                         string        `json:"name,omitempty"`
	Status                       string        `json:"status,omitempty"`
	Health                       *HealthStatus `json:"health,omitempty"`
	Hook                         bool          `json:"hook,omitempty"`
	RequiresPruning              bool          `json:"requiresPruning,omitempty"`
	SyncWave                     int64         `json:"syncWave,omitempty"`
	RequiresDeletionConfirmation bool          `json:"requiresDeletionConfirmation,omitempty"`
	// DeclaredAt is Rutter's own: the commits and the sources by which an object that
	// requires pruning was declared last.
	DeclaredAt string `json:"declaredAt,omitempty"`
	// Drift is Rutter's own: since when the object differs, and in which fields.
	Drift *ResourceDrift `json:"drift,omitempty"`
}

// ResourceDrift is since when an object is not as Git declares it.
type ResourceDrift struct {
	Since  metav1.Time  `json:"since"`
	Fields []FieldDrift `json:"fields,omitempty"`
}

// FieldDrift is one field that differs. An empty path is the object as a whole.
type FieldDrift struct {
	Path  string      `json:"path,omitempty"`
	Since metav1.Time `json:"since"`
	// Returned is how often it came back after it was put back.
	Returned int64 `json:"returned,omitempty"`
	// Manager last wrote the live value.
	Manager string `json:"manager,omitempty"`
	// ContestedUntil is set while the field is contested: it is not put back before.
	ContestedUntil *metav1.Time `json:"contestedUntil,omitempty"`
}

// HealthStatus is how one object does.
type HealthStatus struct {
	Status             string       `json:"status,omitempty"`
	Message            string       `json:"message,omitempty"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// AppHealthStatus is how the application does.
type AppHealthStatus struct {
	Status             string       `json:"status,omitempty"`
	Message            string       `json:"message,omitempty"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// SyncStatus is whether the application equals its sources.
type SyncStatus struct {
	Status     string     `json:"status"`
	ComparedTo ComparedTo `json:"comparedTo,omitempty"`
	Revision   string     `json:"revision,omitempty"`
	Revisions  []string   `json:"revisions,omitempty"`
}

// ComparedTo is the declaration that was compared.
type ComparedTo struct {
	Source            *ApplicationSource          `json:"source,omitempty"`
	Destination       ApplicationDestination      `json:"destination"`
	Sources           []ApplicationSource         `json:"sources,omitempty"`
	IgnoreDifferences []ResourceIgnoreDifferences `json:"ignoreDifferences,omitempty"`
}

// RevisionHistory is one completed full sync, oldest first.
type RevisionHistory struct {
	Revision        string              `json:"revision,omitempty"`
	DeployedAt      metav1.Time         `json:"deployedAt"`
	ID              int64               `json:"id"`
	Source          *ApplicationSource  `json:"source,omitempty"`
	DeployStartedAt *metav1.Time        `json:"deployStartedAt,omitempty"`
	Sources         []ApplicationSource `json:"sources,omitempty"`
	Revisions       []string            `json:"revisions,omitempty"`
	InitiatedBy     OperationInitiator  `json:"initiatedBy,omitempty"`
}

// ApplicationCondition is one statement about the application; the suffix
// Error marks an error.
type ApplicationCondition struct {
	Type               string       `json:"type"`
	Message            string       `json:"message"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// OperationState is the sync in progress, or the last one (reference 2.1).
type OperationState struct {
	Operation  Operation            `json:"operation"`
	Phase      string               `json:"phase"`
	Message    string               `json:"message,omitempty"`
	SyncResult *SyncOperationResult `json:"syncResult,omitempty"`
	StartedAt  metav1.Time          `json:"startedAt"`
	FinishedAt *metav1.Time         `json:"finishedAt,omitempty"`
	RetryCount int64                `json:"retryCount,omitempty"`
}

// SyncOperationResult is what a sync did.
type SyncOperationResult struct {
	Resources                []ResourceResult          `json:"resources,omitempty"`
	Revision                 string                    `json:"revision"`
	Source                   *ApplicationSource        `json:"source,omitempty"`
	Sources                  []ApplicationSource       `json:"sources,omitempty"`
	Revisions                []string                  `json:"revisions,omitempty"`
	ManagedNamespaceMetadata *ManagedNamespaceMetadata `json:"managedNamespaceMetadata,omitempty"`
}

// ResourceResult is what a sync did to one object.
type ResourceResult struct {
	Group     string   `json:"group"`
	Version   string   `json:"version"`
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Status    string   `json:"status,omitempty"`
	Message   string   `json:"message,omitempty"`
	HookType  string   `json:"hookType,omitempty"`
	HookPhase string   `json:"hookPhase,omitempty"`
	SyncPhase string   `json:"syncPhase,omitempty"`
	Images    []string `json:"images,omitempty"`
}

// ApplicationSummary gathers what people look for first.
type ApplicationSummary struct {
	ExternalURLs []string `json:"externalURLs,omitempty"`
	Images       []string `json:"images,omitempty"`
	IsAppOfApps  bool     `json:"isAppOfApps,omitempty"`
}

// SourceHydratorStatus is how far hydration is.
type SourceHydratorStatus struct {
	LastSuccessfulOperation *SuccessfulHydrateOperation `json:"lastSuccessfulOperation,omitempty"`
	CurrentOperation        *HydrateOperation           `json:"currentOperation,omitempty"`
	LastComparedDryRevision string                      `json:"lastComparedDryRevision,omitempty"`
}

// SuccessfulHydrateOperation is a completed hydration.
type SuccessfulHydrateOperation struct {
	DrySHA         string         `json:"drySHA,omitempty"`
	HydratedSHA    string         `json:"hydratedSHA,omitempty"`
	SourceHydrator SourceHydrator `json:"sourceHydrator,omitempty"`
}

// HydrateOperation is the hydration in progress, or the last one.
type HydrateOperation struct {
	StartedAt      metav1.Time    `json:"startedAt,omitempty"`
	FinishedAt     *metav1.Time   `json:"finishedAt,omitempty"`
	Phase          string         `json:"phase"`
	Message        string         `json:"message"`
	DrySHA         string         `json:"drySHA,omitempty"`
	HydratedSHA    string         `json:"hydratedSHA,omitempty"`
	SourceHydrator SourceHydrator `json:"sourceHydrator,omitempty"`
}
