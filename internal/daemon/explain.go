package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/explain"
	"github.com/rutterhq/rutter/internal/generate"
)

const (
	// explainTimeout bounds the comparison; what is known by then is explained.
	explainTimeout = time.Minute
	// askTimeout bounds all further questions to the cluster.
	askTimeout = 20 * time.Second
	// mostRead are the live objects that are read for who wrote them.
	mostRead = 50
	// mostNamespaces are those in which causes of ailments are looked for. The
	// size of one answer is bounded by the client.
	mostNamespaces = 5
)

// Explain says why an Application is not as Git declares it, why it is not syncing
// and why it is not healthy. It compares as Diff does, and sends nothing.
func Explain(ctx context.Context, cfg DiffConfig) (explain.Answer, error) {
	c, err := NewClient(cfg.REST)
	if err != nil {
		return explain.Answer{}, err
	}
	var app v1alpha1.Application
	if err := c.Get(ctx, cfg.App, &app); err != nil {
		return explain.Answer{}, fmt.Errorf("read application %q in namespace %q: %w", cfg.App.Name, cfg.App.Namespace, err)
	}
	projects, err := readProjects(ctx, c, cfg.Namespace)
	if err != nil {
		return explain.Answer{}, err
	}
	unit, conditions := argo.ToUnit(&app, argo.Config{Namespace: cfg.Namespace}, projects)
	s := explain.Situation{Application: app.Name, Cluster: unit.Target.Name, Policy: unit.Policy, Conditions: conditions, Operation: operationOf(&app)}
	for _, cond := range app.Status.Conditions {
		s.Conditions = append(s.Conditions, rutter.Condition{Type: cond.Type, Message: cond.Message})
	}
	if hold, err := generate.HoldOf(&app, time.Now()); err != nil {
		s.Hold = err.Error()
	} else if hold != nil {
		s.Hold = cmp.Or(hold.Who, "somebody") + " holds it until " + hold.Until.UTC().Format(time.RFC3339)
		if hold.Why != "" {
			s.Hold += ": " + hold.Why
		}
	}
	if s.Set, s.SetHeld, err = heldRemovals(ctx, c, &app); err != nil {
		return explain.Answer{}, err
	}
	unit.Policy.Automated = false
	tmp, err := os.MkdirTemp("", "rutter-explain-")
	if err != nil {
		return explain.Answer{}, fmt.Errorf("make a folder for the mirror: %w", err)
	}
	defer os.RemoveAll(tmp)
	o, err := newObserver(ctx, c, cfg, tmp)
	if err != nil {
		return explain.Answer{}, err
	}
	defer o.close()
	o.situation(ctx, unit, &s)
	if ctx.Err() != nil {
		return explain.Answer{}, fmt.Errorf("explain application %q: %w", app.Name, context.Cause(ctx))
	}
	return explain.Explain(s), nil
}

// situation compares the unit, and asks its cluster about what is not well.
func (o *observer) situation(ctx context.Context, unit rutter.Unit, s *explain.Situation) {
	looking, stop := context.WithTimeoutCause(ctx, explainTimeout, errors.New("the comparison did not end in time"))
	defer stop()
	report, ok := o.observeAll(looking, []rutter.Unit{unit})[unit.ID]
	if !ok {
		if report, ok = o.engine.Report(unit.ID); !ok {
			report = rutter.Report{ID: unit.ID, Sync: rutter.SyncUnknown, Health: rutter.Health{Status: rutter.HealthUnknown}}
		}
		report.Conditions = append(report.Conditions, rutter.Condition{Type: rutter.CondComparison, Message: "the comparison did not end in time; what follows is not complete"})
	}
	s.Report = report
	member, err := o.member(unit)
	if err != nil {
		s.Away = err.Error()
		return
	}
	s.Cluster = member.Info().Name
	if status, known := o.clusters.Status(member.Info().Server); known && !status.Reachable {
		s.Away = "no cause is known"
		if status.Err != nil {
			s.Away = status.Err.Error()
		}
		return
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s.Writers = writers(asking, member, report)
	s.Causes = causes(asking, member, report)
}

// writers reads the objects that differ for who wrote them; one that cannot be
// read is explained without.
func writers(ctx context.Context, member rutter.Cluster, report rutter.Report) map[rutter.Ref][]explain.Writer {
	out := map[rutter.Ref][]explain.Writer{}
	read := 0
	for _, r := range explain.Differing(report) {
		if len(r.Diffs) == 0 || read == mostRead {
			continue
		}
		read++
		if live, err := member.Get(ctx, gvkOf(r), r.Namespace, r.Name); err == nil {
			out[r.Ref] = explain.WritersOf(live)
		}
	}
	return out
}

// causes looks for what is below the objects that are not healthy.
func causes(ctx context.Context, member rutter.Cluster, report rutter.Report) map[rutter.Ref][]string {
	out := map[rutter.Ref][]string{}
	around := map[string]explain.Around{}
	for _, r := range explain.Ailing(report) {
		if r.Health.Status == rutter.Missing || r.Namespace == "" {
			continue
		}
		live, err := member.Get(ctx, gvkOf(r), r.Namespace, r.Name)
		if err != nil {
			continue
		}
		near, known := around[r.Namespace]
		if !known {
			if len(around) == mostNamespaces {
				continue
			}
			near = lookAround(ctx, member, r.Namespace)
			around[r.Namespace] = near
		}
		if found := explain.Trace(string(live.GetUID()), live, near); len(found) > 0 {
			out[r.Ref] = found
		}
	}
	return out
}

// lookAround lists what a cause may be found in. What may not be listed is left
// out: the rest is better than nothing.
func lookAround(ctx context.Context, member rutter.Cluster, namespace string) explain.Around {
	list := func(apiVersion, kind string) []unstructured.Unstructured {
		answer, err := member.LookupAs("")(ctx, apiVersion, kind, namespace, "")
		if err != nil {
			return nil
		}
		items, _ := answer["items"].([]any)
		out := make([]unstructured.Unstructured, 0, len(items))
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				u := unstructured.Unstructured{Object: m}
				u.SetAPIVersion(apiVersion) // the elements of a list do not say it
				u.SetKind(kind)
				out = append(out, u)
			}
		}
		return out
	}
	objects := append(list("v1", "Pod"), list("apps/v1", "ReplicaSet")...)
	return explain.Around{Objects: append(objects, list("batch/v1", "Job")...), Events: list("v1", "Event")}
}

func gvkOf(r rutter.ResourceReport) rutter.GVK {
	return rutter.GVK{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// operationOf is the sync in progress or the last one, as the controller wrote it.
func operationOf(app *v1alpha1.Application) *rutter.OperationReport {
	st := app.Status.OperationState
	if st == nil {
		return nil
	}
	out := &rutter.OperationReport{Phase: rutter.OperationPhase(st.Phase), Message: st.Message, StartedAt: st.StartedAt.Time, RetryCount: st.RetryCount}
	if st.SyncResult == nil {
		return out
	}
	for _, r := range st.SyncResult.Resources {
		out.Results = append(out.Results, rutter.StepResult{
			Step:   rutter.Step{Ref: rutter.Ref{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, Hook: r.HookType != ""},
			Status: r.Status, Message: r.Message, HookPhase: r.HookPhase,
		})
	}
	return out
}

// heldRemovals is the ApplicationSet of an Application, and what it holds back.
func heldRemovals(ctx context.Context, c client.Client, app *v1alpha1.Application) (name, held string, err error) {
	for _, owner := range app.OwnerReferences {
		if owner.Kind != "ApplicationSet" {
			continue
		}
		var set v1alpha1.ApplicationSet
		err := c.Get(ctx, client.ObjectKey{Namespace: app.Namespace, Name: owner.Name}, &set)
		if client.IgnoreNotFound(err) != nil {
			return "", "", fmt.Errorf("read applicationset %q in namespace %q: %w", owner.Name, app.Namespace, err)
		}
		for _, cond := range set.Status.Conditions {
			if cond.Type == v1alpha1.ApplicationSetConditionDeletionsHeld && cond.Status == "True" {
				held = cond.Message
			}
		}
		return owner.Name, held, nil
	}
	return "", "", nil
}
