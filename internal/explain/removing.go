package explain

import (
	"slices"

	"github.com/rutterhq/rutter"
)

// The names of what keeps objects from going.
const (
	BeingDeleted  = "being deleted"
	NeedsDecision = "the deletion needs a decision"
	PrunesHeld    = "prunes are held"
	NotJustified  = "no commit takes it out"
)

// notRemoved is why a deletion does not come to its end, and why what Git no
// longer declares is not pruned, as the controller says it.
func notRemoved(s Situation) []Cause {
	var out []Cause
	seen := map[string]bool{}
	for _, c := range slices.Concat(s.Conditions, s.Report.Conditions) {
		if seen[c.Message] {
			continue
		}
		seen[c.Message] = true
		switch c.Type {
		case rutter.CondDeletion:
			out = append(out, Cause{NeedsDecision, c.Message, "Mend what it names, and it goes on by itself; or decide: rutter app delete " + s.Application + " --orphan, or --force, each of which shows first what it does."})
		case rutter.CondDeletionBlocked:
			out = append(out, Cause{BeingDeleted, c.Message, "Have what it names do its part. Nothing is forced by itself."})
		case rutter.CondPruneHeld:
			out = append(out, Cause{PrunesHeld, c.Message, "Look at what it names, and approve it, or put it back in Git: rutter approve app/" + s.Application + "."})
		case rutter.CondNotJustified:
			out = append(out, Cause{NotJustified, c.Message, "Find what the sources read beside the commit; take the objects out with a commit, or prune them by hand: rutter app sync " + s.Application + " --prune."})
		}
	}
	return out
}
