package engine

import (
	"context"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/schema"
)

// describedFor is how long a cluster's description of its kinds is taken as it
// was. What it says only decides which comparisons take a dry run.
const describedFor = 10 * time.Minute

// descriptions are the types of custom resources, as the clusters that serve them
// say. One description is kept once, however many clusters give it.
type descriptions struct {
	mu sync.Mutex
	// byURL are the kinds of one document; the URL names its content.
	byURL map[string]*schema.Schemas
	// servers are the documents of the group versions that are used at a cluster.
	servers map[string]*described
}

type described struct {
	at   time.Time
	urls map[groupVersion]string // "" where the cluster does not say
}

type groupVersion struct{ group, version string }

func (gv groupVersion) path() string { return "apis/" + gv.group + "/" + gv.version }

func newDescriptions() *descriptions {
	return &descriptions{byURL: map[string]*schema.Schemas{}, servers: map[string]*described{}}
}

// of is the type of a kind at a cluster, nil when it is not known.
func (x *descriptions) of(server string, gvk rutter.GVK) *schema.Type {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.servers[server]
	if s == nil {
		return nil
	}
	return x.byURL[s.urls[groupVersion{gvk.Group, gvk.Version}]].Of(gvk)
}

// missing reports whether a cluster is to be asked about any of the kinds: not
// while what it last said is young and complete.
func (x *descriptions) missing(server string, kinds map[groupVersion]bool, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.servers[server]
	if s == nil || now.Sub(s.at) > describedFor {
		return len(kinds) > 0
	}
	for gv := range kinds {
		if _, asked := s.urls[gv]; !asked {
			return true
		}
	}
	return false
}

// put records what a cluster says, and forgets what no cluster says any more. Of
// the kinds of other units what was said still holds where the index agrees.
func (x *descriptions) put(server string, said *described, index map[string]string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if old := x.servers[server]; old != nil {
		for gv, url := range old.urls {
			if _, ok := said.urls[gv]; !ok && url == index[gv.path()] {
				said.urls[gv] = url
			}
		}
	}
	x.servers[server] = said
	used := map[string]bool{}
	for _, s := range x.servers {
		for _, url := range s.urls {
			used[url] = true
		}
	}
	for url := range x.byURL {
		if !used[url] {
			delete(x.byURL, url)
		}
	}
}

func (x *descriptions) known(url string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.byURL[url] != nil
}

// learn asks a cluster for the types of the custom resources that a unit
// declares. Without an answer a comparison leaves more to the server's dry run,
// and nothing else.
func (e *Engine) learn(ctx context.Context, u *state, c rutter.Cluster) {
	d, ok := c.(rutter.Describer)
	if !ok {
		return
	}
	server, kinds := e.undescribed(u)
	if e.isDown(server) || !e.descriptions.missing(server, kinds, e.now()) {
		return
	}
	said := &described{at: e.now(), urls: map[groupVersion]string{}}
	index, err := d.Descriptions(ctx)
	if err != nil {
		e.opts.Logger.Debug("a cluster does not describe its kinds", "server", server, "err", err)
	}
	for gv := range kinds {
		url := index[gv.path()]
		if url != "" && !e.descriptions.known(url) {
			if err := e.fetch(ctx, d, url); err != nil {
				e.opts.Logger.Debug("a description cannot be read", "server", server, "group", gv.group, "err", err)
				url = ""
			}
		}
		said.urls[gv] = url
	}
	if ctx.Err() == nil {
		e.descriptions.put(server, said, index)
	}
}

func (e *Engine) fetch(ctx context.Context, d rutter.Describer, url string) error {
	document, err := d.Description(ctx, url)
	if err != nil {
		return err //nolint:wrapcheck // it is only logged
	}
	schemas, err := schema.Parse(document)
	if err != nil {
		return err
	}
	e.descriptions.mu.Lock()
	defer e.descriptions.mu.Unlock()
	e.descriptions.byURL[url] = schemas.Kinds()
	return nil
}

// undescribed are the group versions of a unit whose types are not built in.
func (e *Engine) undescribed(u *state) (server string, kinds map[groupVersion]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.desired == nil || e.opts.Types == nil {
		return u.server, nil
	}
	kinds = map[groupVersion]bool{}
	for i := range u.desired.objects {
		o := &u.desired.objects[i]
		if o.gvk.Group != "" && !o.KindMissing && !e.opts.Types.Know(o.gvk) {
			kinds[groupVersion{o.gvk.Group, o.gvk.Version}] = true
		}
	}
	return u.server, kinds
}
