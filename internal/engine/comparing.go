package engine

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// comparing is what an operator sets for all comparisons, ready for use. It is
// replaced as a whole.
type comparing struct {
	settings rutter.CompareSettings
	// rules are those of settings, each by itself, in their order.
	rules []*compare.Rules
	scope *compare.Scope
}

// SetComparing takes what an operator sets for all comparisons. Units whose
// rules it changes are judged anew; the others keep their verdicts.
func (e *Engine) SetComparing(s rutter.CompareSettings) error {
	next := &comparing{settings: s}
	for _, r := range s.Ignore {
		rules, err := compare.NewRules([]rutter.IgnoreRule{r}, rutter.CompareSettings{})
		if err != nil {
			return err
		}
		next.rules = append(next.rules, rules)
	}
	var err error
	if next.scope, err = compare.NewScope(s); err != nil {
		return err
	}
	e.comparing.Store(next)
	e.RefreshAll(func(rutter.Unit) bool { return true })
	return nil
}

// settle makes the rules of a desired state ready: the unit's own, and of those
// for all the ones that concern any of its objects.
func (c *comparing) settle(d *desired) (err error) {
	system := c.settings
	system.Ignore, system.Exclude, system.Include, system.IgnoreUpdates = nil, nil, nil, nil
	for i, r := range c.rules {
		if slices.ContainsFunc(d.objects, func(o desiredObject) bool { return r.Concern(o.Ref) }) {
			d.ignore = append(d.ignore, c.settings.Ignore[i])
		}
	}
	d.settings = system
	d.rules, err = compare.NewRules(d.ignore, system)
	return err
}

// excludes reports whether a kind is not touched at a cluster: not declared, not
// judged and not removed.
func (e *Engine) excludes(gvk rutter.GVK, server string) bool {
	return e.comparing.Load().scope.Excludes(gvk, server)
}

// options are how the objects of a kind of a desired state are compared.
func (e *Engine) options(d *desired, server string, gvk rutter.GVK) compare.Options {
	opts := compare.Options{Manager: rutter.FieldManager, Rules: d.rules, Types: e.opts.Types, Webhooks: d.webhooks}
	if gvk.Group != "" && !e.opts.Types.Know(gvk) {
		opts.Type = e.descriptions.of(server, gvk)
	}
	return opts
}

// keepsOthers reports whether an object that is to be sent may be live with fields that
// are not Git's to decide. One that has never been looked at is looked at now: it
// may have been there before us, scaled or applied by others.
func (e *Engine) keepsOthers(ctx context.Context, u *state, c rutter.Cluster, d *desired, i int) bool {
	o := &d.objects[i]
	entry := func() (known, exists, ceded bool) {
		u.mu.Lock()
		defer u.mu.Unlock()
		x := u.live[o.Ref]
		return x != nil, x != nil && x.Exists, x != nil && x.ceded
	}
	known, exists, ceded := entry()
	if !known && !o.Meta.IsHook {
		e.look(ctx, u, c, d, i)
		known, exists, ceded = entry()
	}
	return (exists || !known) && (ceded || d.rules.Concern(o.Ref))
}

// takeover is how an object that another tool applied becomes ours, nil where
// none did.
func (e *Engine) takeover(u *state, unit rutter.Unit, d *desired, i int) rutter.Takeover {
	u.mu.Lock()
	x := u.live[d.objects[i].Ref]
	former, server := x != nil && x.Exists && x.former, u.server
	u.mu.Unlock()
	if !former {
		return nil
	}
	opts := e.options(d, server, d.objects[i].gvk)
	return func(live, told *unstructured.Unstructured) ([]byte, bool) {
		want, err := e.object(unit, d, i)
		if err != nil {
			return nil, false
		}
		return compare.Takeover(want, live, told, opts)
	}
}
