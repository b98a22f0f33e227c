package daemon

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// planSources answers with the side that is looked at where the repository
// itself is meant, and fetches the rest. Which side that is travels with the
// context, because one renderer serves both.
type planSources struct {
	repo    *planRepo
	rest    rutter.Sources
	offline bool

	mu     sync.Mutex
	others map[string]bool // revisions of the repository that are neither side
	read   bool            // whether anybody reads the repository itself
}

var _ rutter.Sources = (*planSources)(nil)

// planFetchAge is how old an answer about another repository may be: both sides
// of a plan see the same.
const planFetchAge = int64(time.Hour)

type sideKey struct{}

// onSide says which commit the repository stands for.
func onSide(ctx context.Context, snap rutter.Snapshot) context.Context {
	return context.WithValue(ctx, sideKey{}, snap)
}

// Snapshot implements rutter.Sources.
func (s *planSources) Snapshot(ctx context.Context, repo rutter.Repo, _ rutter.ResolveOptions) (rutter.Snapshot, error) {
	opts := rutter.ResolveOptions{MaxAge: planFetchAge}
	if s.repo.owns(repo) {
		s.mu.Lock()
		s.read = true
		s.mu.Unlock()
		if snap, ok := ctx.Value(sideKey{}).(rutter.Snapshot); ok && s.repo.branches[repo.Revision] {
			return snap, nil
		}
		s.mu.Lock()
		if s.others == nil {
			s.others = map[string]bool{}
		}
		s.others[repo.Revision] = true
		s.mu.Unlock()
		repo.URL = s.repo.url()
		return s.rest.Snapshot(ctx, repo, opts) //nolint:wrapcheck // it names the revision
	}
	if s.offline {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "repository %q is not the one that is planned, and nothing is fetched (--offline): name its address with --url if it is", repo.URL)
	}
	return s.rest.Snapshot(ctx, repo, opts) //nolint:wrapcheck // it names the repository
}

// elsewhere names the revisions of the repository that the change does not
// touch, so that nobody takes them for checked.
func (s *planSources) elsewhere() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		return []string{"No Application and no set reads this repository itself. Its addresses are " + strings.Join(slices.Sorted(maps.Keys(s.repo.own)), ", ") +
			"; if they name it by another one, name that with --url."}
	}
	if len(s.others) == 0 {
		return nil
	}
	return []string{"Applications and sets that follow these revisions of the repository see no change: " + strings.Join(slices.Sorted(maps.Keys(s.others)), ", ") +
		". If one of them is where the change goes, name it with --branch."}
}

// planCache is the folder in which mirrors and renders are kept between plans.
// One process at a time has it; another one works in a folder of its own.
func planCache(dir string) (string, func(), error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return temporaryCache()
		}
		dir = filepath.Join(base, "rutter")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return temporaryCache()
	}
	lock, err := os.OpenFile(filepath.Join(dir, "plan.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return temporaryCache()
	}
	if !lockFile(lock) {
		_ = lock.Close()
		return temporaryCache()
	}
	return dir, func() { _ = lock.Close() }, nil
}

func temporaryCache() (string, func(), error) {
	dir, err := os.MkdirTemp("", "rutter-plan-")
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for what is fetched: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
