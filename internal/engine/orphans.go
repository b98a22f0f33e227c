package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// orphans is the last count of objects in a unit's namespace that nobody declares.
// It is made of names that are read and dropped; nothing is watched for it.
type orphans struct {
	at    time.Time
	count int
	// some are the first few, to begin with.
	some []string
	// problem is why they could not be counted.
	problem string
}

const (
	// orphanEvery is how often they are counted, unless somebody asks for a refresh.
	orphanEvery = 5 * time.Minute
	// orphanNames is how many are named.
	orphanNames = 3
)

// countOrphans counts when it is due. fresh says that somebody asked.
func (e *Engine) countOrphans(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, fresh bool) {
	u.mu.Lock()
	old, ready := u.orphans, u.desired != nil && u.problem == nil
	u.mu.Unlock()
	if unit.Orphans == nil || unit.Target.Namespace == "" || e.opts.Orphan == nil {
		u.mu.Lock()
		u.news = u.news || old != nil
		u.orphans = nil
		u.mu.Unlock()
		return
	}
	if !ready || e.isDown(c.Info().Server) {
		return
	}
	if old != nil && !fresh {
		if left := orphanEvery - e.now().Sub(old.at); left > 0 {
			e.queue.addAfter(unit.ID, left) // a sooner one may have taken its place
			return
		}
	}
	now := e.listOrphans(ctx, unit, c)
	e.queue.addAfter(unit.ID, orphanEvery)
	u.mu.Lock()
	u.orphans = now
	changed := old == nil || old.count != now.count || old.problem != now.problem
	u.news = u.news || changed
	u.mu.Unlock()
	if changed {
		e.opts.Changed(unit.ID, false)
	}
}

func (e *Engine) listOrphans(ctx context.Context, unit rutter.Unit, c rutter.Cluster) *orphans {
	now, info := &orphans{at: e.now()}, c.Info()
	err := c.Names(ctx, unit.Target.Namespace, func(gvk rutter.GVK) bool { return !e.excludes(gvk, info.Server) }, func(o rutter.Named) {
		if o.Owned || e.managed(info.Server, o) || !e.opts.Orphan(unit, info, o.Ref) {
			return
		}
		if now.count++; now.count <= orphanNames {
			now.some = append(now.some, o.Ref.String())
		}
	})
	if err != nil {
		now.problem = err.Error()
	}
	return now
}

// managed reports whether some unit has an object, or is about to.
func (e *Engine) managed(server string, o rutter.Named) bool {
	e.mu.RLock()
	owner := e.byHash[o.Unit]
	e.mu.RUnlock()
	return owner != nil || len(e.claims.of(claim{server, o.Ref})) > 0
}

// condition is what is said of the count; empty when that is nothing.
func (o *orphans) condition(unit rutter.Unit) (rutter.Condition, bool) {
	c := rutter.Condition{Type: rutter.CondOrphaned}
	switch {
	case o == nil || unit.Orphans == nil || !unit.Orphans.Warn:
		return c, false
	case o.problem != "":
		c.Message = "orphaned resources could not be counted: " + o.problem
	case o.count > 0:
		c.Message = fmt.Sprintf("Application has %d orphaned resources: %s", o.count, strings.Join(o.some, ", "))
		if o.count > len(o.some) {
			c.Message += ", ..."
		}
	}
	return c, c.Message != ""
}
