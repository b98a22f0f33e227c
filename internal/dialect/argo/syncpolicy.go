package argo

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/plan"
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
	}
	for i, o := range s.SyncOptions {
		t.option(&p, fmt.Sprintf("spec.syncPolicy.syncOptions[%d]", i), o)
	}
	p.FormerManager = t.app.Annotations[formerManager]
	p = p.For(rutter.SyncRequest{Options: p.Options})
	if m := s.ManagedNamespaceMetadata; m != nil {
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

// formerManager names one more tool whose fields are taken over (reference 2.8).
const formerManager = "argocd.argoproj.io/client-side-apply-migration-manager"

// option takes one sync option (reference 2.10), an exact string, or says why it
// has no effect. Which of them ask for what every sync does anyway is no business
// of a dialect.
func (t *translation) option(p *rutter.SyncPolicy, field, option string) {
	if problem := plan.OptionProblem(option, false); problem != "" {
		t.conditions = append(t.conditions, rutter.Condition{Type: rutter.CondUnsupported, Message: field + ": " + problem})
		return
	}
	p.Options = append(p.Options, option)
}

func (t *translation) retry(field string, r v1alpha1.RetryStrategy) rutter.Retry {
	out := rutter.Retry{Limit: r.Limit, Refresh: r.Refresh}
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
