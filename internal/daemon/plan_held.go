package daemon

import (
	"context"

	"github.com/rutterhq/rutter/internal/generate"
)

// loadHeld opens the objects of the Applications that a budget keeps, which are as
// they were: whoever approves their removal has to know what goes with them.
func (p *planner) loadHeld(ctx context.Context) error {
	var todo []*planUnit
	for _, ps := range p.head.sets {
		if generate.Preserves(ps.set) {
			continue
		}
		for _, name := range ps.waits {
			u := p.base.units[p.display(ps.set.Namespace, name)]
			switch {
			case u == nil:
			case !cascades(u.app):
				u.orphans = "the Application has no resources finalizer"
			case u.objects == nil:
				todo = append(todo, u)
			}
		}
	}
	return each(ctx, todo, func(ctx context.Context, u *planUnit) {
		if err := p.decorate(ctx, p.base, u); err != nil {
			u.err = err
			p.base.problem(u.name, err)
		}
	})
}
