package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// TestPausedWhileRetrying: who pauses the automated sync in an incident stops
// the attempts that would have come, and not what a person asked for.
func TestPausedWhileRetrying(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	e := &Engine{opts: Options{Now: func() time.Time { return now }}}
	waiting := func(automated, policy bool) *state {
		u := &state{changed: make(chan struct{}), desired: &desired{key: "k"}, op: &operation{retryAt: now.Add(time.Minute)}}
		u.unit.Policy.Automated = policy
		u.op.report = rutter.OperationReport{Phase: rutter.OperationRunning, Message: "it failed", Request: rutter.SyncRequest{Automated: automated}}
		return u
	}
	u := waiting(true, false)
	if v := e.decide(u, false); v.request != nil || v.wait != 0 || u.op != nil || u.last == nil || u.last.Phase != rutter.OperationFailed ||
		!u.last.FinishedAt.Equal(now) || !strings.Contains(u.last.Message, "automated sync was turned off: it failed") {
		t.Errorf("the attempts end, and are said to have: %+v %+v", v, u.last)
	}
	if v := e.decide(u, false); v.request != nil || v.wait != 0 {
		t.Errorf("and nothing begins: %+v", v)
	}
	for name, u := range map[string]*state{"it is not paused": waiting(true, true), "a person asked for it": waiting(false, false)} {
		if v := e.decide(u, false); v.wait != time.Minute || u.op == nil {
			t.Errorf("%s: it goes on: %+v", name, v)
		}
	}
	u = waiting(true, false)
	u.request = &rutter.SyncRequest{}
	if v := e.decide(u, false); v.request == nil || v.request.Automated {
		t.Errorf("a manual sync is possible: %+v", v)
	}
}
