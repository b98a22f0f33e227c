package rutter

import (
	"fmt"
	"regexp"
	"strconv"
)

// Budget is how many of something one decision may remove without being asked: a
// share of them, and at least Min.
type Budget struct {
	Percent int
	Min     int
}

// Limit is the number for so many.
func (b Budget) Limit(of int) int { return max(of*b.Percent/100, b.Min) }

// String is how the budget is written.
func (b Budget) String() string {
	if b.Percent == 0 {
		return strconv.Itoa(b.Min)
	}
	return fmt.Sprintf("%d%% min %d", b.Percent, b.Min)
}

var budgetForm = regexp.MustCompile(`^\s*(?:(\d{1,3})\s*%(?:\s*,?\s*min\s+(\d{1,6}))?|(\d{1,6}))\s*$`)

// ParseBudget reads "10%", "10% min 5", or a number, which then is all. leastMin
// is what a percentage without a minimum has.
func ParseBudget(text string, leastMin int) (Budget, error) {
	m := budgetForm.FindStringSubmatch(text)
	if m == nil {
		return Budget{}, Errorf(CodeInvalid, "%q is not a deletion budget; write 10%%, 10%% min 5, or a number", text)
	}
	// The form allows nothing but digits that fit.
	if m[3] != "" {
		n, _ := strconv.Atoi(m[3])
		return Budget{Min: n}, nil
	}
	b := Budget{Min: leastMin}
	b.Percent, _ = strconv.Atoi(m[1])
	if m[2] != "" {
		b.Min, _ = strconv.Atoi(m[2])
	}
	if b.Percent > 100 {
		return Budget{}, Errorf(CodeInvalid, "%q is not a deletion budget: more than 100 %%", text)
	}
	return b, nil
}

// DefaultPruneBudget is how many objects of a unit one sync may prune without
// being asked where nobody says otherwise.
func DefaultPruneBudget() Budget { return Budget{Percent: 50, Min: 10} }

// HeldPrunes are prunes of one sync that wait for somebody's approval.
type HeldPrunes struct {
	// Digest names them: the unit, and the name and UID of each.
	Digest string
	Refs   []Ref
	// Limit is how many of the Of objects may go without being asked.
	Limit, Of int
}

// Words say why they wait.
func (h *HeldPrunes) Words() string {
	return fmt.Sprintf("held: %d of %d objects would be pruned, at most %d go without an approval (%s)", len(h.Refs), h.Of, h.Limit, h.Digest)
}

// Declaration is what a status records of what a unit declared last.
type Declaration struct {
	// Stamp names the commits and the sources; empty when nothing is recorded.
	Stamp string
	// Refs were declared then. Undeclared were not, with the stamp of when they were
	// last; empty when that is not known.
	Refs       []Ref
	Undeclared map[Ref]string
}
