package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

var (
	web      = rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	replicas = rutter.FieldDiff{Path: ".spec.replicas", Manager: "rival"}
	image    = rutter.FieldDiff{Path: `.spec.template.spec.containers[name="web"].image`, Manager: "kubectl-edit"}
	noon     = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
)

// fight has a field flipped and put back a number of times, two seconds apart.
func fight(l driftLog, now time.Time, times int, diff rutter.FieldDiff) time.Time {
	for range times {
		l.differs(web, []rutter.FieldDiff{diff}, now)
		l.heal(web, now)
		l.equal(web, now)
		now = now.Add(2 * time.Second)
	}
	return now
}

func TestContestedField(t *testing.T) {
	l := driftLog{}
	now := fight(l, noon, contestedAfter-1, replicas)
	l.differs(web, []rutter.FieldDiff{replicas}, now)
	if _, all, _ := l.resting(web, now); all {
		t.Fatalf("rests after %d repairs", contestedAfter-1)
	}
	if got := l.heal(web, now); !slices.Equal(got, []string{replicas.Path}) {
		t.Errorf("newly contested: %v", got)
	}
	l.equal(web, now)
	now = now.Add(time.Second)
	l.differs(web, []rutter.FieldDiff{replicas, image}, now)
	paths, all, until := l.resting(web, now)
	if !slices.Equal(paths, []string{replicas.Path}) || all || !until.Equal(now.Add(restFirst-time.Second)) {
		t.Errorf("the replicas rest, and the image does not: %v %v %v", paths, all, until)
	}
	want := &rutter.Drift{Since: now, Fields: []rutter.FieldDrift{
		{Path: replicas.Path, Since: now, Returned: contestedAfter, Manager: "rival", RestsUntil: until},
		{Path: image.Path, Since: now, Manager: "kubectl-edit"},
	}}
	if diff := cmp.Diff(want, l.of(web)); diff != "" {
		t.Errorf("drift (-want +got):\n%s", diff)
	}
	if l.heal(web, now); l[web][replicas.Path].pauses != 1 || len(l[web][image.Path].healed) != 1 {
		t.Error("what rests is not counted as put back")
	}
}

func TestPausesGrowAndEnd(t *testing.T) {
	l := driftLog{}
	now := fight(l, noon, contestedAfter, replicas)
	var pauses []time.Duration
	for range 6 {
		l.differs(web, []rutter.FieldDiff{replicas}, now)
		_, all, until := l.resting(web, now)
		if !all {
			t.Fatalf("after the pauses %v the next flip is put back at once", pauses)
		}
		pauses = append(pauses, until.Sub(now).Round(10*time.Second))
		now = until
		l.heal(web, now)
		l.equal(web, now)
	}
	want := []time.Duration{30 * time.Second, 90 * time.Second, 270 * time.Second, 810 * time.Second, restMost, restMost}
	if !slices.Equal(pauses, want) {
		t.Errorf("pauses %v, want %v", pauses, want)
	}
	now = now.Add(contestOver + time.Minute)
	l.equal(web, now)
	if len(l) != 0 {
		t.Errorf("a fight that is over is remembered: %v", l)
	}
	now = fight(l, now, 1, replicas)
	l.differs(web, []rutter.FieldDiff{replicas}, now)
	if _, all, _ := l.resting(web, now); all {
		t.Error("the first repair after a quiet time rests")
	}
}

func TestOtherEnginesAreContestedSooner(t *testing.T) {
	l := driftLog{}
	now := fight(l, noon, contestedByEngine, rutter.FieldDiff{Path: ".data.a", Manager: "kustomize-controller"})
	l.differs(web, []rutter.FieldDiff{{Path: ".data.a", Manager: "kustomize-controller"}}, now)
	if _, all, _ := l.resting(web, now); !all {
		t.Errorf("does not rest after %d repairs", contestedByEngine)
	}
}

func TestMissingAgainAndAgain(t *testing.T) {
	l := driftLog{}
	now := noon
	for range contestedAfter {
		l.differs(web, missing, now)
		l.heal(web, now)
		l.equal(web, now)
		now = now.Add(time.Second)
	}
	l.differs(web, missing, now)
	if _, all, _ := l.resting(web, now); !all {
		t.Error("what is deleted again and again is created again and again")
	}
}

// TestDriftIsRecalled: a restart forgets neither the age of a drift nor a fight.
func TestDriftIsRecalled(t *testing.T) {
	before := driftLog{}
	now := fight(before, noon, contestedAfter, replicas)
	before.differs(web, []rutter.FieldDiff{replicas}, now)
	after := driftLog{}
	after.recall(map[rutter.Ref]rutter.Drift{web: *before.of(web)}, now)
	after.differs(web, []rutter.FieldDiff{replicas}, now.Add(time.Second))
	if diff := cmp.Diff(before.of(web), after.of(web)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if _, all, _ := after.resting(web, now); !all {
		t.Error("the fight goes on anew")
	}
}

func TestDriftIsBounded(t *testing.T) {
	l := driftLog{}
	var diffs []rutter.FieldDiff
	for i := range 3 * mostDrifted {
		diffs = append(diffs, rutter.FieldDiff{Path: ".data.k" + string(rune('a'+i%26)) + string(rune('a'+i/26))})
	}
	l.differs(web, diffs, noon)
	if len(l[web]) != mostDrifted {
		t.Errorf("%d fields are remembered", len(l[web]))
	}
	if since, _ := l.driftingSince(); !since.Equal(noon) {
		t.Errorf("since %v", since)
	}
}
