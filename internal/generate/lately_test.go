package generate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/generate"
)

// many are the elements a01 to aN.
func many(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("a%02d", i+1))
	}
	return names
}

// TestSmallRemovalsAddUp: a list that loses a few elements with every answer does
// not empty a set.
func TestSmallRemovalsAddUp(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		budget string
		// every is the pause between two answers, of which each has one element less.
		every time.Duration
		// waitsAt is how many of 12 went before the next one waits.
		waitsAt int
		say     string
	}{
		"one after the other":  {"three in an hour", "", time.Minute, 3, "1 of 10 Applications would be deleted, after 3 within 1h, at most 3 go without approval"},
		"slowly":               {"what went an hour ago is forgotten", "", 20*time.Minute + time.Second, 12, ""},
		"of another window":    {"as long as the set says", "3 per 24h", 5 * time.Hour, 3, "after 3 within 24h"},
		"of a short one":       {"and as short", "3 per 1m", 21 * time.Second, 12, ""},
		"without a memory":     {"each answer by itself", "3 per 0s", time.Minute, 12, ""},
		"a share of the whole": {"what went is of the whole too", "50% min 0", time.Minute, 6, "at most 6"},
		"nothing":              {"not the first one", "0", time.Minute, 0, "1 of 12 Applications would be deleted, at most 0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWaitRoom(t, many(12)...)
			if tc.budget != "" {
				r.notes[generate.AnnotationBudget] = tc.budget
			}
			for went := range 11 { // a set that becomes empty waits in any case
				r.policy.Now = r.policy.Now.Add(tc.every)
				deleted, held := r.decide(append(many(12-went-1), "z")...)
				if waits := went >= tc.waitsAt; waits != (held != nil) || waits == (len(deleted) == 1) {
					t.Fatalf("%s: after %d: %v, %+v", tc.reason, went, deleted, held)
				}
				if held != nil {
					if !strings.Contains(held.Reason(), tc.say) {
						t.Errorf("%s: %q, want %q", tc.reason, held.Reason(), tc.say)
					}
					// It waits on, though the hour passes.
					r.policy.Now = r.policy.Now.Add(100 * time.Hour)
					if deleted, held := r.decide(append(many(12-went-1), "z")...); held == nil || len(deleted) > 0 {
						t.Errorf("time approves nothing: %v", deleted)
					}
					return
				}
			}
		})
	}
}

// TestWhatCountsLately: what did not go, and what somebody approved by name, does
// not count.
func TestWhatCountsLately(t *testing.T) {
	all := many(12)
	for name, tc := range map[string]struct {
		reason string
		act    func(r *waitRoom)
	}{
		"put off": {"what is decided again counts once", func(r *waitRoom) { live := r.live; r.decide(all[:10]...); r.live = live; r.decide(all[:10]...) }},
		"wanted again": {"it did not go", func(r *waitRoom) {
			live := r.live
			r.decide(all[:9]...)
			r.live = live
			r.decide(all...)
			r.decide(all[:10]...)
		}},
		"approved": {"by a person, by name", func(r *waitRoom) {
			approve(r, all[:4]...)
			r.decide(append(many(10), "z1", "z2")...)
			r.decide(many(10)...)
		}},
		"an outage":      {"which forgets nothing, and adds nothing", func(r *waitRoom) { r.decide(all[:10]...); r.outage() }},
		"another memory": {"that cannot be read", func(r *waitRoom) { r.policy.Removed = "x;1:?;:;2"; r.decide(all[:10]...) }},
	} {
		r := newWaitRoom(t, all...)
		tc.act(r)
		n := len(r.live)
		names := many(n)
		if deleted, held := r.decide(names[:n-1]...); len(deleted) != 1 || held != nil {
			t.Errorf("%s: %s: two went, so one more may: %v %+v", name, tc.reason, deleted, held)
		}
		if deleted, held := r.decide(names[:n-2]...); len(deleted) != 0 || held == nil {
			t.Errorf("%s: %s: three went, so no more may: %v", name, tc.reason, deleted)
		}
	}
}

// TestTheMemoryOfRemovalsIsBounded: a set that may lose all that it has, and does so
// all the time, has room for what it must remember.
func TestTheMemoryOfRemovalsIsBounded(t *testing.T) {
	r := newWaitRoom(t, "z")
	r.notes[generate.AnnotationBudget] = "100% per 168h"
	const each, rounds = 500, 50
	for round := range rounds {
		names := []string{"z"}
		for i := range each {
			names = append(names, fmt.Sprintf("r%d-%d", round, i))
		}
		r.decide(names...)
		r.policy.Now = r.policy.Now.Add(time.Minute)
		if deleted, _ := r.decide("z"); len(deleted) != each {
			t.Fatalf("round %d: %d of %d went", round, len(deleted), each)
		}
	}
	if size := len(r.policy.Removed); size < 50<<10 || size > 200<<10 {
		t.Errorf("%d removals are remembered in %d bytes", each*rounds, size)
	}
	delete(r.notes, generate.AnnotationBudget)
	r.policy.Now = r.policy.Now.Add(2 * time.Hour)
	if r.decide("z"); r.policy.Removed != "" {
		t.Errorf("what is over is kept: %d bytes", len(r.policy.Removed))
	}
}

// approve removes all but these, as a person lets them.
func approve(r *waitRoom, names ...string) {
	r.t.Helper()
	_, held := r.decide(names...)
	r.notes[generate.AnnotationApprove] = held.Digest
	if deleted, _ := r.decide(names...); len(deleted) != len(held.Names) {
		r.t.Fatalf("%v was approved: %v", held.Names, deleted)
	}
}

// TestAnApprovalOutlivesAnOutage: an approved plan that is carried out in part goes
// on when the generators answer again.
func TestAnApprovalOutlivesAnOutage(t *testing.T) {
	all := many(8)
	r := newWaitRoom(t, all...)
	_, held := r.decide(all[:2]...)
	r.notes[generate.AnnotationApprove] = held.Digest
	live := r.live
	if deleted, _ := r.decide(all[:2]...); len(deleted) != 6 || r.policy.Ticket == "" {
		t.Fatalf("an approved plan is carried out: %v", deleted)
	}
	r.live = slices.Delete(slices.Clone(live), 2, 4) // two went, then the process was killed
	r.outage()
	if deleted, held := r.decide(all[:2]...); len(deleted) != 4 || held != nil {
		t.Errorf("the rest of it: %v %+v", deleted, held)
	}
	// Who takes the approval back stops it, also during the outage.
	r = newWaitRoom(t, all...)
	_, held = r.decide(all[:2]...)
	r.notes[generate.AnnotationApprove] = held.Digest
	live = r.live
	r.decide(all[:2]...)
	r.live = live
	delete(r.notes, generate.AnnotationApprove)
	if r.outage(); r.policy.Ticket != "" {
		t.Errorf("an approval that was taken back is kept: %s", r.policy.Ticket)
	}
}

func TestBudgetWindows(t *testing.T) {
	for text, want := range map[string]struct {
		window time.Duration
		shown  string
	}{
		"10% per 24h":        {24 * time.Hour, "10% min 3 per 24h"},
		"10% min 5, per 30m": {30 * time.Minute, "10% min 5 per 30m"},
		"7 per 90m":          {90 * time.Minute, "7 per 1h30m"},
		"7 per 1h":           {0, "7"},
		"7 per 60m":          {0, "7"},
		"7 per 0s":           {-1, "7 per 0s"},
		"7 per 90s":          {90 * time.Second, "7 per 1m30s"},
		"7 per 10s":          {10 * time.Second, "7 per 10s"},
	} {
		b, err := generate.ParseBudget(text)
		if err != nil || b.Window != want.window || b.String() != want.shown {
			t.Errorf("%q: %+v %q %v, want %v %q", text, b, b, err, want.window, want.shown)
		}
		if again, err := generate.ParseBudget(b.String()); err != nil || again != b {
			t.Errorf("%q is read as it is written: %v %v", text, again, err)
		}
	}
	for _, text := range []string{"per 1h", "7 per", "7 per day", "7 per 169h", "7 per 1ms", "7 per -1h", "7 per 1h per 1h"} {
		if _, err := generate.ParseBudget(text); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%q is refused: %v", text, err)
		}
	}
}
