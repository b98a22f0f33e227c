package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/inventory"
	"github.com/rutterhq/rutter/internal/plan"
)

// refresh is how much of a unit is looked at again.
type refresh int

const (
	refreshNone refresh = iota
	// refreshKnown renders again at the revisions that are known by now.
	refreshKnown
	// refreshLatest asks the remote first.
	refreshLatest
)

// state is everything the engine remembers of one unit.
type state struct {
	mu   sync.Mutex
	unit rutter.Unit
	// These never change: its name, the value of the marker label, the name in tracking ids.
	id       rutter.UnitID
	hash     string
	instance string
	// leaving is true while the unit is being deleted or handed over: it has no
	// say any more in what becomes of its objects.
	leaving atomic.Bool

	refresh  refresh
	request  *rutter.SyncRequest // a manual sync that waits
	deletion *deletion           // set while the unit is being deleted
	handing  *handing            // set while another unit takes its objects
	// rebuild makes the next render build its objects anew even when the manifests
	// are the same, because what surrounds them changed: policy, kinds, cluster.
	rebuild bool

	server  string // key of the cluster the live entries belong to
	cluster rutter.ClusterInfo
	desired *desired
	problem error // why desired could not be computed anew; desired is then the last good one
	retries int   // failed renders in a row
	blind   int   // comparisons in a row that could not look

	live map[rutter.Ref]*entry
	// graves are the versions at which objects were seen to go: an answer that was on
	// its way meanwhile does not bring them back.
	graves  map[rutter.Ref]uint64
	changed chan struct{} // closed and replaced at every change of live or of desired

	op   *operation
	last *rutter.OperationReport
	// replaced says of a sync of an older commit, which had not succeeded, that the one
	// that runs or is next took its place.
	replaced string
	// unrecorded says that a sync waits until the record names all kinds.
	unrecorded bool
	recorded   time.Time // start of the last operation whose end is in the status
	attempted  string    // desired.key of the last automated attempt
	// drifts are the fields that differ, or did lately.
	drifts driftLog
	// declaredAt are the stamps of when what is no longer declared was declared last;
	// empty where it is known that this is not known. baseline is the stamp of the
	// status as it was at first sight.
	declaredAt map[rutter.Ref]string
	baseline   string
	// ticket has the UIDs of prunes that somebody approved, and asked says that a
	// person's sync was to prune more than may be without.
	ticket map[string]bool
	asked  bool
	// postponed says that something is to be pruned once it is known that no
	// other unit declares it.
	postponed bool

	// window says why a sync that is due is not carried out now: sync windows
	// forbid it.
	window string

	namespace namespaceState
	// orphans is the last count of what nobody declares, nil where none is wanted.
	orphans *orphans

	compared time.Time
	renders  int64
	// news is true when more than the revision may have changed since the last report.
	news bool
}

// entry is the memory of one live object.
type entry struct {
	rutter.Verdict

	gvk   rutter.GVK
	rv    uint64
	epoch int64
	// meta is shared by all that have nothing particular.
	meta *plan.Meta
	// suspect is true when only a local comparison says that it differs.
	suspect bool
	// deletedAt is when its deletion was asked for, in seconds since the epoch.
	deletedAt int64
	// foreign is set while the object carries the mark of another unit that
	// declares it too; it is shown, and not fought over.
	foreign *state
	// ceded is true where a controller is known to write a field whatever Git says.
	ceded bool
	// former is true where another tool has applied the object before us.
	former bool
	// owner is what another tool's marks on it name, nil when there are none, and
	// claimed why it is left to that tool.
	owner   *inventory.Owner
	claimed string
	// hook is which run of a hook this is, nil when it is none that we keep.
	hook *plan.HookRun
}

// operation is a sync in progress.
type operation struct {
	report     rutter.OperationReport
	key        string // desired.key it works for
	cancel     context.CancelFunc
	superseded bool
	terminated bool // somebody asked for its end
	retryAt    time.Time
	// rested are the objects of which a contested field was not sent.
	rested map[rutter.Ref]bool
	// vanished are hooks that went before they were settled, by UID, as they were last seen.
	vanished map[string]rutter.Health
	// conceded are the objects that were left to another unit or tool.
	conceded map[rutter.Ref]bool
}

// replaces says what becomes of a sync that a newer state ends before its success.
func (o *operation) replaces() string {
	return fmt.Sprintf("it took the place of the sync of %s, which had not succeeded: %s", strings.Join(o.report.Revisions, ", "), o.report.Message)
}

// supersedable reports whether a newer desired state ends the operation: every
// automated one, and a person's full sync of what is current. A sync to a chosen
// revision, or of chosen resources, is carried to its end.
func (o *operation) supersedable() bool {
	r := o.report.Request
	return r.Automated || !o.report.Partial && r.Revision == ""
}

// buried notes that an object has gone; u.mu is held.
func (u *state) buried(ref rutter.Ref, rv uint64) {
	if u.graves == nil {
		u.graves = map[rutter.Ref]uint64{}
	}
	u.graves[ref] = max(u.graves[ref], rv)
}

// outdated reports whether an answer is of an object that has been seen to go since;
// u.mu is held.
func (u *state) outdated(ref rutter.Ref, x *entry) bool {
	return x.rv != 0 && x.rv < u.graves[ref]
}

// notify wakes everybody who waits for a change of the unit; u.mu is held.
func (u *state) notify() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// supersede asks a running operation to end at its next safe point; u.mu is held.
func (u *state) supersede() {
	if u.op != nil {
		u.op.superseded = true
		u.notify()
	}
}

func resourceVersion(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0 // not comparable: every event is taken as newer
	}
	return n
}
