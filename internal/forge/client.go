package forge

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
)

// Options configure a Client. Nothing is required; what a query needs and is
// not there (a Secret, an App) is an error of that query.
type Options struct {
	Logger *slog.Logger
	// Hosts are the APIs that may be asked, each a host with its port or the
	// beginning of a URL. When it is empty, all may. The public address of a provider, for
	// which a query names no API, always may.
	Hosts []string

	// Secrets and ConfigMap return what a key of a Secret or a ConfigMap holds.
	Secrets   func(ctx context.Context, ref rutter.SecretRef) (string, error)
	ConfigMap func(ctx context.Context, ref rutter.SecretRef) (string, error)
	// GitHubApp returns the App that a repo-creds Secret describes.
	GitHubApp func(ctx context.Context, secretName string) (*rutter.GitHubApp, error)
	// RootCA are certificates (PEM) of authorities that are trusted beside the
	// system's, where a query names none of its own.
	RootCA string
	// AWS returns the identity of this process at AWS; MachineIdentity finds the usual ones.
	AWS func(ctx context.Context) (AWSKey, error)
	// STS is the address of AWS' token service, empty for that of the region.
	STS string

	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Timeout ends one request, WalkTimeout all requests of one query, and
	// MaxWait is the longest that a query waits for a quota to come back.
	Timeout     time.Duration
	WalkTimeout time.Duration
	MaxWait     time.Duration
	// Pause is how long it takes until what failed in passing is asked again, and
	// twice as long for the time after that.
	Pause time.Duration
	// MaxBody bounds one answer, MaxPages the pages of one list, and CacheBytes
	// the answers that are kept for conditional requests.
	MaxBody    int64
	MaxPages   int
	CacheBytes int64
	// Parallel is how many requests one query has on their way at once.
	Parallel int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of what is injected
	}
	o.Timeout = positive(o.Timeout, 30*time.Second)
	o.WalkTimeout = positive(o.WalkTimeout, 10*time.Minute)
	o.MaxWait = positive(o.MaxWait, time.Minute)
	o.Pause = positive(o.Pause, 250*time.Millisecond)
	o.MaxBody = positive(o.MaxBody, 32<<20)
	o.MaxPages = positive(o.MaxPages, 1000)
	o.CacheBytes = positive(o.CacheBytes, 64<<20)
	o.Parallel = positive(o.Parallel, 4)
	return o
}

func positive[N ~int | ~int64](n, otherwise N) N {
	if n <= 0 {
		return otherwise
	}
	return n
}

// Client implements rutter.Forges. It is safe for concurrent use.
type Client struct {
	opts Options

	// Equal queries at the same moment share one walk.
	repositories fresh.Flight[[]rutter.ForgeRepo]
	pullRequests fresh.Flight[[]rutter.ForgePullRequest]
	paths        fresh.Flight[bool]

	answers *shelf
	routes  fresh.Table[*http.Client]
	quotas  ledger
	apps    fresh.Table[*appToken]
	roles   fresh.Table[*role]

	requests, notModified, waits, refused atomic.Int64
	// heard counts the events after which nobody joins an older walk.
	heard atomic.Int64
}

var _ rutter.Forges = (*Client)(nil)

// New returns a Client. It opens connections when it is asked something.
func New(opts Options) *Client {
	c := &Client{opts: opts.withDefaults()}
	c.answers = newShelf(c.opts.CacheBytes)
	c.routes.Most, c.apps.Most, c.roles.Most = 256, 1024, 1024
	return c
}

// Heard says that something has changed at a service: who asks from now on does
// not join a walk that may have passed the place already.
func (c *Client) Heard() { c.heard.Add(1) }

// provider speaks the API of one hosting service.
type provider interface {
	// api is where the API begins, for a query that passed check.
	api(q rutter.ForgeQuery) (string, error)
	repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error)
	pullRequests(ctx context.Context, s *session) ([]rutter.ForgePullRequest, error)
	// pathExists is asked for a path that is clean and not empty.
	pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, path string) (bool, error)
}

// Repositories implements rutter.Forges.
func (c *Client) Repositories(ctx context.Context, q rutter.ForgeQuery) ([]rutter.ForgeRepo, error) {
	s, err := c.open(ctx, q, "the repositories of "+quote(q.Owner))
	if err != nil {
		return nil, err
	}
	found, err := c.repositories.Do(ctx, s.key("repositories"), 0, within(ctx, c, func(ctx context.Context) ([]rutter.ForgeRepo, error) {
		found, err := s.provider.repositories(ctx, s)
		if err != nil {
			return nil, err
		}
		return sortedRepos(found), nil
	}))
	if err != nil {
		return nil, err
	}
	return append([]rutter.ForgeRepo(nil), found...), nil
}

// PullRequests implements rutter.Forges.
func (c *Client) PullRequests(ctx context.Context, q rutter.ForgeQuery) ([]rutter.ForgePullRequest, error) {
	s, err := c.open(ctx, q, "the pull requests of "+quote(pullRequestsOf(q)))
	if err != nil {
		return nil, err
	}
	found, err := c.pullRequests.Do(ctx, s.key("pullRequests"), 0, within(ctx, c, func(ctx context.Context) ([]rutter.ForgePullRequest, error) {
		found, err := s.provider.pullRequests(ctx, s)
		if err != nil {
			return nil, err
		}
		return chosen(found, q.Labels), nil
	}))
	if err != nil {
		return nil, err
	}
	return append([]rutter.ForgePullRequest(nil), found...), nil
}

// PathExists implements rutter.Forges.
func (c *Client) PathExists(ctx context.Context, q rutter.ForgeQuery, repo rutter.ForgeRepo, path string) (bool, error) {
	clean, err := cleanPath(path)
	if err != nil {
		return false, err
	}
	if err := checkRepo(repo); err != nil {
		return false, err
	}
	s, err := c.open(ctx, q, "the path "+quote(clean)+" in branch "+quote(repo.Branch)+" of "+quote(repo.Repository))
	if err != nil {
		return false, err
	}
	if clean == "" {
		return true, nil // a branch has a root
	}
	key := s.key("path", repo.Organization, repo.Repository, repo.RepositoryID, repo.Branch, repo.SHA, clean)
	return c.paths.Do(ctx, key, 0, within(ctx, c, func(ctx context.Context) (bool, error) {
		return s.provider.pathExists(ctx, s, repo, clean)
	}))
}

// within gives shared work the deadline of who began it, and its own: the
// flight takes care of those who leave, but not of the time.
func within[T any](asker context.Context, c *Client, work func(context.Context) (T, error)) func(context.Context) (T, error) {
	until := time.Now().Add(c.opts.WalkTimeout) //nolint:forbidigo // compared with a context's deadline, which has this clock
	if d, ok := asker.Deadline(); ok && d.Before(until) {
		until = d
	}
	return func(ctx context.Context) (T, error) {
		ctx, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		return work(ctx)
	}
}
