package generate

import (
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// A removal that waits, waits until it is approved or withdrawn. A plan gets
// smaller when a person holds one of its Applications or deletes one by hand; what
// is left of it must not slip under the budget by that. So which removals waited is
// kept with the set and given back in Policy.Waiting.

// waited reports whether some of these waited before, under the same budget:
// another budget is a person's word about what may go.
func (rc *reconciliation) waited(apps []*v1alpha1.Application, budget Budget) bool {
	under, members := readWaiting(rc.policy.Waiting)
	return under == budget.String() && slices.ContainsFunc(apps, func(app *v1alpha1.Application) bool {
		return members[shortOf(rc.set, app)]
	})
}

// keepWaiting says which removals wait from now on: those that did and are not
// withdrawn, and those of the plan that does. An Application that a person holds is
// of the plan that it would be in.
func (rc *reconciliation) keepWaiting(live map[string]*v1alpha1.Application, wanted map[string]bool) {
	under, before := readWaiting(rc.policy.Waiting)
	planned := map[string]bool{}
	if h := rc.decision.Held; h != nil {
		under = h.budget.String()
		for _, name := range h.Names {
			planned[name] = true
		}
		for _, app := range rc.paused {
			planned[app.Name] = true
		}
	}
	if len(planned) == 0 && len(before) == 0 {
		return
	}
	var members []uint32
	for name, app := range live {
		if one := shortOf(rc.set, app); ownedBy(app, rc.set) && !wanted[name] && (planned[name] || before[one]) {
			members = append(members, one)
		}
	}
	if len(members) > 0 {
		rc.decision.Waiting = under + ":" + writeMembers(members)
	}
}

func readWaiting(text string) (budget string, members map[uint32]bool) {
	budget, encoded, ok := strings.Cut(text, ":")
	if !ok {
		return "", nil
	}
	members, ok = readMembers(encoded)
	if !ok {
		return "", nil
	}
	return budget, members
}

// shortOf is a deletion in four bytes.
func shortOf(set *v1alpha1.ApplicationSet, app *v1alpha1.Application) uint32 {
	one := memberOf(set, app)
	return binary.BigEndian.Uint32(one[:])
}

// writeMembers are deletions in few bytes, three or four for each.
func writeMembers(members []uint32) string {
	members = slices.Sorted(slices.Values(members))
	data := make([]byte, 0, 4*len(members))
	last := uint32(0)
	for _, m := range members {
		data = binary.AppendUvarint(data, uint64(m-last))
		last = m
	}
	return base64.RawStdEncoding.EncodeToString(data)
}

// readMembers reads what writeMembers wrote; false where that is something else.
func readMembers(encoded string) (members map[uint32]bool, ok bool) {
	data, err := base64.RawStdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}
	members = map[uint32]bool{}
	at := uint64(0)
	for len(data) > 0 {
		delta, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, false
		}
		at += delta
		members[uint32(at)] = true //nolint:gosec // sums of what were 32 bits
		data = data[n:]
	}
	return members, true
}
