package rutter

import "time"

// Condition is something the user should know of a unit (reference 1.13).
type Condition struct {
	// Type such as ComparisonError; the suffix Error marks an error.
	Type    string
	Message string
}

// The condition types of the Argo CD dialect.
const (
	CondInvalidSpec    = "InvalidSpecError"
	CondComparison     = "ComparisonError"
	CondSync           = "SyncError"
	CondDeletion       = "DeletionError"
	CondUnknown        = "UnknownError"
	CondSharedResource = "SharedResourceWarning"
	CondRepeated       = "RepeatedResourceWarning"
	CondExcluded       = "ExcludedResourceWarning"
	CondUnsupported    = "UnsupportedFieldWarning"
	// CondHeld says that a person paused the automated sync.
	CondHeld = "HeldWarning"
	// CondContested says that somebody undoes what a self-heal puts back.
	CondContested = "ContestedFieldWarning"
	// CondOrphaned says that there are objects that nobody declares.
	CondOrphaned = "OrphanedResourceWarning"
	// CondWindow says that a sync is due and that sync windows forbid it now.
	CondWindow = "SyncWindowWarning"
	// CondDeletionBlocked names what a deletion waits for, one for each object.
	CondDeletionBlocked = "DeletionBlockedWarning"
	// CondNotJustified says that objects are gone from a render though its commit is the same.
	CondNotJustified = "DeterminismWarning"
	// CondPruneHeld says that more would be pruned than may be without an approval.
	CondPruneHeld = "PruneHeldWarning"
	// CondRender is what a render wants said: a random field, a base that is not pinned.
	CondRender = "RenderWarning"
)

// ResourceReport is one object of a unit as it is shown.
type ResourceReport struct {
	Ref

	Version string
	// State is empty for hooks, which have no sync status.
	State           SyncState
	Health          Health
	Hook            bool
	Wave            int
	RequiresPruning bool
	// DeclaredAt is the stamp of when it was declared last, of an object that is to
	// be pruned; empty when that is not known.
	DeclaredAt string
	// RequiresConfirmation says that a person has to confirm before it is removed.
	RequiresConfirmation bool
	Reason               string
	Diffs                []FieldDiff
	Origin               Origin
	// Drift is since when it differs, and which of its fields are contested; nil
	// when it does not differ.
	Drift *Drift
}

// OperationPhase is the state of a sync (reference 2.1).
type OperationPhase string

// The phases of an operation.
const (
	OperationRunning     OperationPhase = "Running"
	OperationTerminating OperationPhase = "Terminating"
	OperationSucceeded   OperationPhase = "Succeeded"
	OperationFailed      OperationPhase = "Failed"
	OperationError       OperationPhase = "Error"
)

// Completed reports whether the operation has ended.
func (p OperationPhase) Completed() bool {
	return p == OperationSucceeded || p == OperationFailed || p == OperationError
}

// SyncRequest asks for a sync.
type SyncRequest struct {
	// ID names the request to whom it came from; empty for one of the engine's own.
	ID string
	// Revision overrides the sources' target revision; empty means the current one.
	Revision string
	// Revisions override it for each source, in their order.
	Revisions []string
	// Sources are synced in the place of the declared ones, where there are any.
	Sources []Source
	// Manifests are objects, in JSON, that are synced in the place of what is rendered.
	Manifests []string
	Prune     bool
	DryRun    bool
	// Force replaces what cannot be changed in place.
	Force bool
	// SkipHooks leaves the hooks out.
	SkipHooks bool
	// Resources restricts the sync to these; empty means all.
	Resources []Ref
	// Options count in the place of the application's own, where there are any.
	Options []string
	Retry   Retry
	// InitiatedBy is a user, or empty for an automated sync.
	InitiatedBy string
	Automated   bool
	// SelfHeal marks an automated sync that puts drift back at an unchanged revision,
	// and Attempt counts those in a row.
	SelfHeal bool
	Attempt  int64
}

// OperationReport is a sync in progress, or the last one.
type OperationReport struct {
	Request    SyncRequest
	Phase      OperationPhase
	Message    string
	StartedAt  time.Time
	FinishedAt time.Time
	RetryCount int64
	Revisions  []string
	Results    []StepResult
	// Partial is true when only some resources were synced: no history is written.
	Partial bool
}

// Report is everything the engine has to say of a unit at one moment. The
// dialects turn it into the status of their objects.
type Report struct {
	ID          UnitID
	Revisions   []string
	SourceTypes []string
	Sync        SyncState
	Health      Health
	Resources   []ResourceReport
	Conditions  []Condition
	Operation   *OperationReport
	Images      []string
	// ComparedAt is when the sources were last compared in full.
	ComparedAt time.Time
	// Deletion is how far a deletion has come; nil when there is none.
	Deletion *DeletionReport
	// DeleteHooks are those that the sources declare; nil when that is not known.
	DeleteHooks *DeleteHooks
	// Orphans is how many objects in the target namespace nobody declares, where they
	// are counted.
	Orphans int
	// Renders counts how often a tool ran for this unit since the process started.
	Renders int64
}
