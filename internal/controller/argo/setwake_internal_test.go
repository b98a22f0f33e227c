package argo

import (
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/engine"
)

// TestWakingNeverWaits: whoever wakes sets goes on, whether anybody takes what is
// woken or not, and nothing of it is lost.
func TestWakingNeverWaits(t *testing.T) {
	var w wakes
	const many = 5000
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		for range 3 {
			for i := range many {
				w.add(setKey(string(rune('a' + i%26))))
			}
		}
	}()
	select {
	case <-woken:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody takes what is woken, and who wakes waits for that")
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := w.start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if n := queue.Len(); n != 26 || len(w.early) != 0 {
		t.Errorf("what was woken before: %d of 26, %d kept", n, len(w.early))
	}
	w.add(setKey("later"))
	if n := queue.Len(); n != 27 {
		t.Errorf("what is woken then is not taken: %d", n)
	}
	queue.ShutDown()
	w.add(setKey("after the end")) // it is of no use, and no harm
}

// TestTeardownAwaitsTheMembers: a set that is deleted before the clusters are known
// is torn down when they are: a cluster that is not known yet is not one that is
// gone, whose objects are left behind.
func TestTeardownAwaitsTheMembers(t *testing.T) {
	s := newApplicationSets(&Controllers{opts: Options{Now: time.Now}})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := s.wakes.start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if s.ready(setKey("a")) || queue.Len() != 0 {
		t.Fatal("nothing is known")
	}
	if s.prime(); !s.ready(setKey("a")) || queue.Len() != 1 {
		t.Errorf("and then it is woken, and not before: %d", queue.Len())
	}
}

// TestForgottenSetsHandNothingOver: nothing is left of the hand-overs of a set that is
// gone, which nobody would end.
func TestForgottenSetsHandNothingOver(t *testing.T) {
	e := engine.New(engine.Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	s := newApplicationSets(&Controllers{opts: Options{Now: time.Now, Engine: e}})
	from, other := unitID(setKey("a")), unitID(setKey("b"))
	e.Upsert(rutter.Unit{ID: from})
	if _, err := e.HandOver(from, other); err != nil {
		t.Fatal(err)
	}
	s.moves.releasing(from, setKey("gone"))
	s.moves.releasing(other, setKey("there"))
	s.forget(setKey("gone"))
	if _, ok := s.moves.releaser(from); ok {
		t.Error("a set that is gone still hands over")
	}
	if _, ok := s.moves.releaser(other); !ok {
		t.Error("so does one that is there no more")
	}
}
