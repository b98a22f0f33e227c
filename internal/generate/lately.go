package generate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// A budget has a memory: a list that loses an element with every answer would
// otherwise empty a set with removals that are each small enough. What goes without
// being asked counts for a while towards what goes after it. It is kept with the
// set, by the short names of waiting.go, so that a removal that is decided again,
// because it failed or was put off, counts once.

// recall reads what went within the window. What is still there and not being
// deleted did not go.
func (rc *reconciliation) recall(window time.Duration, live []*v1alpha1.Application) {
	now := rc.policy.Now
	if now.IsZero() || window <= 0 {
		return
	}
	rc.recent = readRemoved(rc.policy.Removed)
	from := now.Add(-window).Unix()
	maps.DeleteFunc(rc.recent, func(_ uint32, at int64) bool { return at <= from })
	for _, app := range live {
		if ownedBy(app, rc.set) && app.DeletionTimestamp == nil {
			delete(rc.recent, shortOf(rc.set, app))
		}
	}
}

// spend notes that a plan is carried out.
func (rc *reconciliation) spend(plan *Held) {
	if rc.recent == nil {
		return
	}
	for _, m := range plan.members {
		rc.recent[m] = rc.policy.Now.Unix()
	}
}

// keepTicket keeps an approval that is being carried out while it is not known
// what else is unwanted: what is left of the plan was approved.
func (rc *reconciliation) keepTicket() {
	if rc.generated.Completeness != Complete && ofApproved(rc.policy.Ticket, rc.set.Annotations[AnnotationApprove]) {
		rc.decision.Ticket = rc.policy.Ticket
	}
}

// mostRemoved bounds what is kept, of a budget that hardly limits anything, so that
// it has room beside the set.
const mostRemoved = 20_000

// writeRemoved is what went, by when and the last ones first:
// "1780000100:members;1780000000:members".
func (rc *reconciliation) writeRemoved() string {
	if rc.policy.Now.IsZero() {
		return rc.policy.Removed
	}
	byTime := map[int64][]uint32{}
	for m, at := range rc.recent {
		byTime[at] = append(byTime[at], m)
	}
	var parts []string
	kept := 0
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(byTime))) {
		if kept += len(byTime[at]); kept > mostRemoved && len(parts) > 0 {
			break
		}
		parts = append(parts, strconv.FormatInt(at, 10)+":"+writeMembers(byTime[at]))
	}
	return strings.Join(parts, ";")
}

// readRemoved reads what writeRemoved wrote; what is something else is left out.
func readRemoved(text string) map[uint32]int64 {
	out := map[uint32]int64{}
	for part := range strings.SplitSeq(text, ";") {
		when, encoded, _ := strings.Cut(part, ":")
		at, err := strconv.ParseInt(when, 10, 64)
		members, ok := readMembers(encoded)
		if err != nil || !ok {
			continue
		}
		for m := range members {
			out[m] = at
		}
	}
	return out
}
