package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rutterhq/rutter"
)

// TestQueue: a key is worked on by one at a time, once for any number of
// additions while it waits, and once more when it was added during the work.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue[int]()
		ctx, cancel := context.WithCancel(t.Context())
		var busy [3]atomic.Int32
		var runs [3]atomic.Int32
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					k, ok := q.next(ctx)
					if !ok {
						return
					}
					if busy[k].Add(1) > 1 {
						t.Errorf("key %d is worked on twice at a time", k)
					}
					runs[k].Add(1)
					time.Sleep(time.Second)
					busy[k].Add(-1)
					q.done(k)
				}
			})
		}
		for range 5 {
			q.add(0)
			q.add(1)
		}
		synctest.Wait()
		q.add(0) // while it is worked on
		q.add(0)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if runs[0].Load() != 2 || runs[1].Load() != 1 {
			t.Errorf("runs: %d and %d, want 2 and 1", runs[0].Load(), runs[1].Load())
		}
		q.addAfter(2, time.Minute)
		time.Sleep(59 * time.Second)
		if runs[2].Load() != 0 {
			t.Error("too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if runs[2].Load() != 1 {
			t.Error("not at its time")
		}
		time.Sleep(2 * time.Second)
		if !q.idle() {
			t.Error("not idle at the end")
		}
		cancel()
		wg.Wait()
	})
}

func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	ref := rutter.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "a"}
	build := func(change func(*state)) *state {
		d := &desired{key: "k", revisions: []string{"c1"}, index: map[rutter.Ref]int{ref: 0}}
		o := desiredObject{gvk: rutter.GVK{Version: "v1", Kind: "ConfigMap"}}
		o.Ref, o.Hash = ref, "h"
		d.objects = append(d.objects, o)
		u := &state{desired: d, live: map[rutter.Ref]*entry{}, drifts: driftLog{}, changed: make(chan struct{})}
		u.unit.Policy = rutter.SyncPolicy{Automated: true, Prune: true, SelfHeal: true}
		change(u)
		return u
	}
	drifted := func(u *state) {
		u.live[ref] = &entry{Verdict: rutter.Verdict{Exists: true, State: rutter.OutOfSync, DesiredHash: "h", UID: "u"}}
	}
	for name, tc := range map[string]struct {
		change func(*state)
		down   bool
		starts bool
		heal   bool
		reason string
	}{
		"first sync":          {change: func(*state) {}, starts: true, reason: "missing objects of a new state are synced"},
		"manual":              {change: func(u *state) { u.unit.Policy = rutter.SyncPolicy{} }, reason: "without automation nothing happens by itself"},
		"asked for":           {change: func(u *state) { u.unit.Policy, u.request = rutter.SyncPolicy{}, &rutter.SyncRequest{} }, starts: true, reason: "a person asked"},
		"cluster away":        {change: func(*state) {}, down: true, reason: "nothing is sent to a cluster that does not answer"},
		"render failed":       {change: func(u *state) { u.problem = rutter.Errorf(rutter.CodeInvalid, "broken") }, reason: "the last good state is not synced anew"},
		"drift":               {change: func(u *state) { drifted(u); u.attempted = "k" }, starts: true, heal: true, reason: "a live edit is put back"},
		"drift, no self-heal": {change: func(u *state) { drifted(u); u.attempted = "k"; u.unit.Policy.SelfHeal = false }, reason: "reference 2.12.3"},
		"after a restart": {change: func(u *state) {
			drifted(u)
			u.unit.Policy.SelfHeal = false
			u.unit.Last = &rutter.OperationReport{Phase: rutter.OperationSucceeded, Revisions: []string{"c1"}}
		}, reason: "what the status says was synced is not synced again"},
		"failed before": {change: func(u *state) {
			drifted(u)
			u.attempted = "k"
			u.last = &rutter.OperationReport{Phase: rutter.OperationFailed}
		}, reason: "a failed sync waits for the next change"},
		"deleting": {change: func(u *state) { u.leaving.Store(true) }, reason: "a unit that is going is not synced"},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Now: func() time.Time { return now }})
			got := e.decide(build(tc.change), tc.down)
			if (got.request != nil) != tc.starts || got.request != nil && got.request.SelfHeal != tc.heal {
				t.Errorf("%s: got %+v", tc.reason, got.request)
			}
		})
	}
}
