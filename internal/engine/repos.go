package engine

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// Repos asks Git repositories for new commits: at once when told (a webhook),
// by polling otherwise. All who read one revision of one repository share one
// look-up, and nobody is woken unless the commit has moved.
type Repos struct {
	sources  rutter.Sources
	log      *slog.Logger
	interval time.Duration
	jitter   time.Duration

	mu    sync.Mutex
	keys  map[rutter.Repo]*repoKey
	owned map[string][]rutter.Repo
	wake  chan struct{}
}

type repoKey struct {
	commit string
	failed bool
	due    time.Time
	owners map[string]func(failed bool)
}

func newRepos(opts Options) *Repos {
	return &Repos{sources: opts.Sources, log: opts.Logger, interval: opts.PollInterval, jitter: opts.PollJitter,
		keys: map[rutter.Repo]*repoKey{}, owned: map[string][]rutter.Repo{}, wake: make(chan struct{}, 1)}
}

// Subscribe calls changed whenever one of repos resolves to another commit, can
// no longer be resolved (failed), or can be again. It replaces the owner's earlier
// subscription; what both name keeps its state.
func (r *Repos) Subscribe(owner string, repos []rutter.Repo, changed func(failed bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.owned[owner]
	r.owned[owner] = repos
	for _, repo := range repos {
		k := r.keys[repo]
		if k == nil {
			k = &repoKey{owners: map[string]func(bool){}, due: r.next()}
			r.keys[repo] = k
		}
		k.owners[owner] = changed
	}
	for _, repo := range before {
		if !slices.Contains(repos, repo) {
			r.release(owner, repo)
		}
	}
	r.poke()
}

// Unsubscribe forgets an owner.
func (r *Repos) Unsubscribe(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, repo := range r.owned[owner] {
		r.release(owner, repo)
	}
	delete(r.owned, owner)
}

// release takes an owner off a repository; r.mu is held.
func (r *Repos) release(owner string, repo rutter.Repo) {
	k := r.keys[repo]
	if k == nil {
		return
	}
	if delete(k.owners, owner); len(k.owners) == 0 {
		delete(r.keys, repo)
	}
}

// Pushed says that match's repositories may have new commits; they are asked now.
func (r *Repos) Pushed(match func(rutter.Repo) bool) int {
	r.mu.Lock()
	n := 0
	for repo, k := range r.keys {
		if match(repo) {
			k.due = time.Time{}
			n++
		}
	}
	r.mu.Unlock()
	r.poke()
	return n
}

// Saw records the commit that a unit's own look-up found, so that the next poll
// has something to compare with. fresh is true when the remote was asked: if
// the commit has moved, the other owners are woken without another look-up.
func (r *Repos) Saw(repo rutter.Repo, commit string, fresh bool) {
	r.mu.Lock()
	k := r.keys[repo]
	if k == nil || k.commit == commit || k.commit != "" && !fresh {
		r.mu.Unlock()
		return
	}
	var wake []func(bool)
	if k.commit != "" {
		for _, f := range k.owners {
			wake = append(wake, f)
		}
	}
	k.commit, k.failed = commit, false
	r.mu.Unlock()
	for _, f := range wake {
		f(false)
	}
}

func (r *Repos) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next is the time of the following poll, spread by the jitter.
func (r *Repos) next() time.Time {
	if r.interval <= 0 {
		return time.Now().Add(1000 * time.Hour)
	}
	d := r.interval
	if r.jitter > 0 {
		d += rand.N(r.jitter) //nolint:gosec // spreading load, not a secret
	}
	return time.Now().Add(d)
}

func (r *Repos) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, wait := r.due()
		r.ask(ctx, due)
		if len(due) > 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-r.wake:
		case <-ctx.Done():
			return
		}
	}
}

// due returns what is to be asked now and, if nothing is, how long to wait.
func (r *Repos) due() ([]rutter.Repo, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, wait := time.Now(), time.Hour
	var due []rutter.Repo
	for repo, k := range r.keys {
		if d := k.due.Sub(now); d <= 0 {
			due = append(due, repo)
			k.due = r.next()
		} else {
			wait = min(wait, d)
		}
	}
	return due, wait
}

// ask looks all of them up at the same time; the sources join look-ups of one
// repository, and a slow repository keeps nobody else waiting.
func (r *Repos) ask(ctx context.Context, repos []rutter.Repo) {
	for _, repo := range repos {
		go r.askOne(ctx, repo)
	}
}

func (r *Repos) askOne(ctx context.Context, repo rutter.Repo) {
	snap, err := r.sources.Snapshot(ctx, repo, rutter.ResolveOptions{})
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	k := r.keys[repo]
	if k == nil {
		r.mu.Unlock()
		return
	}
	moved := err == nil && (k.failed || k.commit != snap.Revision()) || err != nil && !k.failed
	k.failed = err != nil
	if err == nil {
		k.commit = snap.Revision()
	}
	var wake []func(bool)
	if moved {
		for _, f := range k.owners {
			wake = append(wake, f)
		}
	}
	r.mu.Unlock()
	if moved {
		r.log.Info("repository moved", "repo", repo.URL, "revision", repo.Revision, "owners", len(wake), "failed", err != nil)
	}
	for _, f := range wake {
		f(err != nil)
	}
}
