package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
)

// drift compares what the base declares with the clusters, for the Applications
// that the control plane says are not in sync: the controller has looked at all
// of them already, and only knows it in less detail.
func (p *planner) drift(ctx context.Context, result *preview.Plan) error {
	var apps v1alpha1.ApplicationList
	if err := p.control.List(ctx, &apps); err != nil {
		return fmt.Errorf("list Applications: %w", err)
	}
	touched := map[string]int{}
	for _, c := range result.Applications {
		touched[c.Name] = 1
	}
	var units []*planUnit
	for i := range apps.Items {
		app := &apps.Items[i]
		if u := p.base.units[p.display(app.Namespace, app.Name)]; u != nil && u.err == nil && app.Status.Sync.Status == string(rutter.OutOfSync) {
			units = append(units, u)
		}
	}
	// What the change touches comes first: there the two may meet.
	slices.SortFunc(units, func(a, b *planUnit) int {
		return cmp.Or(cmp.Compare(touched[b.name], touched[a.name]), cmp.Compare(a.name, b.name))
	})
	missing := max(0, len(units)-mostDrifted)
	units = units[:min(len(units), mostDrifted)]
	if missing > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("%d more Applications are not in sync; what is drifted was looked at for %d only, those that the change touches first.", missing, mostDrifted))
	}
	if len(units) == 0 {
		return nil
	}
	reports, err := p.observed(ctx, units)
	if err != nil {
		return err
	}
	var drift []preview.Drift
	for _, u := range units {
		report, ok := reports[u.unit.ID]
		if !ok {
			result.Notes = append(result.Notes, "What is drifted of "+u.name+" could not be looked at: "+u.cluster.Name+" does not answer in time.")
			continue
		}
		if report.Sync == rutter.SyncUnknown {
			for _, c := range report.Conditions {
				result.Notes = append(result.Notes, "What is drifted of "+u.name+" could not be looked at: "+c.Message)
				break
			}
		}
		heals := u.unit.Policy.Automated && u.unit.Policy.SelfHeal
		drift = append(drift, preview.DriftOf(u.name, u.cluster.Name, heals, report)...)
	}
	result.AddDrift(drift)
	return nil
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
