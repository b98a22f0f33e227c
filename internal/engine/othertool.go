package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/inventory"
)

// toolsFor is how long it is believed that another tool is at work, or is not.
const toolsFor = 10 * time.Second

// tools remember of the objects by which other GitOps tools manage things in the
// members whether they are at work.
type tools struct {
	mu    sync.Mutex
	known map[toolKey]toolState
}

type toolKey struct {
	server string
	owner  inventory.Owner
}

type toolState struct {
	at    time.Time
	alive bool
}

func newTools() *tools { return &tools{known: map[toolKey]toolState{}} }

// ownerOf is what the marks on a live object say of another tool, nil when there
// are none.
func ownerOf(obj *unstructured.Unstructured) *inventory.Owner {
	if o, ok := inventory.OwnerOf(obj); ok {
		return &o
	}
	return nil
}

// otherTool says why an object is left alone: another tool in its cluster manages
// it, and is at work. Marks whose owner is gone, or suspended, are only the past of
// an object that we take over. Empty when it may be sent.
func (e *Engine) otherTool(ctx context.Context, c rutter.Cluster, owner *inventory.Owner) (string, error) {
	if owner == nil {
		return "", nil
	}
	key, now := toolKey{c.Info().Server, *owner}, e.now()
	e.tools.mu.Lock()
	known, ok := e.tools.known[key]
	e.tools.mu.Unlock()
	if !ok || now.Sub(known.at) > toolsFor {
		alive, err := atWork(ctx, c, *owner)
		if err != nil {
			return "", fmt.Errorf("look whether %s is at work: %w", owner, err)
		}
		known = toolState{now, alive}
		e.tools.put(key, known)
	}
	if !known.alive {
		return "", nil
	}
	return fmt.Sprintf("it is managed by %s of this cluster: it is left alone. Suspend or delete that one without its objects, or take the object out of Git here", owner), nil
}

func (t *tools) put(key toolKey, state toolState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, s := range t.known {
		if state.at.Sub(s.at) > toolsFor {
			delete(t.known, k)
		}
	}
	t.known[key] = state
}

// atWork reports whether the object by which another tool manages things is there
// and not suspended. An Application whose status Rutter writes is one of ours.
func atWork(ctx context.Context, c rutter.Cluster, o inventory.Owner) (bool, error) {
	obj, err := c.Get(ctx, o.GVK, o.Namespace, o.Name)
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound:
		return false, nil
	case err != nil:
		return false, err //nolint:wrapcheck // the caller says what it was about
	}
	if suspended, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend"); suspended {
		return false, nil
	}
	for _, m := range obj.GetManagedFields() {
		if strings.HasPrefix(m.Manager, rutter.FieldManager) && m.Subresource == "status" {
			return false, nil
		}
	}
	return obj.GetDeletionTimestamp() == nil, nil
}

// toolRetry is when an object that another tool manages is looked at again.
const toolRetry = 15 * time.Second

// ownerOf is what another tool's marks on an object name, nil when there are none.
func (u *state) ownerOf(ref rutter.Ref) *inventory.Owner {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.live[ref]; x != nil && x.Exists {
		return x.owner
	}
	return nil
}

// toolWords say that another tool manages an object of a unit, empty when none
// does. Its marks come off when we take an object over: that they are there again
// says that it is at work.
func toolWords(x *entry, ref rutter.Ref) string {
	switch {
	case x == nil || x.owner == nil || !x.Exists:
		return ""
	case x.claimed != "":
		return ref.String() + ": " + x.claimed
	case x.State == rutter.Synced:
		return ref.String() + " is applied by " + x.owner.String() + " of this cluster too: let one of the two have it"
	}
	return ""
}

// leaveToTool marks an object as another tool's, and sees to it that it is looked at
// again: nobody tells when that tool has gone.
func (e *Engine) leaveToTool(u *state, op *operation, d *desired, ref rutter.Ref, words string) error {
	u.mu.Lock()
	if x := u.live[ref]; x != nil && u.desired == d {
		x.claimed, x.suspect = words, false
		x.State, x.Reason = rutter.OutOfSync, words
	}
	u.mu.Unlock()
	e.queue.addAfter(u.id, toolRetry)
	return u.concede(op, ref, rutter.Errorf(rutter.CodeConflict, "%s: %s", ref, words))
}

// reclaim looks again at the objects that were left to others: once that unit
// declares them no more, or that tool is no more at work, they are synced.
func (e *Engine) reclaim(ctx context.Context, u *state, c rutter.Cluster) {
	u.mu.Lock()
	var left []*entry
	for ref, x := range u.live {
		if x.claimed != "" {
			left = append(left, x)
		}
		if x.foreign != nil && !e.claims.declares(x.foreign, claim{u.server, ref}) {
			u.yielded(x)
		}
	}
	u.mu.Unlock()
	for _, x := range left {
		words, err := e.otherTool(ctx, c, x.owner)
		u.mu.Lock()
		if err == nil && words == "" {
			u.yielded(x)
		} else {
			e.queue.addAfter(u.id, toolRetry)
		}
		u.mu.Unlock()
	}
}

// yielded has an object that was left to another looked at and sent; u.mu is held.
func (u *state) yielded(x *entry) {
	x.foreign, x.claimed = nil, ""
	x.State, x.Reason = rutter.SyncUnknown, "was another's until now"
	u.attempted = ""
	u.notify()
}
