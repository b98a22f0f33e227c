package plan

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// HookRun names one run of a hook. It is written on the object, so that a
// controller that was killed in the middle of a sync knows what has run already: a
// hook is what its manifest says at a commit, and within one operation it runs to
// its success once.
type HookRun struct {
	// Started is when the operation began, and Attempt which of its attempts it is.
	Started time.Time
	Attempt int64
	// Of stands for the manifest, the revisions and the phase.
	Of string
}

// String is the value of rutter.AnnotationHookRun.
func (h HookRun) String() string {
	return fmt.Sprintf("%d.%d.%s", h.Started.UnixNano(), h.Attempt, h.Of)
}

// ParseHookRun is the inverse of String; false for what it did not write.
func ParseHookRun(s string) (HookRun, bool) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) != 3 {
		return HookRun{}, false
	}
	nanos, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return HookRun{}, false
	}
	attempt, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return HookRun{}, false
	}
	return HookRun{Started: time.Unix(0, nanos), Attempt: attempt, Of: parts[2]}, true
}

// SameOperation reports whether two runs are of one operation.
func (h HookRun) SameOperation(o HookRun) bool { return h.Started.UnixNano() == o.Started.UnixNano() }

// Continues reports whether live, which is found on the cluster, is this run: it is
// waited for, and not started again. What failed in an earlier attempt is.
func (h HookRun) Continues(live HookRun, succeeded bool) bool {
	return h.SameOperation(live) && h.Of == live.Of && (h.Attempt == live.Attempt || succeeded)
}

// maxHookName is what the name of a Job may have, which is in a label of its pods.
const maxHookName = 63

// HookName is the name of a hook that leaves it to be generated (reference 2.2). It
// is the same whenever the same operation asks.
func HookName(prefix, revision string, phase rutter.Phase, started time.Time) string {
	if len(revision) >= 8 {
		revision = revision[:7]
	}
	end := fmt.Sprintf("%s-%s-%d", revision, strings.ToLower(string(phase)), started.Unix())
	return prefix[:min(len(prefix), max(0, maxHookName-len(end)))] + end
}
