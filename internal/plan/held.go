package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/rutterhq/rutter"
)

// hold says which of the prunes wait for an approval: all of them where they are
// more than the budget, unless a person approved exactly these, or chose each of
// them. What another unit takes over is none of them.
func (in Input) hold(prunes []rutter.Step) *rutter.HeldPrunes {
	if !in.Request.Automated && len(in.Request.Resources) > 0 || in.Budget == nil {
		return nil
	}
	if len(prunes) <= in.Budget.Limit(0) {
		return nil // however many objects there are
	}
	h := &rutter.HeldPrunes{}
	for _, d := range in.Desired {
		if !d.Meta.IsHook && !d.Meta.Skip && in.Verdicts[d.Ref].Exists {
			h.Of++
		}
	}
	for _, x := range in.Extras {
		if x.Protected == "" {
			h.Of++
		}
	}
	h.Limit = in.Budget.Limit(h.Of)
	ticket := len(in.Ticket) > 0
	sorted := slices.SortedFunc(slices.Values(prunes), func(a, b rutter.Step) int { return a.Ref.Compare(b.Ref) })
	sum := sha256.New()
	sum.Write([]byte(in.Unit))
	for _, s := range sorted {
		h.Refs = append(h.Refs, s.Ref)
		sum.Write([]byte("\x00" + s.Ref.String() + "\x00" + s.UID))
		ticket = ticket && in.Ticket[s.UID]
	}
	h.Digest = hex.EncodeToString(sum.Sum(nil)[:8])
	if len(prunes) <= h.Limit || ticket || in.Approves == h.Digest {
		return nil
	}
	return h
}
