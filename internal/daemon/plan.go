package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/controller/argo"
	"github.com/rutterhq/rutter/internal/policy"
	"github.com/rutterhq/rutter/internal/preview"
	"github.com/rutterhq/rutter/internal/render/osdir"
)

// Worktree as the head of a plan means the files as they lie on disk.
const Worktree = "worktree"

// PlanConfig is what Plan needs.
type PlanConfig struct {
	// Repo is a clone of the repository; Base and Head are two revisions of it,
	// Head may be Worktree.
	Repo, Base, Head string
	// Roots are the folders in which declarations are looked for.
	Roots []string
	// URLs are the addresses of the repository; empty means those of its remotes.
	URLs []string
	// Branches are revisions of the repository that mean whichever side is looked
	// at, beside HEAD, its default branch and Base where that is a branch.
	Branches []string
	// Namespace is the control plane's.
	Namespace string
	// Inventory are the members; nil means that they are not known, unless REST is set.
	Inventory *preview.Inventory
	// REST reaches a control plane, for members, projects, credentials, keys and
	// settings; nil asks nobody.
	REST *rest.Config
	// KubeVersion is what charts see of a cluster of which no version is known.
	KubeVersion string
	// Offline fetches no other repository.
	Offline bool
	// CacheDir keeps mirrors and renders; empty means the user's cache folder.
	CacheDir    string
	Plugins     string
	PluginTools []string
	Logger      *slog.Logger
}

// Plan says what would happen to the fleet if the head took the base's place:
// both sides are discovered, generated and rendered by the controller's own
// code, and nothing is changed anywhere.
func Plan(ctx context.Context, cfg PlanConfig) (preview.Plan, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if len(cfg.Roots) == 0 {
		cfg.Roots = []string{"."}
	}
	dir, release, err := planCache(cfg.CacheDir)
	if err != nil {
		return preview.Plan{}, err
	}
	defer release()
	repo, err := openPlanRepo(ctx, cfg.Repo, cfg.URLs, cfg.Branches)
	if err != nil {
		return preview.Plan{}, err
	}
	p := &planner{cfg: cfg, repo: repo, barren: openBarren(dir), files: map[string]parsedFile{}}
	if err := p.open(ctx, dir); err != nil {
		return preview.Plan{}, err
	}
	defer p.close()
	if p.base, p.head, err = p.sides(ctx); err != nil {
		return preview.Plan{}, err
	}
	for _, s := range []*planSide{p.base, p.head} {
		if err := p.expand(onSide(ctx, s.snap), s); err != nil {
			return preview.Plan{}, err
		}
	}
	result, err := p.compare(ctx)
	if err != nil {
		return preview.Plan{}, err
	}
	p.barren.save()
	if p.cfg.REST != nil {
		if err := p.drift(ctx, &result); err != nil {
			return preview.Plan{}, fmt.Errorf("compare with the clusters: %w", err)
		}
	}
	return result, nil
}

// planner is one call of Plan.
type planner struct {
	cfg       PlanConfig
	repo      *planRepo
	rendering *rendering
	sources   *planSources
	inventory preview.Inventory
	// projects are those of the control plane.
	projects map[string]*v1alpha1.AppProject
	// around is what counts for projects besides their specs, there.
	around surroundings
	// control is the control plane; nil when none is asked. sets is what its
	// operator decided for all ApplicationSets, as far as that is written there.
	control client.Client
	sets    argo.SetOptions
	// uids are those of sets and Applications on the control plane, by kind, namespace and name.
	uids map[string]ktypes.UID
	// liveSets are the sets of the control plane that read the repository.
	liveSets []*v1alpha1.ApplicationSet
	barren   *barren
	files    map[string]parsedFile // by hash of their content
	// governed are the places that Applications which declare others render: what
	// lies there is no declaration of its own.
	governed governed
	base     *planSide
	head     *planSide
	notes    []string
	closes   []func()
}

// planSide is one of the two states.
type planSide struct {
	name  string
	snap  rutter.Snapshot
	files []declared
	// unread are files that could not be read.
	unread []string

	projects map[string]*v1alpha1.AppProject
	sets     map[string]*planSet
	units    map[string]*planUnit

	around surroundings

	mu       sync.Mutex // guards what follows
	problems []preview.Problem
	inForce  map[string]*policy.Project // those that were asked for
}

func (p *planner) open(ctx context.Context, dir string) error {
	rc := renderingConfig{plugins: p.cfg.Plugins, pluginTools: p.cfg.PluginTools, keep: true,
		sourceConfig: sourceConfig{dir: dir, submodules: true, logger: p.cfg.Logger},
		fetch: func(rest rutter.Sources) rutter.Sources {
			p.sources = &planSources{repo: p.repo, rest: rest, offline: p.cfg.Offline}
			return p.sources
		}}
	var err error
	if p.rendering, _, err = openRendering(rc); err != nil {
		return err
	}
	p.closes = append(p.closes, func() { _ = p.rendering.Close() }) // all of it can be made again
	if p.cfg.REST != nil {
		if err := p.live(ctx); err != nil {
			return err
		}
	}
	switch {
	case p.cfg.Inventory != nil:
		p.inventory = *p.cfg.Inventory
	case p.cfg.REST == nil:
		p.notes = append(p.notes, "No inventory of clusters was given: charts see Kubernetes "+p.cfg.KubeVersion+", and sets that read the clusters are not evaluated. See --inventory.")
	}
	return nil
}

func (p *planner) close() {
	for _, c := range p.closes {
		c()
	}
}

// sides opens both states.
func (p *planner) sides(ctx context.Context) (base, head *planSide, err error) {
	if base, err = p.side(ctx, p.cfg.Base, true); err != nil {
		return nil, nil, fmt.Errorf("--base: %w", err)
	}
	if head, err = p.side(ctx, cmp.Or(p.cfg.Head, "HEAD"), false); err != nil {
		return nil, nil, fmt.Errorf("--head: %w", err)
	}
	p.behind(ctx, base, head)
	return base, head, nil
}

// behind notes that the head lacks commits of the base: the plan shows them as
// taken back, which a merge would not do.
func (p *planner) behind(ctx context.Context, base, head *planSide) {
	commit := head.snap.Revision()
	if head.name == Worktree {
		commit = "HEAD"
	}
	if n := p.repo.missing(ctx, base.snap.Revision(), commit); n > 0 {
		p.note(fmt.Sprintf("%s lacks commits of %s (%d), and this plan takes them back: merge them into it first, or compare with where it left (--base $(git merge-base %s %s)).",
			head.name, base.name, n, base.name, cmp.Or(strings.TrimPrefix(head.name, Worktree), "HEAD")))
	}
}

func (p *planner) side(ctx context.Context, name string, track bool) (*planSide, error) {
	s := &planSide{name: name}
	if name == Worktree {
		if p.repo.top == "" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s has no work tree: name a revision", p.repo.path)
		}
		dir, err := osdir.Open(p.repo.top)
		if err != nil {
			return nil, err
		}
		p.closes = append(p.closes, func() { _ = dir.Close() })
		s.snap = dir
		return s, nil
	}
	commit, err := p.repo.commit(ctx, name, track)
	if err != nil {
		return nil, err
	}
	s.snap, err = p.rendering.sources.git.Snapshot(ctx, rutter.Repo{URL: p.repo.url(), Revision: commit}, rutter.ResolveOptions{MaxAge: planFetchAge})
	return s, err
}

// compare loads what differs of both sides and compares it.
func (p *planner) compare(ctx context.Context) (preview.Plan, error) {
	p.lose()
	p.makers()
	sides := [2]preview.Side{}
	for i, s := range []*planSide{p.base, p.head} {
		if err := p.load(onSide(ctx, s.snap), s, [2]*planSide{p.head, p.base}[i]); err != nil {
			return preview.Plan{}, err
		}
	}
	if err := p.loadHeld(onSide(ctx, p.base.snap)); err != nil {
		return preview.Plan{}, err
	}
	for i, s := range []*planSide{p.base, p.head} {
		sides[i] = p.show(s)
	}
	result := preview.Compare(sides[0], sides[1])
	result.Notes = append(result.Notes, slices.Concat(p.notes, p.believed(), p.unchecked(), p.sources.elsewhere())...)
	return result, nil
}

// each does something to all units of a list, some at a time.
func each(ctx context.Context, units []*planUnit, do func(ctx context.Context, u *planUnit)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0) * 2)
	for _, u := range units {
		g.Go(func() error {
			if ctx.Err() == nil {
				do(ctx, u)
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}
