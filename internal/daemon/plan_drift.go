package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/preview"
)

const (
	// mostDrifted bounds the Applications whose objects are compared for a plan.
	mostDrifted = 200
	// driftTimeout ends the comparison; what has been compared by then is shown.
	driftTimeout = time.Minute
	// shownUnseen bounds the names in a note.
	shownUnseen = 3
)

// drift compares what the base declares with the clusters, for the Applications
// that the control plane says are not in sync: the controller has looked at all
// of them already, and only knows it in less detail. What cannot be looked at is
// a note.
func (p *planner) drift(ctx context.Context, result *preview.Plan) error {
	unseen := map[string][]string{}
	units, err := p.outOfSync(ctx, result.Applications, unseen)
	if err != nil {
		return err
	}
	if missing := len(units) - mostDrifted; missing > 0 {
		units = units[:mostDrifted]
		result.Notes = append(result.Notes, fmt.Sprintf("%d more Applications are not in sync; what is drifted was looked at for %d only, those that the change touches first.", missing, mostDrifted))
	}
	if len(units) > 0 {
		drift, err := p.driftOf(ctx, units, unseen)
		if err != nil {
			return err
		}
		result.AddDrift(drift)
	}
	for _, why := range slices.Sorted(maps.Keys(unseen)) {
		names, rest := unseen[why], ""
		slices.Sort(names)
		if more := len(names) - shownUnseen; more > 0 {
			names, rest = names[:shownUnseen], fmt.Sprintf(" and %d more", more)
		}
		result.Notes = append(result.Notes, "What is drifted of "+strings.Join(names, ", ")+rest+" could not be looked at: "+why)
	}
	return nil
}

// outOfSync are the units of the base that the controller says are not in sync,
// those that the change touches first: there the two may meet. What it cannot say
// itself is unseen.
func (p *planner) outOfSync(ctx context.Context, changes []preview.UnitChange, unseen map[string][]string) ([]*planUnit, error) {
	var apps v1alpha1.ApplicationList
	if err := p.control.List(ctx, &apps); err != nil {
		return nil, fmt.Errorf("list Applications: %w", err)
	}
	touched := map[string]int{}
	for _, c := range changes {
		touched[c.Name] = 1
	}
	var units []*planUnit
	for i := range apps.Items {
		app := &apps.Items[i]
		u := p.base.units[p.display(app.Namespace, app.Name)]
		switch {
		case u == nil || u.err != nil:
		case app.Status.Sync.Status == string(rutter.OutOfSync):
			units = append(units, u)
		case app.Status.Sync.Status != string(rutter.Synced):
			const why = "the controller does not know either how they are: rutter explain says why."
			unseen[why] = append(unseen[why], u.name)
		}
	}
	slices.SortFunc(units, func(a, b *planUnit) int {
		return cmp.Or(cmp.Compare(touched[b.name], touched[a.name]), cmp.Compare(a.name, b.name))
	})
	return units, nil
}

// driftOf compares units with their clusters.
func (p *planner) driftOf(ctx context.Context, units []*planUnit, unseen map[string][]string) ([]preview.Drift, error) {
	reports, err := p.observed(ctx, units)
	if err != nil {
		return nil, err
	}
	var drift []preview.Drift
	for _, u := range units {
		report, ok := reports[u.unit.ID]
		why := ""
		switch {
		case !ok:
			why = "cluster " + u.cluster.Name + " does not answer in time."
		case report.Sync == rutter.SyncUnknown && len(report.Conditions) > 0:
			why = report.Conditions[0].Message
		}
		if why != "" {
			unseen[why] = append(unseen[why], u.name)
		}
		drift = append(drift, preview.DriftOf(u.name, u.cluster.Name, u.unit.Policy.Automated && u.unit.Policy.SelfHeal, report)...)
	}
	return drift, nil
}

// observed are the reports of units, compared by the engine with every automated
// action off. Sources are those of the base.
func (p *planner) observed(ctx context.Context, units []*planUnit) (map[rutter.UnitID]rutter.Report, error) {
	ctx, cancel := context.WithTimeoutCause(onSide(ctx, p.base.snap), driftTimeout, errors.New("the clusters did not answer in time"))
	defer cancel()
	o := &observer{settled: make(chan struct{}, 1)}
	if err := o.open(ctx, p.control, p.cfg.REST, p.cfg.Namespace, p.sources, p.rendering.renderer); err != nil {
		return nil, err
	}
	defer o.clusters.Close()
	todo := make([]rutter.Unit, 0, len(units))
	for _, u := range units {
		unit := u.unit
		unit.Policy.Automated = false
		todo = append(todo, unit)
	}
	return o.observeAll(ctx, todo), nil
}
