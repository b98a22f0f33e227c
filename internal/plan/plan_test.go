package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

func object(kind, name string, wave int) Desired {
	return Desired{Ref: rutter.Ref{Kind: kind, Namespace: "ns", Name: name}, Hash: "h-" + name, Meta: Meta{Wave: wave}}
}

func synced(d Desired) rutter.Verdict {
	return rutter.Verdict{Exists: true, State: rutter.Synced, DesiredHash: d.Hash, UID: "u"}
}

// shape draws a plan as lines: phase/wave: batches of action name, separated by |.
func shape(p rutter.Plan) []string {
	var out []string
	for _, g := range p.Groups {
		s := fmt.Sprintf("%s/%d:", g.Phase, g.Wave)
		for i, b := range g.Batches {
			if i > 0 {
				s += " |"
			}
			for _, st := range b {
				s += fmt.Sprintf(" %s %s", st.Action, st.Ref.Name)
			}
		}
		for _, r := range g.Await {
			s += " (await " + r.Name + ")"
		}
		out = append(out, s)
	}
	return out
}

func TestCompute(t *testing.T) {
	job := object("Job", "migrate", 0)
	job.Meta.IsHook, job.Meta.Hooks = true, []rutter.Phase{rutter.PhasePreSync}
	crd := object("CustomResourceDefinition", "widgets", 5)
	crd.DefinesGroup, crd.DefinesKind = "x.io", "Widget"
	widget := Desired{Ref: rutter.Ref{Group: "x.io", Kind: "Widget", Namespace: "ns", Name: "w"}, Hash: "w"}
	refused := object("Secret", "no", 0)
	refused.Refused = "not permitted"
	extra := Extra{Ref: rutter.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "old"}, Version: "v1", Verdict: rutter.Verdict{Exists: true, UID: "u1"}}
	first, second := object("Deployment", "first", 0), object("Deployment", "second", 1)
	ns := Desired{Ref: rutter.Ref{Kind: "Namespace", Name: "ns"}, Hash: "ns", Meta: Meta{Wave: 3}}

	for name, tc := range map[string]struct {
		reason string
		in     Input
		want   []string
		left   []rutter.Action
	}{
		"kinds in order": {
			reason: "within a wave kinds follow the table, each kind a batch of its own",
			in:     Input{Desired: []Desired{object("Deployment", "d", 0), object("ConfigMap", "c", 0), object("Service", "s", 0), object("ConfigMap", "b", 0)}},
			want:   []string{"Sync/0: apply b apply c | apply s | apply d"},
		},
		"equal is not sent": {
			reason: "an object that is known to be equal costs nothing",
			in:     Input{Desired: []Desired{first}, Verdicts: map[rutter.Ref]rutter.Verdict{first.Ref: synced(first)}},
			left:   []rutter.Action{rutter.ActionLeave},
		},
		"waves wait for the unchanged too": {
			reason: "a wave starts only when the earlier one is healthy, sent or not",
			in:     Input{Desired: []Desired{first, second}, Verdicts: map[rutter.Ref]rutter.Verdict{first.Ref: synced(first)}},
			want:   []string{"Sync/0: (await first)", "Sync/1: apply second"},
			left:   []rutter.Action{rutter.ActionLeave},
		},
		"hooks come first": {
			reason: "PreSync runs to its end before the workload changes",
			in:     Input{Desired: []Desired{first, job}},
			want:   []string{"PreSync/0: apply migrate", "Sync/0: apply first"},
		},
		"no hooks in a repair": {
			reason: "a self-heal is a partial sync, which runs no hooks",
			in:     Input{Desired: []Desired{first, job}, Request: rutter.SyncRequest{SelfHeal: true, Resources: []rutter.Ref{first.Ref}}},
			want:   []string{"Sync/0: apply first"}, left: []rutter.Action{rutter.ActionSkip},
		},
		"definition before its objects": {
			reason: "a CRD of a later wave moves before the first object of its kind",
			in:     Input{Desired: []Desired{widget, crd}},
			want:   []string{"Sync/0: apply widgets | apply w"},
		},
		"namespace before what lives in it": {
			reason: "likewise a Namespace",
			in:     Input{Desired: []Desired{first, ns}},
			want:   []string{"Sync/0: apply ns | apply first"},
		},
		"prune needs the request": {
			reason: "what is not declared is only reported where pruning is off",
			in:     Input{Desired: []Desired{first}, Extras: []Extra{extra}, Complete: true},
			want:   []string{"Sync/0: apply first"}, left: []rutter.Action{rutter.ActionSkip},
		},
		"prune needs a complete render": {
			reason: "a render that failed is no reason to delete",
			in:     Input{Desired: []Desired{first}, Extras: []Extra{extra}, Request: rutter.SyncRequest{Prune: true}},
			want:   []string{"Sync/0: apply first"}, left: []rutter.Action{rutter.ActionSkip},
		},
		"prune": {
			reason: "prunes come before creates",
			in:     Input{Desired: []Desired{first}, Extras: []Extra{extra}, Complete: true, Request: rutter.SyncRequest{Prune: true}},
			want:   []string{"Sync/0: prune old | apply first"},
		},
		"refused": {
			reason: "what policy refuses is carried in the plan with its reason",
			in:     Input{Desired: []Desired{first, refused}},
			want:   []string{"Sync/0: apply first"}, left: []rutter.Action{rutter.ActionRefuse},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Compute(tc.in)
			if d := cmp.Diff(tc.want, shape(p)); d != "" {
				t.Errorf("%s:\n%s", tc.reason, d)
			}
			var left []rutter.Action
			for _, s := range p.Left {
				left = append(left, s.Action)
			}
			if d := cmp.Diff(tc.left, left); d != "" {
				t.Errorf("%s: left:\n%s", tc.reason, d)
			}
		})
	}
}

func TestWipeOut(t *testing.T) {
	extra := Extra{Ref: rutter.Ref{Kind: "ConfigMap", Name: "old"}, Verdict: rutter.Verdict{Exists: true, UID: "u"}}
	in := Input{Extras: []Extra{extra}, Complete: true, Request: rutter.SyncRequest{Automated: true, Prune: true}}
	if p := Compute(in); p.Refusal == "" || !p.Empty() {
		t.Errorf("an automated sync that leaves nothing must be refused, got %v", shape(p))
	}
	in.Policy.AllowEmpty = true
	if p := Compute(in); p.Refusal != "" || p.Empty() {
		t.Errorf("allowEmpty allows it, got %q", p.Refusal)
	}
}

func TestPruneOrderMirrorsWaves(t *testing.T) {
	var extras []Extra
	for wave := range 3 {
		extras = append(extras, Extra{Ref: rutter.Ref{Kind: "ConfigMap", Name: fmt.Sprint("w", wave)}, Verdict: rutter.Verdict{Exists: true, UID: "u"}, Meta: Meta{Wave: wave}})
	}
	p := Compute(Input{Desired: []Desired{object("ConfigMap", "stays", 0)}, Extras: extras, Complete: true, Request: rutter.SyncRequest{Prune: true}})
	want := []string{"Sync/0: prune w2 | apply stays", "Sync/1: prune w1", "Sync/2: prune w0"}
	if d := cmp.Diff(want, shape(p)); d != "" {
		t.Error(d)
	}
}

// TestNeverPrunesMoreThanAllowed draws inputs at random: whatever they are, a
// prune is planned only for an extra with an identity, with a complete render,
// a request for it, and neither annotation nor protection against it.
func TestNeverPrunesMoreThanAllowed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		in := Input{Complete: r.IntN(2) == 0, Request: rutter.SyncRequest{Prune: r.IntN(2) == 0}, Desired: []Desired{object("ConfigMap", "d", r.IntN(3))}}
		for i := range r.IntN(4) {
			x := Extra{Ref: rutter.Ref{Kind: "ConfigMap", Name: fmt.Sprint(i)}, Meta: Meta{NoPrune: r.IntN(3) == 0, PruneLast: r.IntN(3) == 0, Wave: r.IntN(4)}}
			if r.IntN(3) > 0 {
				x.Verdict.UID = "u"
			}
			if r.IntN(3) == 0 {
				x.Protected = "a reason"
			}
			in.Extras = append(in.Extras, x)
		}
		seen := map[rutter.Ref]int{}
		for _, g := range Compute(in).Groups {
			for _, b := range g.Batches {
				for _, s := range b {
					seen[s.Ref]++
					if s.Action != rutter.ActionPrune {
						continue
					}
					x := in.Extras[slices.IndexFunc(in.Extras, func(x Extra) bool { return x.Ref == s.Ref })]
					if !in.Complete || !in.Request.Prune || x.Meta.NoPrune || x.Protected != "" || x.Verdict.UID == "" || s.UID != x.Verdict.UID {
						t.Fatalf("pruned %v from %+v", s, in)
					}
				}
			}
		}
		for ref, n := range seen {
			if n > 1 {
				t.Fatalf("%s is in the plan %d times", ref, n)
			}
		}
	}
}

func TestMetaOf(t *testing.T) {
	for name, tc := range map[string]struct {
		in   map[string]string
		want Meta
	}{
		"plain":         {map[string]string{}, Meta{}},
		"wave":          {map[string]string{annWave: "-3"}, Meta{Wave: -3}},
		"invalid wave":  {map[string]string{annWave: "x", annHelmWeight: "2"}, Meta{Wave: 2}},
		"options":       {map[string]string{annOptions: "Prune=false, Delete=false"}, Meta{NoPrune: true, NoDelete: true}},
		"manner":        {map[string]string{annOptions: "Replace=true,Force=true , Validate=false, ServerSideApply=false"}, Meta{Replace: true, Force: true, Unvalidated: true}},
		"unknown":       {map[string]string{annOptions: "Repalce=true"}, Meta{Unsupported: []string{`"Repalce=true" is no sync option`}}},
		"hook":          {map[string]string{annHook: "PreSync"}, Meta{IsHook: true, Hooks: []rutter.Phase{rutter.PhasePreSync}, Delete: []string{BeforeHookCreation}, DeleteUnset: true}},
		"skip":          {map[string]string{annHook: "Skip"}, Meta{Skip: true}},
		"unknown hook":  {map[string]string{annHook: "Sometimes"}, Meta{IsHook: true, Delete: []string{BeforeHookCreation}, DeleteUnset: true}},
		"helm":          {map[string]string{annHelmHook: "pre-install,pre-upgrade", annHelmDelete: "hook-succeeded"}, Meta{IsHook: true, Hooks: []rutter.Phase{rutter.PhasePreSync}, Delete: []string{HookSucceeded}}},
		"helm test":     {map[string]string{annHelmHook: "test"}, Meta{IsHook: true, Delete: []string{BeforeHookCreation}, DeleteUnset: true}},
		"helm delete":   {map[string]string{annHelmHook: "pre-delete,post-delete", annHelmDelete: "hook-failed"}, Meta{IsHook: true, PreDelete: true, PostDelete: true, Delete: []string{HookFailed}}},
		"delete hooks":  {map[string]string{annHook: "PostSync,PostDelete"}, Meta{IsHook: true, PostDelete: true, Hooks: []rutter.Phase{rutter.PhasePostSync}, Delete: []string{BeforeHookCreation}, DeleteUnset: true}},
		"crd-install":   {map[string]string{annHelmHook: "crd-install"}, Meta{}},
		"argo wins":     {map[string]string{annHook: "PostSync", annHelmHook: "pre-install"}, Meta{IsHook: true, Hooks: []rutter.Phase{rutter.PhasePostSync}, Delete: []string{BeforeHookCreation}, DeleteUnset: true}},
		"keep":          {map[string]string{annHelmPolicy: "keep"}, Meta{NoDelete: true}},
		"ignore health": {map[string]string{annIgnoreHealth: "true"}, Meta{IgnoreHealth: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, MetaOf(tc.in)); d != "" {
				t.Error(d)
			}
		})
	}
}
