package plan

import (
	"fmt"
	"testing"

	"github.com/rutterhq/rutter"
)

// many is an application of which so many objects are to stay and to go.
func many(stay, going int) Input {
	budget := rutter.DefaultPruneBudget()
	in := Input{Unit: "argo/argocd/app", Budget: &budget, Complete: true, Verdicts: map[rutter.Ref]rutter.Verdict{},
		Request: rutter.SyncRequest{Automated: true, Prune: true}, Policy: rutter.SyncPolicy{AllowEmpty: true}}
	for i := range stay {
		ref := rutter.Ref{Kind: "ConfigMap", Name: fmt.Sprintf("stays-%d", i)}
		in.Desired = append(in.Desired, Desired{Ref: ref, Hash: "h"})
		in.Verdicts[ref] = rutter.Verdict{Exists: true, State: rutter.Synced, DesiredHash: "h"}
	}
	for i := range going {
		ref := rutter.Ref{Kind: "ConfigMap", Name: fmt.Sprintf("goes-%d", i)}
		in.Extras = append(in.Extras, Extra{Ref: ref, Verdict: rutter.Verdict{UID: ref.Name, Exists: true}})
	}
	return in
}

func TestHold(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		in     Input
		change func(*Input, string)
		held   bool
	}{
		"few":         {reason: "ten may always go", in: many(0, 10)},
		"too many":    {reason: "eleven of twelve", in: many(1, 11), held: true},
		"a half":      {reason: "half of many", in: many(20, 20)},
		"over a half": {reason: "one more", in: many(19, 20), held: true},
		"moved":       {reason: "what another has is not removed", in: many(1, 11), change: func(in *Input, _ string) { in.Extras[0].Protected = "another's" }},
		"approved":    {reason: "exactly these", in: many(1, 11), change: func(in *Input, digest string) { in.Approves = digest }},
		"another": {reason: "one is another object by now", in: many(1, 11), held: true, change: func(in *Input, digest string) {
			in.Approves, in.Extras[3].Verdict.UID = digest, "other"
		}},
		"the rest": {reason: "of an approved plan that was carried out in part", in: many(1, 12), change: func(in *Input, _ string) {
			in.Ticket = map[string]bool{}
			for _, x := range in.Extras {
				in.Ticket[x.Verdict.UID] = true
			}
			in.Extras = in.Extras[:11]
		}},
		"chosen": {reason: "a person named each", in: many(0, 11), change: func(in *Input, _ string) {
			in.Request.Automated = false
			for _, x := range in.Extras {
				in.Request.Resources = append(in.Request.Resources, x.Ref)
			}
		}},
		"by hand":   {reason: "a person who says prune may not know how many", in: many(0, 11), held: true, change: func(in *Input, _ string) { in.Request.Automated = false }},
		"own limit": {reason: "a budget of none", in: many(5, 1), held: true, change: func(in *Input, _ string) { in.Budget = &rutter.Budget{} }},
	} {
		t.Run(name, func(t *testing.T) {
			digest := ""
			if p := Compute(c.in); p.Held != nil {
				digest = p.Held.Digest
			}
			if c.change != nil {
				c.change(&c.in, digest)
			}
			p := Compute(c.in)
			pruned := 0
			for s := range p.Steps() {
				if s.Action == rutter.ActionPrune {
					pruned++
				}
			}
			if (p.Held != nil) != c.held || c.held == (pruned > 0) {
				t.Errorf("%s: held %+v, %d are pruned", c.reason, p.Held, pruned)
			}
		})
	}
}

func TestUnjustified(t *testing.T) {
	in := many(1, 1)
	in.Extras[0].Unjustified = "the same commit declared it"
	if p := Compute(in); !p.Empty() {
		t.Errorf("an automated sync prunes what no commit took out: %+v", p)
	}
	in.Request.Automated = false
	if p := Compute(in); p.Empty() {
		t.Error("a person may not prune it")
	}
}
