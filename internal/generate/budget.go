package generate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const (
	// AnnotationBudget on a set is how much of it may be deleted without asking:
	// "10%", "10% min 5", or a number.
	AnnotationBudget = "rutter.dev/deletion-budget"
	// AnnotationApprove on a set is the digest of a held plan that may be carried out.
	AnnotationApprove = "rutter.dev/approve"
)

// Budget is how many Applications of a set one decision may delete without
// being asked: a share of them, and at least Min.
type Budget = rutter.Budget

// DefaultBudget holds where neither the operator nor the set says otherwise.
var DefaultBudget = Budget{Percent: 25, Min: 3}

// ParseBudget reads "10%", "10% min 5", or a number, which then is all. What a
// percentage leaves out is that of the default.
func ParseBudget(text string) (Budget, error) { return rutter.ParseBudget(text, DefaultBudget.Min) }

// budget is the one that holds for a set. One that cannot be read must not let
// through more than the operator's, so that one holds then.
func (p Policy) budget(set *v1alpha1.ApplicationSet) (Budget, error) {
	b := DefaultBudget
	if p.Budget != nil {
		b = *p.Budget
	}
	text, ok := set.Annotations[AnnotationBudget]
	if !ok {
		return b, nil
	}
	own, err := ParseBudget(text)
	if err != nil {
		return b, rutter.Errorf(rutter.CodeInvalid, "metadata.annotations[%s]: %w", AnnotationBudget, err)
	}
	return own, nil
}

// Held is a plan of removals that waits for somebody, or that somebody approved.
type Held struct {
	// Digest names the plan: the set's UID and the names and UIDs of what it
	// deletes, and nothing that changes by itself.
	Digest string
	// Names are those of the Applications, in order.
	Names []string
	// Limit is how many of the set's Of Applications may go without being asked.
	Limit, Of int
	// Empties says that the set would be left with none.
	Empties bool
	// Paused counts those that would go too, if no person held them, and Waited says
	// that some of the plan waited before: what is left of a plan waits on.
	Paused  int
	Waited  bool
	budget  Budget
	members []uint32
}

// Over reports whether so many of the plan's removals need an approval.
func (h *Held) Over(removals int) bool {
	return h.Empties || h.Waited || removals+h.Paused > h.Limit
}

// Reason says why the plan waits and what to do.
func (h *Held) Reason() string {
	return fmt.Sprintf("%s; annotate it with %s: %q to delete exactly these", h.Why(len(h.Names)), AnnotationApprove, h.Digest)
}

// Why says why so many of the plan's removals wait.
func (h *Held) Why(removals int) string {
	if h.Empties {
		return fmt.Sprintf("the set generates nothing any more: all that it has left would be deleted, %d Applications", removals)
	}
	why := fmt.Sprintf("%d of %d Applications would be deleted", removals, h.Of)
	if h.Paused > 0 {
		why += fmt.Sprintf(", and %d more that are held", h.Paused)
	}
	if removals+h.Paused <= h.Limit {
		why += ", what is left of a plan that waits"
	}
	return why + fmt.Sprintf(", at most %d go without approval", h.Limit)
}

// approval is how a held plan is approved from the command line.
var approval = regexp.MustCompile(`rutter approve appset/\S+ ([0-9a-f]{16})\b`)

// Approval is the command that approves the plan of a set.
func (h *Held) Approval(set *v1alpha1.ApplicationSet) string {
	return fmt.Sprintf("rutter approve appset/%s %s -n %s", set.Name, h.Digest, set.Namespace)
}

// HeldDigest is the digest of the plan that waits in a set, by what its status
// says of it; empty when none waits.
func HeldDigest(set *v1alpha1.ApplicationSet) string { return saidOfHeld(set, approval) }

// counted is how many deletions a held plan has, as Reason says it.
var counted = regexp.MustCompile(`(\d+)(?: of \d+)? Applications`)

// HeldCount is how many deletions wait in a set, by what its status says of
// them; empty when none do.
func HeldCount(set *v1alpha1.ApplicationSet) string { return saidOfHeld(set, counted) }

func saidOfHeld(set *v1alpha1.ApplicationSet, what *regexp.Regexp) string {
	for _, c := range set.Status.Conditions {
		if c.Type == v1alpha1.ApplicationSetConditionDeletionsHeld && c.Status == "True" {
			if m := what.FindStringSubmatch(c.Message); m != nil {
				return m[1]
			}
		}
	}
	return ""
}

// PlanDigest is the digest of the plan that deletes these Applications of a set;
// empty when an object is among them that no control plane has.
func PlanDigest(set *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) string {
	if set.UID == "" || slices.ContainsFunc(apps, func(a *v1alpha1.Application) bool { return a.UID == "" }) {
		return ""
	}
	apps = slices.SortedFunc(slices.Values(apps), func(a, b *v1alpha1.Application) int { return strings.Compare(a.Name, b.Name) })
	return newHeld(set, apps).Digest
}

// newHeld is the plan of deleting these, which are in order.
func newHeld(set *v1alpha1.ApplicationSet, apps []*v1alpha1.Application) *Held {
	h := &Held{}
	sum := sha256.New()
	sum.Write([]byte(set.UID))
	for _, app := range apps {
		h.Names = append(h.Names, app.Name)
		one := memberOf(set, app)
		sum.Write(one[:])
		h.members = append(h.members, shortOf(set, app))
	}
	h.Digest = hex.EncodeToString(sum.Sum(nil)[:8])
	return h
}

// memberOf is the digest of one deletion.
func memberOf(set *v1alpha1.ApplicationSet, app *v1alpha1.Application) [sha256.Size]byte {
	return sha256.Sum256([]byte(string(set.UID) + "\x00" + app.Name + "\x00" + string(app.UID)))
}

// Ticket is the plan in few bytes. Whoever
// carries out an approved plan keeps it and gives it back in Policy.Ticket, so
// that a plan that was carried out in part, when the process was killed, is
// still known as the approved one. Without it the rest would wait again.
func (h *Held) Ticket() string {
	return h.Digest + ":" + writeMembers(h.members)
}

// covers reports whether a ticket is of the approved plan and has all of these.
func covers(ticket, approved string, h *Held) bool {
	digest, encoded, ok := strings.Cut(ticket, ":")
	if !ok || digest != approved {
		return false
	}
	members, ok := readMembers(encoded)
	if !ok {
		return false
	}
	return !slices.ContainsFunc(h.members, func(m uint32) bool { return !members[m] })
}
