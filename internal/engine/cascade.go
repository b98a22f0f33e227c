package engine

import (
	"context"
	"fmt"
	"sort"

	"github.com/rutterhq/rutter"
)

// processCascade takes one step of deleting everything the unit manages:
// highest wave first, one wave at a time, the next when it is gone (reference
// 2.9). It is idempotent; after a restart it goes on from what is still there.
func (e *Engine) processCascade(ctx context.Context, u *state, unit rutter.Unit) {
	c, err := e.opts.Clusters.Lookup(unit.Target)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		e.endCascade(u, nil) // the cluster is no longer a member: nothing can be cleaned up there
		return
	}
	if err != nil {
		e.endCascade(u, err)
		return
	}
	if ready, err := e.oversees(ctx, u, unit, c); !ready {
		if err != nil {
			e.endCascade(u, err)
		}
		return
	}
	if err := e.dropHooks(ctx, u, c); err != nil {
		e.endCascade(u, err)
		e.queue.addAfter(unit.ID, retryRender(3))
		return
	}
	if _, refs, terminating := e.topWave(u); len(refs) == 0 && !terminating {
		e.endCascade(u, nil) // there is nothing that another unit might want
		return
	}
	switch rival, tried := e.awaitRival(u); {
	case rival == nil:
	case !tried:
		return // it will be known in a moment
	default:
		e.endCascade(u, rutter.Errorf(rutter.CodeUnavailable, "waits until it is known whether application %s, which cannot be rendered, declares objects of this one", rival.instance))
		return
	}
	if err := e.passClaimed(ctx, u, c); err != nil {
		e.endCascade(u, err)
		e.queue.addAfter(unit.ID, retryRender(3))
		return
	}
	e.deleteWave(ctx, u, c)
}

// oversees reports whether everything that the unit has on its cluster is seen,
// and no sync of it sends any more; an error says why that cannot be. Otherwise
// the unit is woken when it may be so.
func (e *Engine) oversees(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster) (bool, error) {
	e.settleServer(u, c.Info())
	if u.sending() {
		return false, nil // the sync that was stopped queues the unit when it has ended
	}
	if o, down := e.outage(c.Info().Server); down {
		return false, fmt.Errorf("cluster does not answer since %s: %w", o.since.UTC().Format("2006-01-02T15:04:05Z"), o.err)
	}
	if err := e.knowKinds(ctx, u, unit, c); err != nil {
		e.queue.addAfter(unit.ID, retryRender(3))
		return false, err
	}
	if !e.warmed() || !e.watchAll(u, c) {
		return false, nil // woken by Listed
	}
	if err := e.blind(u); err != nil {
		return false, err
	}
	return true, nil
}

// deleteWave deletes what is highest of what is left, and ends the cascade when
// nothing is.
func (e *Engine) deleteWave(ctx context.Context, u *state, c rutter.Cluster) {
	wave, refs, terminating := e.topWave(u)
	if len(refs) == 0 && !terminating {
		e.endCascade(u, nil)
		return
	}
	for _, x := range refs {
		live, err := c.Get(ctx, x.gvk, x.ref.Namespace, x.ref.Name)
		if err == nil && live.GetLabels()[rutter.LabelUnit] != u.hash || rutter.CodeOf(err) == rutter.CodeNotFound {
			u.mu.Lock()
			e.drop(u, x.ref) // gone, or another unit's by now
			u.mu.Unlock()
			e.queue.add(u.id)
			continue
		}
		if err != nil { // whose it is by now is not known
			e.endCascade(u, fmt.Errorf("read %s (wave %d): %w", x.ref, wave, err))
			e.queue.addAfter(u.id, retryRender(3))
			return
		}
		if e.claims.other(u, claim{c.Info().Server, x.ref}) != nil {
			e.queue.add(u.id) // another unit has come to declare it meanwhile
			continue
		}
		opts := rutter.DeleteOptions{UID: x.UID, Propagation: u.propagation()}
		if err := c.Delete(ctx, x.gvk, x.ref.Namespace, x.ref.Name, opts); err != nil {
			e.endCascade(u, fmt.Errorf("delete %s (wave %d): %w", x.ref, wave, err))
			e.queue.addAfter(u.id, retryRender(3))
			return
		}
		e.stats.Prunes.Add(1)
		u.mu.Lock()
		if y := u.live[x.ref]; y != nil {
			y.Deleting = true
		}
		u.mu.Unlock()
	}
	e.opts.Changed(u.id, false)
}

// sending reports whether a sync of the unit may still send something.
func (u *state) sending() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.op != nil && !u.op.retryAt.IsZero() {
		u.op = nil // it only waited for its next attempt
	}
	return u.op != nil
}

// knowKinds makes sure that it is known what may have been applied: from the
// status, or by rendering when the status does not say. An application that has
// been synced and of which neither is known is not taken for an empty one.
func (e *Engine) knowKinds(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster) error {
	u.mu.Lock()
	known := u.desired != nil || len(unit.KnownKinds) > 0
	u.mu.Unlock()
	if known {
		return nil
	}
	d, err := e.render(ctx, u, unit, c, false, true)
	switch {
	case err == nil:
		u.mu.Lock()
		e.adoptDesired(u, d)
		u.mu.Unlock()
	case unit.Last != nil:
		return fmt.Errorf("what was applied is not known: %w", err)
	}
	return nil
}

// endCascade records how far a deletion came; without a problem it is complete.
func (e *Engine) endCascade(u *state, err error) {
	u.mu.Lock()
	if u.cascade != nil {
		u.cascade.problem = err
		u.cascade.done = err == nil
	}
	u.mu.Unlock()
	e.opts.Changed(u.id, false)
}

// blind returns why one of the kinds to delete cannot be seen: what
// cannot be seen is never taken as absent.
func (e *Engine) blind(u *state) error {
	u.mu.Lock()
	kinds := append([]rutter.GVK(nil), u.unit.KnownKinds...)
	if u.desired != nil {
		for i := range u.desired.objects {
			kinds = append(kinds, u.desired.objects[i].gvk)
		}
	}
	server := u.server
	u.mu.Unlock()
	for _, gvk := range kinds {
		if err := e.taint(server, gvk); err != nil && rutter.CodeOf(err) != rutter.CodeNotFound {
			return fmt.Errorf("kind %s cannot be listed: %w", gvk.Kind, err)
		}
	}
	return nil
}

type victim struct {
	ref  rutter.Ref
	gvk  rutter.GVK
	UID  string
	wave int
}

// topWave returns what to delete next: the objects of the highest wave there
// is, unless something of it is terminating already.
func (e *Engine) topWave(u *state) (wave int, victims []victim, terminating bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []victim
	for ref, x := range u.live {
		if !x.Exists || x.foreign != nil || x.meta.NoDelete || e.protected(u, ref, x.Verdict) != "" || u.unit.Policy.HasOption("Delete=false") {
			continue
		}
		if x.Deleting {
			terminating = true
			continue
		}
		all = append(all, victim{ref: ref, gvk: x.gvk, UID: x.UID, wave: x.meta.Wave})
	}
	if terminating || len(all) == 0 {
		return 0, nil, terminating
	}
	sort.Slice(all, func(i, j int) bool {
		if all[i].wave != all[j].wave {
			return all[i].wave > all[j].wave
		}
		return all[i].ref.Compare(all[j].ref) < 0
	})
	wave = all[0].wave
	for _, v := range all {
		if v.wave == wave {
			victims = append(victims, v)
		}
	}
	return wave, victims, false
}

func (u *state) propagation() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cascade == nil || u.cascade.propagation == "" {
		return "foreground"
	}
	return u.cascade.propagation
}
