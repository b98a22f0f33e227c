package rutter

import "iter"

// Phase of a sync, in order (reference 2.2).
type Phase string

// The phases.
const (
	PhasePreSync  Phase = "PreSync"
	PhaseSync     Phase = "Sync"
	PhasePostSync Phase = "PostSync"
	PhaseSyncFail Phase = "SyncFail"
)

// Action is what a step does to one object.
type Action string

// The actions. Leave and Skip are carried in a plan so that it explains itself.
const (
	ActionApply  Action = "apply"
	ActionPrune  Action = "prune"
	ActionLeave  Action = "leave"
	ActionSkip   Action = "skip"
	ActionRefuse Action = "refuse"
)

// Step is one action on one object.
type Step struct {
	Action Action
	Ref    Ref
	Phase  Phase
	Wave   int
	// Hook is true for a hook; it is created anew in each sync.
	Hook bool
	// Reason says why, in a line.
	Reason string
	// Version is the API version of a prune; an apply takes its object's.
	Version string
	// UID is the precondition of a prune.
	UID string
	// Index is the position in the desired objects; -1 for a prune.
	Index int
}

// Group is all steps of one phase and wave; the next group starts when this
// one is done and, where a later one exists, healthy.
type Group struct {
	Phase Phase
	Wave  int
	// Batches run one after the other (kinds in their order); steps of a batch run in parallel.
	Batches [][]Step
	// Await are objects of the wave that need no sending but must be healthy too.
	Await []Ref
}

// Plan is what a sync will do. It is a value: the controller carries it out,
// the CLI prints it.
type Plan struct {
	Groups []Group
	// Left are the steps that do nothing, with their reasons.
	Left []Step
	// Confirm are removals that wait until a person confirms them; all else goes on.
	Confirm []Step
	// Held, when set, are removals that are more than may be without an approval.
	Held *HeldPrunes
	// WaitHealth says that each group must be healthy before the next starts.
	WaitHealth bool
	// Refusal, when set, says why nothing may be done at all.
	Refusal string
}

// Steps are the steps of all groups, in their order.
func (p Plan) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for _, g := range p.Groups {
			for s := range g.Steps() {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Steps are the steps of the group, in their order.
func (g Group) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for _, b := range g.Batches {
			for _, s := range b {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Empty reports whether the plan changes nothing.
func (p Plan) Empty() bool { return len(p.Groups) == 0 }

// StepResult is the outcome of one step (reference 2.1, resource result).
type StepResult struct {
	Step

	// Status is Synced, SyncFailed, Pruned or PruneSkipped.
	Status  string
	Message string
	// HookPhase is Running, Succeeded, Failed or Error.
	HookPhase string
	// Images are the container images of the object.
	Images []string
}
