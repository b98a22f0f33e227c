package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// The names of what keeps an Application from syncing.
const (
	Away         = "cluster away"
	Held         = "held"
	Manual       = "automated sync is off"
	NoSelfHeal   = "self-heal is off"
	NoPrune      = "prune is off"
	FailedSync   = "failed sync"
	RunningSync  = "sync in progress"
	Retrying     = "waiting for retry"
	RefusedByUs  = "refused"
	RemovalsHeld = "the set holds removals"
	WindowClosed = "sync window"
)

// notSyncing is why what differs is not put right by itself, what is outermost first.
func notSyncing(s Situation) []Cause {
	out := []Cause{}
	if s.Away != "" {
		out = append(out, Cause{Away, "the cluster " + s.Cluster + " cannot be reached: " + s.Away,
			"Mend the cluster, or its Secret: rutter cluster list says more. What was known of it is kept until it answers."})
	}
	out = append(out, notRemoved(s)...)
	out = append(out, refusals(s)...)
	if s.SetHeld != "" {
		out = append(out, Cause{RemovalsHeld, "the ApplicationSet " + s.Set + " holds removals back: " + s.SetHeld, "Look at what it would remove, and decide: rutter approve appset/" + s.Set + "."})
	}
	differs := len(Differing(s.Report)) > 0
	if s.Hold != "" {
		out = append(out, Cause{Held, s.Hold, "Wait for its end, or end it: rutter unhold " + s.Application + ". A manual sync is possible: rutter app sync " + s.Application + "."})
	}
	out = append(out, closed(s)...)
	if c, ok := lastSync(s); ok {
		out = append(out, c)
	}
	out = append(out, contested(s)...)
	if differs && s.Hold == "" {
		out = append(out, policies(s)...)
	}
	return out
}

// closed is which sync windows forbid a sync that is due, and until when.
func closed(s Situation) []Cause {
	for _, c := range slices.Concat(s.Report.Conditions, s.Conditions) {
		if c.Type == rutter.CondWindow {
			return []Cause{{WindowClosed, c.Message, "It syncs by itself when a window lets it. See them all: rutter proj windows list PROJECT."}}
		}
	}
	return nil
}

// refusals are the conditions that stop a sync: of the project, of permissions,
// of the sources.
func refusals(s Situation) []Cause {
	var out []Cause
	seen := map[string]bool{}
	for _, c := range slices.Concat(s.Report.Conditions, s.Conditions) {
		if !strings.HasSuffix(c.Type, "Error") || seen[c.Message] || c.Type == rutter.CondSync || c.Type == rutter.CondDeletion {
			continue // said elsewhere
		}
		if s.Away != "" && strings.Contains(c.Message, s.Away) {
			continue // said already
		}
		seen[c.Message] = true
		remedy := "Mend what it says in the Application, in its project or in Git; it is tried again by itself."
		switch lower := strings.ToLower(c.Message); {
		case c.Type == rutter.CondInvalidSpec && strings.Contains(lower, "project"):
			remedy = "Permit it in the AppProject, or change the Application's spec."
		case strings.Contains(lower, "forbidden"):
			remedy = "Give the account that the server names the permission."
		case c.Type == rutter.CondComparison:
			remedy = "Mend what it says in Git or in the repository's Secret; it is tried again by itself."
		}
		out = append(out, Cause{RefusedByUs, c.Type + ": " + c.Message, remedy})
	}
	return out
}

// lastSync is what the last sync, or the one in progress, has to say.
func lastSync(s Situation) (Cause, bool) {
	op := s.Operation
	if op == nil {
		return Cause{}, false
	}
	again := "Mend it and sync again: rutter app sync " + s.Application + "."
	switch {
	case strings.Contains(op.Message, "Retrying attempt #") && !op.Phase.Completed():
		return Cause{Retrying, op.Message + failing(op), "Mend what failed; the retry comes by itself."}, true
	case op.Phase == rutter.OperationRunning || op.Phase == rutter.OperationTerminating:
		return Cause{RunningSync, strings.TrimSpace("a sync is " + strings.ToLower(string(op.Phase)) + ": " + op.Message), "Wait for it, or look: rutter app get " + s.Application + "."}, true
	case op.Phase == rutter.OperationFailed || op.Phase == rutter.OperationError:
		return Cause{FailedSync, "the last sync has failed: " + op.Message + failing(op), again + " An automated sync does not try the same revision again by itself once its retries are used up."}, true
	}
	return Cause{}, false
}

// failing names the first resource that failed, with the server's words.
func failing(op *rutter.OperationReport) string {
	for _, r := range op.Results {
		if r.Status == "SyncFailed" || r.HookPhase == "Failed" || r.HookPhase == "Error" {
			what := "the first that failed is "
			if r.Hook {
				what = "the hook that failed is "
			}
			return fmt.Sprintf(" (%s%s: %s)", what, r.Ref, r.Message)
		}
	}
	return ""
}

// policies are the parts of the sync policy that leave a difference alone.
func policies(s Situation) []Cause {
	if !s.Policy.Automated {
		return []Cause{{Manual, "nobody has asked for a sync, and the Application does not sync by itself",
			"Sync it: rutter app sync " + s.Application + "; or let it sync by itself: spec.syncPolicy.automated: {selfHeal: true}."}}
	}
	var out []Cause
	drifted, extra := false, false
	for _, r := range Differing(s.Report) {
		extra = extra || r.RequiresPruning
		drifted = drifted || r.State == rutter.OutOfSync && !r.RequiresPruning && r.Reason != "changed in Git"
	}
	if drifted && !s.Policy.SelfHeal {
		out = append(out, Cause{NoSelfHeal, "the Application syncs a new revision by itself, and leaves alone what was changed in the cluster",
			"Sync it: rutter app sync " + s.Application + "; or let it heal itself: spec.syncPolicy.automated.selfHeal: true."})
	}
	if extra && !s.Policy.Prune {
		out = append(out, Cause{NoPrune, "the Application does not remove by itself what Git does not declare any more",
			"Remove it: rutter app sync " + s.Application + " --prune; or let it: spec.syncPolicy.automated.prune: true."})
	}
	return out
}
