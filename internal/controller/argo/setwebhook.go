package argo

import (
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

// listPause is the shortest time between two evaluations that events cause by
// the lists of an owner's repositories, and by services of parameters, which every
// event concerns: such a list may be long, and an owner may push many times a minute.
const listPause = time.Minute

// askedForge is a question to a hosting service.
type askedForge struct {
	query rutter.ForgeQuery
	// pulls is true for a question for pull requests, else it is for repositories.
	pulls bool
}

// questions are what a set asked beyond the control plane, by which webhooks wake it.
type questions struct {
	forges map[string]askedForge
	// plugins says that a service of parameters was asked.
	plugins bool
}

// listeners are the sets by what they asked in their last evaluation. What is
// asked is noted before it is answered, so that an event that comes meanwhile
// is not missed; what is asked no more is taken back only at the end.
type listeners struct {
	mu sync.Mutex
	by map[types.NamespacedName]*questions
	// listed is when a set was last woken for a list; later are those that will be.
	listed map[types.NamespacedName]time.Time
	later  map[types.NamespacedName]bool
}

// of returns the questions of a set; l.mu is held.
func (l *listeners) of(key types.NamespacedName) *questions {
	a := l.by[key]
	if a == nil {
		if l.by == nil {
			l.by, l.listed, l.later = map[types.NamespacedName]*questions{}, map[types.NamespacedName]time.Time{}, map[types.NamespacedName]bool{}
		}
		a = &questions{forges: map[string]askedForge{}}
		l.by[key] = a
	}
	return a
}

// noteForge remembers that a set asks a hosting service.
func (l *listeners) noteForge(key types.NamespacedName, q askedForge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(key).forges[q.key()] = q
}

// notePlugin remembers that a set asks a service of parameters.
func (l *listeners) notePlugin(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(key).plugins = true
}

// settle takes back what a set did not ask in an evaluation that came to its end.
func (l *listeners) settle(key types.NamespacedName, now []askedForge, plugins bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(now) == 0 && !plugins {
		delete(l.by, key)
		delete(l.listed, key)
		return
	}
	a := l.of(key)
	a.plugins = plugins
	clear(a.forges)
	for _, q := range now {
		a.forges[q.key()] = q
	}
}

// drop forgets a set that is gone.
func (l *listeners) drop(key types.NamespacedName) { l.settle(key, nil, false) }

// key tells questions apart.
func (q askedForge) key() string {
	raw, _ := json.Marshal(q.query) //nolint:errchkjson // plain data
	if q.pulls {
		return "pulls " + string(raw)
	}
	return "repositories " + string(raw)
}

// heard finds the sets that an event concerns: now are woken at once, the others
// after a pause.
func (l *listeners) heard(at time.Time, concerns func(q rutter.ForgeQuery, pullRequests bool) bool) (now []types.NamespacedName, after map[types.NamespacedName]time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, a := range l.by {
		wake, list := false, a.plugins
		for _, q := range a.forges {
			if !concerns(q.query, q.pulls) {
				continue
			}
			wake = wake || q.pulls
			list = list || !q.pulls
		}
		wait := listPause - at.Sub(l.listed[key])
		switch {
		case wake || list && wait <= 0:
			now = append(now, key)
			if list {
				l.listed[key] = at
			}
		case list && !l.later[key]:
			if after == nil {
				after = map[types.NamespacedName]time.Duration{}
			}
			after[key] = wait
			l.later[key] = true
		}
	}
	return now, after
}

// listNow ends the pause of a set; false when it asks nothing any more.
func (l *listeners) listNow(key types.NamespacedName, at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.later, key)
	if l.by[key] == nil {
		return false
	}
	l.listed[key] = at
	return true
}

// ForgeChanged wakes the sets that asked what a webhook may have changed, and
// all that ask a service of parameters (reference 5.12). It matches what was
// asked in the last evaluation, so it knows the questions of inner generators
// with all that was rendered into them. It returns how many sets are woken.
func (c *Controllers) ForgeChanged(concerns func(q rutter.ForgeQuery, pullRequests bool) bool) int {
	now, after := c.sets.listeners.heard(c.opts.Now(), concerns)
	for _, key := range now {
		c.sets.wake(key)
	}
	for key, wait := range after {
		time.AfterFunc(wait, func() {
			if c.sets.listeners.listNow(key, c.opts.Now()) {
				c.sets.wake(key)
			}
		})
	}
	return len(now) + len(after)
}
