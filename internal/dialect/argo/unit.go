package argo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

// Config is what the translation needs to know of the control plane.
type Config struct {
	// Namespace is the control plane's own.
	Namespace string
}

// Projects looks an AppProject up by name.
type Projects func(name string) (*v1alpha1.AppProject, bool)

// autoRetryLimit is the limit of automated syncs without a retry of their own (reference 1.10).
const autoRetryLimit = 5

// ToUnit translates an Application. What is wrong with it is in Unit.Problem;
// what is not acted on is in the conditions.
func ToUnit(app *v1alpha1.Application, cfg Config, projects Projects) (rutter.Unit, []rutter.Condition) {
	t := &translation{app: app, cfg: cfg}
	u := rutter.Unit{
		ID: rutter.UnitID{Dialect: "argo", Namespace: app.Namespace, Name: app.Name}, Instance: Instance(app, cfg),
		Project: projectOf(app), Sources: t.sources(), Policy: t.policy(), Ignore: t.ignore(),
		Target:     rutter.Target{Server: strings.TrimSuffix(app.Spec.Destination.Server, "/"), Name: app.Spec.Destination.Name, Namespace: app.Spec.Destination.Namespace},
		KnownKinds: knownKinds(app), Last: lastOperation(app),
	}
	t.validate()
	t.project(u, projects)
	if len(t.problems) > 0 {
		u.Problem = &rutter.Error{Code: rutter.CodeForbidden, Message: strings.Join(t.problems, "; ")}
	}
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

// translation is one run of ToUnit.
type translation struct {
	app        *v1alpha1.Application
	cfg        Config
	problems   []string
	conditions []rutter.Condition
}

func (t *translation) problem(format string, args ...any) {
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// unsupported names a field that is set and not acted on.
func (t *translation) unsupported(set bool, field string) {
	if set {
		t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondUnsupported, Message: field + " is not acted on yet"})
	}
}

// validate checks what the reference calls an invalid spec (1.2, 1.9).
func (t *translation) validate() {
	d := t.app.Spec.Destination
	switch {
	case d.Server != "" && d.Name != "":
		t.problem("spec.destination: can't have both name and server defined: %s %s", d.Name, d.Server)
	case d.Server == "" && d.Name == "":
		t.problem("spec.destination: server or name must be set")
	}
	if t.app.Spec.Source == nil && len(t.app.Spec.Sources) == 0 && t.app.Spec.SourceHydrator == nil {
		t.problem("spec.source or spec.sources is required")
	}
	if h := t.app.Spec.SourceHydrator; h != nil {
		t.problem("spec.sourceHydrator is not acted on yet: use spec.source")
	}
}

// project checks the sources and the destination against the AppProject.
func (t *translation) project(u rutter.Unit, projects Projects) {
	p, ok := projects(u.Project)
	if !ok {
		if u.Project != "default" {
			t.problem("application referencing project %s which does not exist", u.Project)
		}
		return
	}
	if err := policy.CheckSourceNamespace(p, t.app.Name, t.app.Namespace, t.cfg.Namespace); err != nil {
		t.problem("%v", err)
	}
	for _, s := range u.Sources {
		if err := policy.CheckSource(p, s.RepoURL); err != nil {
			t.problem("%v", err)
		}
	}
	t.unsupported(len(p.Spec.SyncWindows) > 0, fmt.Sprintf("AppProject %s: spec.syncWindows", p.Name))
	t.unsupported(p.Spec.OrphanedResources != nil && p.Spec.OrphanedResources.Warn != nil && *p.Spec.OrphanedResources.Warn, fmt.Sprintf("AppProject %s: spec.orphanedResources.warn", p.Name))
	t.unsupported(len(p.Spec.DestinationServiceAccounts) > 0, fmt.Sprintf("AppProject %s: spec.destinationServiceAccounts", p.Name))
	if len(p.Spec.SignatureKeys) > 0 || p.Spec.SourceIntegrity != nil {
		t.problem("AppProject %s asks for signed commits (spec.signatureKeys, spec.sourceIntegrity), which are not verified yet", p.Name)
	}
}

func (t *translation) policy() rutter.SyncPolicy {
	var p rutter.SyncPolicy
	s := t.app.Spec.SyncPolicy
	if s == nil {
		return p
	}
	if a := s.Automated; a != nil && (a.Enabled == nil || *a.Enabled) {
		p.Automated, p.Prune, p.SelfHeal, p.AllowEmpty = true, a.Prune, a.SelfHeal, a.AllowEmpty
	}
	p.Retry = rutter.Retry{Limit: autoRetryLimit}
	if s.Retry != nil {
		p.Retry = t.retry("spec.syncPolicy.retry", *s.Retry)
	}
	for i, o := range s.SyncOptions {
		t.option(&p, fmt.Sprintf("spec.syncPolicy.syncOptions[%d]", i), o)
	}
	if m := s.ManagedNamespaceMetadata; m != nil {
		p.NamespaceLabels, p.NamespaceAnnotations = m.Labels, m.Annotations
	}
	return p
}

// option takes one sync option (reference 2.10) or names it as not acted on.
func (t *translation) option(p *rutter.SyncPolicy, field, option string) {
	key, value, _ := strings.Cut(option, "=")
	switch {
	case option == "CreateNamespace=true":
		p.CreateNamespace = true
	case option == "CreateNamespace=false", option == "ServerSideApply=true", option == "ServerSideApply=false", option == "ApplyOutOfSyncOnly=true",
		option == "Validate=true", option == "SkipDryRunOnMissingResource=true", option == "ClientSideApplyMigration=false",
		option == "Replace=false", option == "Force=false", option == "PruneLast=false", option == "Prune=true", option == "Delete=true":
		// The default, or how every sync works here.
	case key == "PrunePropagationPolicy" && (value == "foreground" || value == "background" || value == "orphan"):
		p.Propagation = value
	case option == "Prune=false", option == "PruneLast=true", option == "Delete=false", option == "RespectIgnoreDifferences=true",
		option == "FailOnSharedResource=true":
		p.Options = append(p.Options, option)
	default:
		t.unsupported(true, field+" "+strconv.Quote(option))
	}
}

func (t *translation) retry(field string, r v1alpha1.RetryStrategy) rutter.Retry {
	out := rutter.Retry{Limit: r.Limit}
	if b := r.Backoff; b != nil {
		out.Duration = t.duration(field+".backoff.duration", b.Duration)
		out.MaxDuration = t.duration(field+".backoff.maxDuration", b.MaxDuration)
		if b.Factor != nil {
			out.Factor = *b.Factor
		}
	}
	return out
}

// duration reads 5s, 3m or bare seconds.
func (t *translation) duration(field, s string) time.Duration {
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.Duration(n) * time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		t.problem("%s: %q is not a duration: use a number with a unit, such as 30s", field, s)
	}
	return d
}

func (t *translation) ignore() []rutter.IgnoreRule {
	var rules []rutter.IgnoreRule
	for i, r := range t.app.Spec.IgnoreDifferences {
		field := fmt.Sprintf("spec.ignoreDifferences[%d]", i)
		t.unsupported(len(r.JQPathExpressions) > 0, field+".jqPathExpressions")
		t.unsupported(len(r.ManagedFieldsManagers) > 0, field+".managedFieldsManagers")
		for j, p := range r.JSONPointers {
			if !strings.HasPrefix(p, "/") {
				t.problem("%s.jsonPointers[%d]: %q is not a JSON pointer: it must begin with /", field, j, p)
			}
		}
		rules = append(rules, rutter.IgnoreRule{Group: r.Group, Kind: r.Kind, Name: r.Name, Namespace: r.Namespace, JSONPointers: r.JSONPointers})
	}
	return rules
}

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
