package argo

import (
	"fmt"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/policy"
)

// Config is what the translation needs to know of the control plane.
type Config struct {
	// Namespace is the control plane's own.
	Namespace string
	// PruneBudget is how many objects of an Application one sync may prune without
	// being asked, where it does not say so itself; nil is the default.
	PruneBudget *rutter.Budget
	// Cluster looks the destination up, for the project's rules on
	// destinations; false means that it is not known (yet). Nil leaves those
	// rules to the moment at which objects are applied.
	Cluster func(target rutter.Target) (rutter.ClusterInfo, bool)
	// Impersonation says whose rights syncs use (reference 6.8).
	Impersonation policy.Impersonation
	// Tracking is how managed objects are marked for others.
	Tracking rutter.Tracking
}

// Projects looks an AppProject up by name, as it is in force.
type Projects func(name string) (*policy.Project, bool)

// ToUnit translates an Application. The conditions are everything that is
// wrong with it (InvalidSpecError, one for each problem, naming the field) and
// everything in it that is not acted on yet (UnsupportedFieldWarning, one for
// each field). Unit.Problem is the first of those that make it unsafe to touch
// anything.
func ToUnit(app *v1alpha1.Application, cfg Config, projects Projects) (rutter.Unit, []rutter.Condition) {
	t := &translation{app: app, cfg: cfg}
	u := rutter.Unit{
		ID: rutter.UnitID{Dialect: "argo", Namespace: app.Namespace, Name: app.Name}, Instance: Instance(app, cfg), Tracking: cfg.Tracking,
		Project: projectOf(app), Sources: t.sources(), Target: target(app), Policy: t.policy(), Ignore: t.ignore(),
		KnownKinds: knownKinds(app), Last: lastOperation(app), Asked: app.Operation != nil, Drifts: knownDrifts(app),
		Approved: t.approved(), Budget: t.budget(), Approves: app.Annotations[AnnotationApprove],
	}
	u.Declared = lastDeclared(app, u)
	t.validate()
	t.operation()
	if projects != nil {
		t.project(&u, projects)
	}
	u.Problem = t.problem
	return u, t.conditions
}

// Instance is the application's name in tracking ids (reference 2.11).
func Instance(app *v1alpha1.Application, cfg Config) string {
	if app.Namespace == cfg.Namespace || app.Namespace == "" {
		return app.Name
	}
	return app.Namespace + "_" + app.Name
}

func projectOf(app *v1alpha1.Application) string {
	if app.Spec.Project == "" {
		return "default"
	}
	return app.Spec.Project
}

func target(app *v1alpha1.Application) rutter.Target {
	d := app.Spec.Destination
	return rutter.Target{Server: strings.TrimRight(d.Server, "/"), Name: d.Name, Namespace: d.Namespace}
}

// translation is one run of ToUnit.
type translation struct {
	app        *v1alpha1.Application
	cfg        Config
	problem    error
	conditions []rutter.Condition
}

// invalid records a mistake. Its code is forbidden, not invalid: the engine
// shows a unit that may not be acted on as InvalidSpecError by that code, and
// keeps invalid for what fails later, while rendering.
func (t *translation) invalid(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondInvalidSpec, Message: message})
	if t.problem == nil {
		t.problem = &rutter.Error{Code: rutter.CodeForbidden, Message: message}
	}
}

// unsupported names a field that is set and has no effect yet.
func (t *translation) unsupported(set bool, field string) {
	if set {
		t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondUnsupported, Message: field + " is not acted on yet"})
	}
}

// refuse names a field that is set and not acted on yet, and without which the
// result would be something else than what was declared: other objects, or
// objects from another revision. Acting anyway could prune what is there.
func (t *translation) refuse(set bool, field string) {
	t.unsupported(set, field)
	if set && t.problem == nil {
		t.problem = rutter.Errorf(rutter.CodeUnsupported, "%s is not acted on yet: nothing is synced while it is set", field)
	}
}

// validate checks what the reference calls an invalid spec (1.2, 1.9); the
// sources have been checked where they are translated.
func (t *translation) validate() {
	d := t.app.Spec.Destination
	switch {
	case d.Server != "" && d.Name != "":
		t.invalid("spec.destination: only one of server and name may be set, and both are (%s, %s)", d.Server, d.Name)
	case d.Server == "" && d.Name == "":
		t.invalid("spec.destination: server or name must be set")
	}
	if t.app.Spec.Source == nil && len(t.app.Spec.Sources) == 0 && t.app.Spec.SourceHydrator == nil {
		t.invalid("spec.source: a source is required: set spec.source or spec.sources")
	}
	t.refuse(t.app.Spec.SourceHydrator != nil, "spec.sourceHydrator")
}

// approved is when a person last confirmed what waits for a confirmation (reference
// 2.5, 2.7).
func (t *translation) approved() time.Time {
	text := t.app.Annotations[AnnotationApproved]
	at, err := time.Parse(time.RFC3339, text)
	if text != "" && err != nil {
		t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondUnsupported,
			Message: fmt.Sprintf("metadata.annotations[%s]: %q is not a time: write one such as 2026-01-31T12:00:00Z, or use 'rutter app confirm-deletion %s'", AnnotationApproved, text, t.app.Name)})
	}
	return at
}

// operation names what a requested sync asks for in vain.
func (t *translation) operation() {
	for _, problem := range operationProblems(t.app) {
		t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondUnsupported, Message: problem})
	}
}

// IgnoreRules are the spec.ignoreDifferences of an Application; the first that
// can't be read is an error that names it.
func IgnoreRules(app *v1alpha1.Application) ([]rutter.IgnoreRule, error) {
	t := &translation{app: app}
	rules := t.ignore()
	return rules, t.problem
}

func (t *translation) ignore() []rutter.IgnoreRule {
	var rules []rutter.IgnoreRule
	for i, r := range t.app.Spec.IgnoreDifferences {
		field := fmt.Sprintf("spec.ignoreDifferences[%d]", i)
		rule := rutter.IgnoreRule{
			Group: r.Group, Kind: r.Kind, Name: r.Name, Namespace: r.Namespace,
			JSONPointers: r.JSONPointers, JQ: r.JQPathExpressions, Managers: r.ManagedFieldsManagers,
		}
		if err := compare.CheckRule(rule); err != nil {
			t.invalid("%s.%s", field, err)
			continue
		}
		rules = append(rules, rule)
	}
	return rules
}

// knownKinds are the kinds in the status, which an earlier revision managed.
func knownKinds(app *v1alpha1.Application) []rutter.GVK {
	seen := map[rutter.GVK]bool{}
	var kinds []rutter.GVK
	for _, r := range app.Status.Resources {
		k := rutter.GVK{Group: r.Group, Version: r.Version, Kind: r.Kind}
		if r.Version != "" && !seen[k] {
			seen[k] = true
			kinds = append(kinds, k)
		}
	}
	return kinds
}
