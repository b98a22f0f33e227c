package lint

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

func checkClusterAdmin(r *run, d *document) {
	switch {
	case d.is(groupArgo, "AppProject"):
		r.project(d)
	case d.is("rbac.authorization.k8s.io", "ClusterRoleBinding"):
		if name := get(d.root, "roleRef", "name"); name != nil && name.Value == "cluster-admin" {
			r.reportAs(Warning, "bind a role that lists what is needed, in the namespaces where it is needed", d, name, "this makes its subjects administrators of the whole cluster")
		}
	case d.is("rbac.authorization.k8s.io", "ClusterRole"):
		for _, rule := range items(d.root, "rules") {
			if everything(rule, "apiGroups") && everything(rule, "resources") && everything(rule, "verbs") {
				r.reportAs(Warning, "list the groups, resources and verbs that are needed", d, rule, "this role may do everything with everything")
			}
		}
	}
}

// everything tells whether a list of texts contains "*".
func everything(n *node, key string) bool {
	for _, e := range items(n, key) {
		if e.Value == "*" {
			return true
		}
	}
	return false
}

// project looks for what a project does not limit.
func (r *run) project(d *document) {
	spec := get(d.root, "spec")
	for _, repo := range items(spec, "sourceRepos") {
		if repo.Value == "*" {
			r.report(d, repo, "this project takes manifests from any repository")
		}
	}
	for _, dest := range items(spec, "destinations") {
		if text(dest, "namespace") == "*" && (text(dest, "server") == "*" || text(dest, "name") == "*") {
			r.report(d, dest, "this project deploys to every namespace of every cluster")
		}
	}
	for _, kind := range items(spec, "clusterResourceWhitelist") {
		if text(kind, "group") == "*" && text(kind, "kind") == "*" {
			r.report(d, kind, "this project may change every cluster-scoped object, RBAC among them")
		}
	}
}

// checkArgoRBAC reads the policies of argocd-rbac-cm.
func checkArgoRBAC(r *run, d *document) {
	if !d.is("", "ConfigMap") || d.name != "argocd-rbac-cm" {
		return
	}
	data := get(d.root, "data")
	if k, v := pair(data, "policy.default"); v != nil && v.Value == "role:admin" {
		r.report(d, k, "everybody who can log in is an administrator (policy.default: role:admin)")
	}
	entries(data, func(k, v *node) {
		if !strings.HasPrefix(k.Value, "policy.") || !strings.HasSuffix(k.Value, "csv") || v.Kind != yaml.ScalarNode {
			return
		}
		offset := v.Line
		if v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			offset--
		}
		for i, line := range strings.Split(v.Value, "\n") {
			f := strings.Split(line, ",")
			for j := range f {
				f[j] = strings.TrimSpace(f[j])
			}
			if len(f) >= 6 && f[0] == "p" && f[2] == "*" && f[3] == "*" && f[5] == "allow" {
				r.report(d, &node{Line: offset + i + 1, Column: v.Column}, "%s may do everything with everything", f[1])
			}
		}
	})
}
