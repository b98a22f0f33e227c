package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Warning is something that a project allows and that is hardly meant.
type Warning struct {
	// Field is where it is written.
	Field string `json:"field"`
	// Message says what it allows, and what to write.
	Message string `json:"message"`
}

// Warnings are what is allowed by an AppProject and is wider than it looks, or
// looks like something else. They are in force as written.
func Warnings(p *v1alpha1.AppProject) []Warning {
	w := &warnings{}
	w.sources(p)
	w.destinations(p)
	w.kinds(p)
	w.accounts(p)
	w.namespaces(p)
	w.windows(p)
	w.roles(p)
	return w.list
}

type warnings struct{ list []Warning }

func (w *warnings) add(field, format string, args ...any) {
	w.list = append(w.list, Warning{Field: field, Message: fmt.Sprintf(format, args...)})
}

func (w *warnings) sources(p *v1alpha1.AppProject) {
	allowing := 0
	var hosts []string
	for i, text := range p.Spec.SourceRepos {
		field := fmt.Sprintf("spec.sourceRepos[%d]", i)
		if strings.HasPrefix(text, "!") {
			w.foreign(field, text)
			continue
		}
		allowing++
		w.source(field, text)
		host := hostOf(text)
		w.lookAlike(field, host, hosts)
		hosts = append(hosts, host)
	}
	if len(p.Spec.SourceRepos) > 0 && allowing == 0 {
		w.add("spec.sourceRepos", "all entries deny, so no repository is allowed: add what is, such as * (elsewhere such a list allows all the rest)")
	}
}

// source looks at one pattern that allows repositories.
func (w *warnings) source(field, text string) {
	w.foreign(field, text)
	if text == "*" || text == "**" {
		w.add(field, "%s allows every repository in the world: name the organisation, such as https://github.com/org/**", text)
		return
	}
	host, repoPath, found := strings.Cut(rutter.NormalizeGitURL(text), "://")
	if found {
		host, repoPath, _ = strings.Cut(repoPath, "/")
	} else {
		host, repoPath, _ = strings.Cut(host, "/")
	}
	if user, rest, ok := strings.Cut(host, "@"); ok {
		if strings.Contains(user, ".") {
			w.add(field, "%q is the user, and the host is %s", user, rest)
		}
		host = rest
	}
	owner, rest, more := strings.Cut(repoPath, "/")
	const wild = "*?[{"
	switch {
	case strings.HasPrefix(host, "*.") && !strings.ContainsAny(host[2:], wild) && strings.Contains(host[2:], "."):
		// all hosts of one domain
	case strings.ContainsAny(host, wild):
		w.add(field, "the wildcard in the host %q matches hosts of others, such as %s: write the host out", host, strings.NewReplacer("**", "evil.example", "*", "evil.example").Replace(host))
	case owner == "*" && more || owner == "**":
		w.add(field, "any owner on %s is allowed: name the organisation, such as %s/org/**", host, host)
	case strings.ContainsAny(owner, wild):
		prefix, _, _ := strings.Cut(owner, "*")
		w.add(field, "%s matches every owner whose name begins so, such as %s-evil: write %s/** for one organisation", text, prefix, strings.TrimSuffix(text, owner+suffix(more, rest))+strings.TrimRight(prefix, "-_"))
	}
	if strings.HasPrefix(strings.ToLower(text), "http://") {
		w.add(field, "%s is read without encryption: anybody on the way can change what is deployed; use https", text)
	}
}

func suffix(more bool, rest string) string {
	if more {
		return "/" + rest
	}
	return ""
}

// hostOf is the host in a pattern for repositories, without user and port.
func hostOf(text string) string {
	_, rest, found := strings.Cut(rutter.NormalizeGitURL(text), "://")
	if !found {
		rest = rutter.NormalizeGitURL(text)
	}
	host, _, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	}
	host, _, _ = strings.Cut(host, ":")
	return host
}

func (w *warnings) destinations(p *v1alpha1.AppProject) {
	allowing := 0
	for i, d := range p.Spec.Destinations {
		field := fmt.Sprintf("spec.destinations[%d]", i)
		for _, f := range []struct{ name, text string }{{"server", d.Server}, {"name", d.Name}, {"namespace", d.Namespace}} {
			w.foreign(field+"."+f.name, f.text)
		}
		if strings.HasPrefix(d.Namespace, "!") || d.Server == "" && strings.HasPrefix(d.Name, "!") || d.Name == "" && strings.HasPrefix(d.Server, "!") {
			continue
		}
		allowing++
		switch anywhere := d.Server == "*" || d.Name == "*"; {
		case d.Server == "" && d.Name == "":
			w.add(field, "it names no cluster and allows none: set server or name, * for all")
		case d.Namespace == "":
			w.add(field, "it names no namespace and allows none: set namespace, * for all")
		case anywhere && d.Namespace == "*":
			w.add(field, "every namespace of every cluster is allowed, kube-system and the control plane's own too")
			continue
		}
		w.anchor(field+".server", "server", d.Server)
		w.anchor(field+".name", "cluster", d.Name)
		w.anchor(field+".namespace", "namespace", d.Namespace)
	}
	if len(p.Spec.Destinations) > 0 && allowing == 0 {
		w.add("spec.destinations", "all entries deny, so no destination is allowed: add what is (elsewhere such a list allows all the rest)")
	}
	w.system(p)
}

// anchor warns of a glob that goes on in the middle of a word: team* is team-evil
// and teamsters too.
func (w *warnings) anchor(field, what, text string) {
	if text == "*" || strings.HasPrefix(text, "!") {
		return
	}
	prefix, _, wild := strings.Cut(text, "*")
	switch {
	case wild && prefix == "":
		w.add(field, "%q matches every %s that ends so, whatever it begins with: write its begin", text, what)
	case wild && strings.HasSuffix(text, "*") && isWord(prefix[len(prefix)-1]):
		w.add(field, "%q matches every %s that begins so, such as %sevil: end it with a separator, such as %s-*", text, what, prefix, prefix)
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// system warns of patterns that let a project into the namespaces of Kubernetes.
func (w *warnings) system(p *v1alpha1.AppProject) {
	rules := New(p, Around{})
	for i, d := range p.Spec.Destinations {
		if d.Namespace == "*" && (d.Server == "*" || d.Name == "*") || !strings.Contains(d.Namespace, "*") || strings.HasPrefix(d.Namespace, "!") {
			continue
		}
		cluster := rutter.ClusterInfo{Server: strings.TrimPrefix(d.Server, "!"), Name: strings.TrimPrefix(d.Name, "!")}
		if rules.destinations[i].namespace.match("kube-system").allows() && rules.CheckDestination(cluster, "kube-system") == nil {
			w.add(fmt.Sprintf("spec.destinations[%d].namespace", i), "%q allows kube-system, from where a cluster can be taken over: deny it with an entry with namespace \"!kube-*\"", d.Namespace)
		}
	}
}

func (w *warnings) kinds(p *v1alpha1.AppProject) {
	dangerous := []rutter.Ref{
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding", Name: "any"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration", Name: "any"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "any"},
	}
	rules := New(p, Around{})
	for i, r := range p.Spec.ClusterResourceWhitelist {
		field := fmt.Sprintf("spec.clusterResourceWhitelist[%d]", i)
		if r.Group == "*" && r.Kind == "*" && r.Name == "" {
			w.add(field, "every cluster-scoped kind is allowed, ClusterRoleBindings to cluster-admin too: list the kinds that are needed")
			continue
		}
		for _, ref := range dangerous {
			if _, err := rules.Kind(ref, false); err == nil && rules.clusterAllow[i].match(ref).allows() {
				w.add(field, "%s is allowed with any name, which is as much as the whole cluster", ref.Kind)
			}
		}
		w.anchor(field+".name", "name", r.Name)
	}
}

func (w *warnings) accounts(p *v1alpha1.AppProject) {
	for i, a := range p.Spec.DestinationServiceAccounts {
		field := fmt.Sprintf("spec.destinationServiceAccounts[%d]", i)
		if _, name, qualified := strings.Cut(a.DefaultServiceAccount, ":"); qualified && a.Namespace == "*" && a.Server == "*" && i < len(p.Spec.DestinationServiceAccounts)-1 {
			w.add(field, "account %s is used everywhere, and no later entry is ever reached: put it last", name)
		}
		w.foreign(field+".server", a.Server)
	}
}

func (w *warnings) namespaces(p *v1alpha1.AppProject) {
	for i, text := range p.Spec.SourceNamespaces {
		field := fmt.Sprintf("spec.sourceNamespaces[%d]", i)
		expression, ok := asRegexp(text)
		switch {
		case text == "*":
			w.add(field, "whoever may write Applications in any namespace may use the project")
		case !ok:
			w.anchor(field, "namespace", text)
		case !strings.HasPrefix(expression, "^") || !strings.HasSuffix(expression, "$"):
			w.add(field, "the expression matches in the middle of a name too: write /^%s$/", strings.TrimSuffix(strings.TrimPrefix(expression, "^"), "$"))
		}
	}
}

func (w *warnings) windows(p *v1alpha1.AppProject) {
	for i, s := range p.Spec.SyncWindows {
		field := fmt.Sprintf("spec.syncWindows[%d]", i)
		if read := newWindow(s, ""); read.Problem == "" && s.Kind == "deny" && !s.ManualSync && always(read.SyncWindow) {
			w.add(field, "it denies syncs at all times, also by hand: nothing is ever synced")
		}
	}
}

// always: a window that begins every minute, or every day at one time for a day.
func always(s rutter.SyncWindow) bool {
	daily := s.Schedule.EveryDay && s.Schedule.EveryWeekday && s.Schedule.Months == 0b1111111111110
	return daily && s.Duration >= 24*time.Hour
}

func (w *warnings) roles(p *v1alpha1.AppProject) {
	for i, r := range p.Spec.Roles {
		for j, g := range r.Groups {
			field := fmt.Sprintf("spec.roles[%d].groups[%d]", i, j)
			w.foreign(field, g)
			if slices.Contains([]string{"system:authenticated", "system:unauthenticated", "*"}, g) {
				w.add(field, "everybody is in the group %s", g)
			}
		}
	}
}
