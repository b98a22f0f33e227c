package model

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// histories is how many a usual run goes through; RUTTER_HISTORIES changes it.
const histories = 300

// TestHistories goes through random histories. RUTTER_MODEL_SEED repeats one that
// failed; what is printed of it has been made as short as it goes.
func TestHistories(t *testing.T) {
	n, seed := number(t, "RUTTER_HISTORIES", histories), uint64(time.Now().UnixNano())
	if s := number(t, "RUTTER_MODEL_SEED", 0); s != 0 {
		n, seed = 1, uint64(s)
	}
	var writes, deletes, hooks, events int
	for i := range n {
		s := seed + uint64(i)
		all := history(rand.New(rand.NewPCG(s, 1)))
		problem, w := attempt(t, s, all)
		if problem == "" {
			writes, deletes, hooks, events = writes+w.spy.writes, deletes+w.spy.deletes, hooks+w.spy.hooks, events+len(all)
			continue
		}
		short, problem := shrink(t, s, all, problem)
		t.Errorf("RUTTER_MODEL_SEED=%d: %s", s, problem)
		for _, ev := range short {
			t.Logf("  %s", ev)
		}
		return
	}
	t.Logf("model: %d histories from seed %d: %d events, %d writes, %d deletions, %d hooks", n, seed, events, writes, deletes, hooks)
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// attempt runs a history in a time of its own.
func attempt(t *testing.T, seed uint64, events []event) (problem string, w *world) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { problem, w = run(seed, events) })
	return problem, w
}

// shrink leaves out what the failure does not need.
func shrink(t *testing.T, seed uint64, events []event, problem string) ([]event, string) {
	t.Helper()
	for again := true; again; {
		again = false
		for i := len(events) - 1; i > 0; i-- {
			fewer := slices.Delete(slices.Clone(events), i, i+1)
			if p, _ := attempt(t, seed, fewer); p != "" {
				events, problem, again = fewer, p, true
			}
		}
	}
	return events, problem
}
