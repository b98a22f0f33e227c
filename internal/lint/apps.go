package lint

import (
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// appSpecs returns the specs of an Application, or of the template of an
// ApplicationSet.
func appSpecs(d *document) []*node {
	var spec *node
	switch {
	case d.is(groupArgo, "Application"):
		spec = get(d.root, "spec")
	case d.is(groupArgo, "ApplicationSet"):
		spec = get(d.root, "spec", "template", "spec")
	}
	if spec == nil {
		return nil
	}
	return []*node{spec}
}

// sources returns all sources of a spec.
func sources(spec *node) []*node {
	out := items(spec, "sources")
	if s := get(spec, "source"); s != nil && len(out) == 0 {
		out = append(out, s)
	}
	return out
}

// automated returns the key of automated sync, nil when it is off.
func automated(spec *node) *node {
	k, v := pair(get(spec, "syncPolicy"), "automated")
	if v == nil || v.Kind == yaml.ScalarNode {
		return nil
	}
	if enabled := get(v, "enabled"); enabled != nil && strings.EqualFold(enabled.Value, "false") {
		return nil
	}
	return k
}

var productionWord = regexp.MustCompile(`(?i)(^|[^a-z])(prod|production|prd|live)([^a-z]|$)`)

// production tells whether any of the texts speaks of production. "nonprod"
// and "non-production" do not.
func production(texts ...string) bool {
	for _, t := range texts {
		t = strings.NewReplacer("non-prod", "nonprod", "non_prod", "nonprod").Replace(strings.ToLower(t))
		if productionWord.MatchString(t) {
			return true
		}
	}
	return false
}

// forProduction tells whether an Application or a set is for production, by
// its names, its labels, where it goes and what it selects.
func forProduction(d *document, spec *node) bool {
	texts := []string{d.name, text(spec, "destination", "name"), text(spec, "destination", "server"), text(spec, "destination", "namespace"), text(spec, "project")}
	for _, s := range sources(spec) {
		texts = append(texts, text(s, "path"))
		for _, f := range items(s, "helm", "valueFiles") {
			texts = append(texts, f.Value)
		}
	}
	for _, meta := range []*node{get(d.root, "metadata"), get(d.root, "spec", "template", "metadata")} {
		texts = append(texts, text(meta, "name"))
		entries(get(meta, "labels"), func(_, v *node) { texts = append(texts, v.Value) })
	}
	for _, g := range generators(d) {
		if g.kind == "clusters" && selects(g.node) {
			return true
		}
	}
	return production(texts...)
}

// selects tells whether a clusters generator selects clusters of production.
func selects(g *node) bool {
	found := false
	entries(get(g, "selector", "matchLabels"), func(k, v *node) { found = found || production(v.Value) })
	for _, e := range items(g, "selector", "matchExpressions") {
		for _, v := range items(e, "values") {
			found = found || text(e, "operator") == "In" && production(v.Value)
		}
	}
	return found
}

var movingRef = regexp.MustCompile(`^(HEAD|main|master|trunk|develop|development|dev|refs/heads/.*)$`)

// chartRange matches what stands for several versions of a chart.
var chartRange = regexp.MustCompile(`[*^~<>=|]|(^|\.)[xX](\.|$)`)

func checkRevisions(r *run, d *document) {
	for _, spec := range appSpecs(d) {
		if !forProduction(d, spec) {
			continue
		}
		for _, s := range sources(spec) {
			k, v := pair(s, "targetRevision")
			revision := text(s, "targetRevision")
			chart := text(s, "chart") != ""
			at := k
			if v == nil {
				at, _ = pair(s, "repoURL")
			}
			switch {
			case templatedText(revision):
			case chart && (revision == "" || chartRange.MatchString(revision)):
				r.report(d, at, "production takes whatever version of the chart %s is newest (targetRevision %q)", text(s, "chart"), revision)
			case !chart && revision == "":
				r.report(d, at, "production follows HEAD, because there is no targetRevision")
			case !chart && movingRef.MatchString(revision):
				r.report(d, at, "production follows %s: every merge is there at once", revision)
			}
		}
	}
	if d.is("source.toolkit.fluxcd.io", "GitRepository") && production(d.name, d.namespace) {
		if k, v := pair(get(d.root, "spec", "ref"), "branch"); v != nil && movingRef.MatchString(v.Value) {
			r.report(d, k, "production follows the branch %s: every merge is there at once", v.Value)
		}
	}
	if d.is("helm.toolkit.fluxcd.io", "HelmRelease") && production(d.name, d.namespace, text(d.root, "spec", "targetNamespace")) {
		chart := get(d.root, "spec", "chart", "spec")
		if k, v := pair(chart, "version"); v != nil && chartRange.MatchString(v.Value) {
			r.report(d, k, "production takes whatever version of the chart %s is newest in %q", text(chart, "chart"), v.Value)
		}
	}
}

func checkSelfHeal(r *run, d *document) {
	if strings.Contains(text(d.root, "spec", "templatePatch"), "selfHeal:") {
		return
	}
	for _, spec := range appSpecs(d) {
		if at := automated(spec); at != nil && text(spec, "syncPolicy", "automated", "selfHeal") != "true" {
			r.report(d, at, "sync is automated and selfHeal is not on: what somebody changes by hand stays until the next commit")
		}
	}
}

var dataWord = regexp.MustCompile(`(?i)(^|[^a-z])(crds?|custom-resources|databases?|db|postgres(ql)?|mysql|mariadb|mongo(db)?|cassandra|kafka|redis|elasticsearch|etcd)([^a-z]|$)`)

func checkAutoSyncData(r *run, d *document) {
	for _, spec := range appSpecs(d) {
		at := automated(spec)
		if at == nil {
			continue
		}
		texts := []string{d.name}
		for _, s := range sources(spec) {
			texts = append(texts, text(s, "path"), text(s, "chart"))
		}
		for _, t := range texts {
			if m := dataWord.FindStringSubmatch(t); m != nil {
				r.report(d, at, "%q sounds like data or definitions that others need, and is synced without anybody looking", t)
				break
			}
		}
	}
}

func checkDefaultProject(r *run, d *document) {
	for _, spec := range appSpecs(d) {
		k, v := pair(spec, "project")
		if v == nil || v.Value == "" || v.Value == "default" {
			r.report(d, orNode(k, spec), "this belongs to the project default, which limits neither repositories nor destinations")
		}
	}
}

// orNode returns the first of two nodes that is there.
func orNode(a, b *node) *node {
	if a != nil {
		return a
	}
	return b
}

// clean is a path of a source without its decoration.
func clean(p string) string {
	return strings.TrimPrefix(path.Clean("/"+p), "/")
}
