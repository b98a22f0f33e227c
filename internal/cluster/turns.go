package cluster

import (
	"container/list"

	"github.com/rutterhq/rutter"
)

// turns are those who wait, by the unit that they work for. Units are served by
// turns, so that a repair of one object does not wait for the whole of another
// unit's large sync.
type turns struct {
	lanes map[rutter.UnitID]*list.List // of *turn, none empty
	order list.List                    // of rutter.UnitID, the next one first
	n     int
}

// turn is one who waits; begin is closed when it may go.
type turn struct {
	begin chan struct{}
	of    rutter.UnitID
	at    *list.Element // nil once it has been called
}

// Len is how many wait.
func (t *turns) Len() int { return t.n }

// push adds one at the end of its unit's lane.
func (t *turns) push(of rutter.UnitID) *turn {
	lane := t.lanes[of]
	if lane == nil {
		if t.lanes == nil {
			t.lanes = map[rutter.UnitID]*list.List{}
		}
		lane = list.New()
		t.lanes[of] = lane
		t.order.PushBack(of)
	}
	x := &turn{begin: make(chan struct{}), of: of}
	x.at = lane.PushBack(x)
	t.n++
	return x
}

// next calls the first of the lane whose turn it is; there must be one.
func (t *turns) next() {
	first := t.order.Front()
	lane := t.lanes[first.Value.(rutter.UnitID)] //nolint:forcetypeassert // nothing else is put there
	t.order.MoveToBack(first)
	x := lane.Front().Value.(*turn) //nolint:forcetypeassert // likewise
	t.remove(x)
	close(x.begin)
}

// remove takes one out who does not wait any more.
func (t *turns) remove(x *turn) {
	lane := t.lanes[x.of]
	lane.Remove(x.at)
	x.at = nil
	t.n--
	if lane.Len() > 0 {
		return
	}
	delete(t.lanes, x.of)
	for e := t.order.Front(); e != nil; e = e.Next() {
		if e.Value == x.of {
			t.order.Remove(e)
			return
		}
	}
}
