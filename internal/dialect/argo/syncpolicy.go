package argo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// autoRetryLimit is the limit of automated syncs without a retry of their own (reference 1.10).
const autoRetryLimit = 5

func (t *translation) policy() rutter.SyncPolicy {
	p := rutter.SyncPolicy{Retry: rutter.Retry{Limit: autoRetryLimit}, IncludeWebhooks: compareOption(t.app, "IncludeMutationWebhook=true")}
	s := t.app.Spec.SyncPolicy
	if s == nil {
		return p
	}
	if a := s.Automated; a != nil && (a.Enabled == nil || *a.Enabled) {
		p.Automated, p.Prune, p.SelfHeal, p.AllowEmpty = true, a.Prune, a.SelfHeal, a.AllowEmpty
	}
	if s.Retry != nil {
		p.Retry = t.retry("spec.syncPolicy.retry", *s.Retry)
		t.unsupported(s.Retry.Refresh, "spec.syncPolicy.retry.refresh")
	}
	for i, o := range s.SyncOptions {
		t.option(&p, fmt.Sprintf("spec.syncPolicy.syncOptions[%d]", i), o)
	}
	if m := s.ManagedNamespaceMetadata; m != nil && p.CreateNamespace {
		p.NamespaceLabels, p.NamespaceAnnotations = m.Labels, m.Annotations
	}
	return p
}

// compareOption reports whether an Application has a compare option (reference
// 3.5). Of the others, ServerSideDiff asks for what is done anyway: the server is
// asked whenever it takes the server to know.
func compareOption(app *v1alpha1.Application, option string) bool {
	for o := range strings.SplitSeq(app.Annotations["argocd.argoproj.io/compare-options"], ",") {
		if strings.TrimSpace(o) == option {
			return true
		}
	}
	return false
}

// optionUse is what becomes of a sync option.
type optionUse int

const (
	// asAlways options ask for what every sync does here anyway.
	asAlways optionUse = iota + 1
	// passedOn options are acted on by the engine.
	passedOn
)

func useOf(option string) optionUse {
	switch option {
	case "CreateNamespace=false", "ServerSideApply=true", "ServerSideApply=false", "ApplyOutOfSyncOnly=true", "ApplyOutOfSyncOnly=false",
		"Validate=true", "SkipDryRunOnMissingResource=true", "ClientSideApplyMigration=true", "Replace=false", "Force=false",
		"PruneLast=false", "Prune=true", "Delete=true", "RespectIgnoreDifferences=false", "FailOnSharedResource=false":
		return asAlways
	case "Prune=false", "PruneLast=true", "Delete=false", "RespectIgnoreDifferences=true", "FailOnSharedResource=true", "Validate=false":
		return passedOn
	default:
		return 0
	}
}

// option takes one sync option (reference 2.10), an exact string, or names it
// as not acted on. The two confirmations are not acted on yet either; until
// then they withhold what they would ask about.
func (t *translation) option(p *rutter.SyncPolicy, field, option string) {
	key, value, _ := strings.Cut(option, "=")
	field += " " + strconv.Quote(option)
	switch use := useOf(option); {
	case option == "CreateNamespace=true":
		p.CreateNamespace = true
	case key == "PrunePropagationPolicy" && (value == "foreground" || value == "background" || value == "orphan"):
		p.Propagation = value
	case option == "Prune=confirm", option == "Delete=confirm":
		p.Options = append(p.Options, key+"=false")
		t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondUnsupported,
			Message: fmt.Sprintf("%s is not acted on yet: it is taken as %s=false", field, key)})
	case use == passedOn:
		p.Options = append(p.Options, option)
	default:
		t.unsupported(use == 0, field)
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
	if n, err := strconv.ParseInt(s, 10, 32); err == nil && n >= 0 {
		return time.Duration(n) * time.Second
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		t.invalid("%s: %q is not a duration: use a number with a unit, such as 30s", field, s)
		return 0
	}
	return d
}
