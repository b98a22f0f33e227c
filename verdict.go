package rutter

// SyncState is whether an object, or a unit, equals what Git declares.
type SyncState string

// The sync states (reference 1.13). Unknown is never rounded to Synced.
const (
	Synced      SyncState = "Synced"
	OutOfSync   SyncState = "OutOfSync"
	SyncUnknown SyncState = "Unknown"
)

// HealthState is how an object does (reference 4.1), best first.
type HealthState string

// The health states. The empty state means the kind has no health and does not count.
const (
	Healthy       HealthState = "Healthy"
	Suspended     HealthState = "Suspended"
	Progressing   HealthState = "Progressing"
	Missing       HealthState = "Missing"
	Degraded      HealthState = "Degraded"
	HealthUnknown HealthState = "Unknown"
)

// Health is a state and why.
type Health struct {
	Status  HealthState `json:"status,omitempty"`
	Message string      `json:"message,omitempty"`
	// Reason is the message in a word, as conditions have them; it may be empty.
	Reason string `json:"reason,omitempty"`
}

// HealthScript is an operator's own assessment of a kind (reference 4.3).
type HealthScript struct {
	// Group and Kind may hold wildcards.
	Group, Kind string
	// Script is Lua; OpenLibs gives it the libraries string and math.
	Script   string
	OpenLibs bool
	// Source says where it is written, for errors.
	Source string
}

// HealthExpr is an assessment of a kind by expressions in CEL (flux-semantics 0.13).
type HealthExpr struct {
	// Kind may be empty: every kind of the group that has none of its own.
	Group, Kind string
	// Current is needed; InProgress and Failed are asked before it where they are given.
	InProgress, Failed, Current string
	// Source says where it is written, for errors.
	Source string
}

// ActionScripts are an operator's own actions for a kind (reference 4.3).
type ActionScripts struct {
	Group, Kind string
	// Discovery is Lua that says which actions an object has; Run are the scripts
	// of the actions by name.
	Discovery string
	Run       map[string]string
	// MergeBuiltin keeps the built-in actions of the kind beside these.
	MergeBuiltin bool
	// OpenLibs gives the scripts the libraries string and math.
	OpenLibs bool
	// Source says where it is written, for errors.
	Source string
}

// FieldDiff is one field that differs. Values of Secrets are never put here.
type FieldDiff struct {
	// Path in the form .spec.template.spec.containers[name="web"].image
	Path string `json:"path"`
	// Desired and Live are JSON; empty means absent.
	Desired string `json:"desired,omitempty"`
	Live    string `json:"live,omitempty"`
	// Manager is the field manager that last wrote the live value, when known.
	Manager string `json:"manager,omitempty"`
}

// Verdict is what is remembered of one live object: some hundred bytes.
type Verdict struct {
	State  SyncState
	Health Health
	// Reason says in a line why State is not Synced.
	Reason string
	Diffs  []FieldDiff

	UID string
	// OwnedHash is a hash of the live values of the fields we own, after the
	// last comparison that found them equal. An event with the same hash and
	// the same desired object needs no comparison.
	OwnedHash string
	// DesiredHash is the hash of the desired object State was judged against.
	DesiredHash string
	// Exists is false when the object is known not to be there.
	Exists bool
	// Deleting is true when the live object carries a deletionTimestamp.
	Deleting bool
	// Tracking is the instance that the live object's tracking annotation names;
	// empty where there is none, or one that was copied from another object.
	Tracking string
}
