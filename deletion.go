package rutter

import (
	"slices"
	"time"
)

// DeletionStage is one thing that a deletion does. What is to be done yet is
// written on what is deleted, so that a restart goes on from there.
type DeletionStage string

// The stages, in their order.
const (
	// StagePreDelete runs the PreDelete hooks and StagePostDelete the PostDelete hooks.
	StagePreDelete DeletionStage = "PreDelete"
	// StageCascade removes the objects of the unit.
	StageCascade    DeletionStage = "Cascade"
	StagePostDelete DeletionStage = "PostDelete"
	// StagePreCleanup and StagePostCleanup remove the hooks that have run.
	StagePreCleanup  DeletionStage = "PreDeleteCleanup"
	StagePostCleanup DeletionStage = "PostDeleteCleanup"
)

// DeletionStages are all of them, in order.
func DeletionStages() []DeletionStage {
	return []DeletionStage{StagePreDelete, StageCascade, StagePostDelete, StagePreCleanup, StagePostCleanup}
}

// Deletion is what the deletion of a unit has still to do, and how.
type Deletion struct {
	// ID names this deletion: hooks that carry it have been run for it.
	ID string
	// Since is when it was asked for.
	Since time.Time
	// Stages are to be done yet.
	Stages []DeletionStage
	// Propagation is foreground (default) or background.
	Propagation string
	// Approved is when somebody confirmed the deletion of objects that ask for it.
	Approved time.Time
	// Forced is when somebody decided that what is terminating since before goes
	// without its finalizers.
	Forced time.Time
	// Orphan lets the objects stay, without the unit's marks.
	Orphan bool
	// Deadline is how long an object may be terminating before it takes a decision.
	Deadline time.Duration
	// WaitForCluster keeps the unit while its cluster is not one of the fleet.
	WaitForCluster bool
}

// Has reports whether a stage is to be done yet.
func (d Deletion) Has(s DeletionStage) bool { return slices.Contains(d.Stages, s) }

// DeletionReport is how far a deletion has come.
type DeletionReport struct {
	// ID is that of the deletion.
	ID string
	// Done are stages that are complete.
	Done []DeletionStage
	// ClusterGone says that they are over because the cluster is no longer a member:
	// what was there stays there.
	ClusterGone bool
	// Waiting says what it waits for, in a line.
	Waiting string
	// Blockers are what does not go, in order.
	Blockers []Blocker
	// Overdue says that one of them needs somebody's decision.
	Overdue bool
}

// Blocker is an object that is to go and does not.
type Blocker struct {
	Ref

	UID string
	// Since is when its deletion was asked for.
	Since time.Time
	// Reason is what keeps it, such as a finalizer and who would remove it.
	Reason string
}

// DeleteHooks are the hooks of a deletion that a unit's sources declare.
type DeleteHooks struct {
	Pre, Post bool
}
