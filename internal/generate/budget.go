package generate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

const (
	// AnnotationBudget on a set is how much of it may be deleted without asking:
	// "10%", "10% min 5", or a number, and for how long what went counts: "10% per 24h".
	AnnotationBudget = "rutter.dev/deletion-budget"
	// AnnotationApprove on a set is the digest of a held plan that may be carried out.
	AnnotationApprove = "rutter.dev/approve"
)

// Budget is how many Applications of a set may be deleted within some time without
// being asked.
type Budget struct {
	rutter.Budget

	// Window is how long what went counts: 0 is defaultWindow, and less than that is
	// not at all.
	Window time.Duration
}

const (
	// defaultWindow is long enough that a list which loses a few of its elements with
	// every answer is noticed, and short enough for work that goes on.
	defaultWindow = time.Hour
	maxWindow     = 7 * 24 * time.Hour
)

// DefaultBudget holds where neither the operator nor the set says otherwise.
var DefaultBudget = Budget{Budget: rutter.Budget{Percent: 25, Min: 3}}

// window is how long what went counts; 0 is not at all.
func (b Budget) window() time.Duration {
	if b.Window == 0 {
		return defaultWindow
	}
	return max(b.Window, 0)
}

// String is how the budget is written.
func (b Budget) String() string {
	if w := b.window(); w != defaultWindow {
		return b.Budget.String() + " per " + shortDuration(w)
	}
	return b.Budget.String()
}

// shortDuration is a duration as people write it: 30m and not 30m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// windowForm divides a budget from how long what went counts.
var windowForm = regexp.MustCompile(`^(.*?)(?:\s*,?\s+per\s+(\S{1,20}))?\s*$`)

// ParseBudget reads what rutter.ParseBudget reads, and "per 30m" after it.
func ParseBudget(text string) (Budget, error) {
	share, window := text, ""
	if m := windowForm.FindStringSubmatch(text); m != nil {
		share, window = m[1], m[2]
	}
	b := Budget{}
	var err error
	if b.Budget, err = rutter.ParseBudget(share, DefaultBudget.Min); err != nil {
		return Budget{}, fmt.Errorf("%w; for how long what went counts may follow: 10%% per 24h", err)
	}
	if b.Window, err = parseWindow(window); err != nil {
		return Budget{}, rutter.Errorf(rutter.CodeInvalid, "%q is not a deletion budget: %w", text, err)
	}
	return b, nil
}

// parseWindow reads how long what went counts.
func parseWindow(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0 || d > 0 && d < time.Second || d > maxWindow:
		return 0, fmt.Errorf("%q is no time from 1s to 168h, such as 30m; 0s is not to count what went", text)
	case d == 0:
		return -1, nil
	case d == defaultWindow:
		return 0, nil
	}
	return d.Truncate(time.Second), nil
}

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
	// Digest names the plan: the set's UID, the names and UIDs of what it deletes and
	// whether their objects stay, and nothing that changes by itself.
	Digest string
	// Names are those of the Applications, in order.
	Names []string
	// Limit is how many of the set's Of Applications may go without being asked.
	Limit, Of int
	// Empties says that the set would be left with none.
	Empties bool
	// Preserves says that the set preserves the objects of what is deleted.
	Preserves bool
	// Recent counts those that went without being asked within Window.
	Recent int
	Window time.Duration
	// Paused counts those that would go too, if no person held them, and Waited says
	// that some of the plan waited before: what is left of a plan waits on.
	Paused  int
	Waited  bool
	budget  Budget
	members []uint32
}

// Over reports whether so many of the plan's removals need an approval.
func (h *Held) Over(removals int) bool {
	return h.Empties || h.Waited || h.exceeds(removals)
}

func (h *Held) exceeds(removals int) bool { return removals+h.Paused+h.Recent > h.Limit }

// Reason says why the plan waits and what to do.
func (h *Held) Reason() string {
	return fmt.Sprintf("%s; annotate it with %s: %q to delete exactly these", h.Why(len(h.Names)), AnnotationApprove, h.Digest)
}

// Why says why so many of the plan's removals wait.
func (h *Held) Why(removals int) string {
	stay := ""
	if h.Preserves {
		stay = " without their objects"
	}
	if h.Empties {
		return fmt.Sprintf("the set generates nothing any more: all that it has left would be deleted%s, %d Applications", stay, removals)
	}
	why := fmt.Sprintf("%d of %d Applications would be deleted%s", removals, h.Of, stay)
	if h.Paused > 0 {
		why += fmt.Sprintf(", and %d more that are held", h.Paused)
	}
	switch {
	case h.exceeds(removals) && h.Recent > 0:
		why += fmt.Sprintf(", after %d within %s", h.Recent, shortDuration(h.Window))
	case !h.exceeds(removals):
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
	h := &Held{Preserves: Preserves(set)}
	sum := sha256.New()
	sum.Write([]byte(set.UID))
	if h.Preserves { // to leave their objects is another plan
		sum.Write([]byte("\x00objects stay"))
	}
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
	return h.Digest + ":" + writeMembers(h.members) + h.fate()
}

// fate is how a ticket ends whose plan leaves the objects.
func (h *Held) fate() string {
	if h.Preserves {
		return ticketPreserves
	}
	return ""
}

const ticketPreserves = ":objects-stay"

// ofApproved reports whether a ticket is of the plan with that digest.
func ofApproved(ticket, approved string) bool {
	digest, _, ok := strings.Cut(ticket, ":")
	return ok && digest == approved && approved != ""
}

// covers reports whether a ticket is of the approved plan and has all of these,
// with the same end.
func covers(ticket, approved string, h *Held) bool {
	if !ofApproved(ticket, approved) {
		return false
	}
	_, encoded, _ := strings.Cut(ticket, ":")
	encoded, stay := strings.CutSuffix(encoded, ticketPreserves)
	if stay != h.Preserves {
		return false
	}
	members, ok := readMembers(encoded)
	if !ok {
		return false
	}
	return !slices.ContainsFunc(h.members, func(m uint32) bool { return !members[m] })
}
