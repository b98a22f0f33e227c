package lint

import (
	"slices"
	"strings"
)

var workloadKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

func checkProbes(r *run, d *document) {
	if d.group() != "apps" || !slices.Contains(workloadKinds, d.kind) || !production(d.file.path, d.namespace, d.name) {
		return
	}
	for _, c := range items(d.root, "spec", "template", "spec", "containers") {
		if get(c, "ports") != nil && get(c, "readinessProbe") == nil {
			at, _ := pair(c, "name")
			r.report(d, orNode(at, c), "the container %s serves a port and has no readinessProbe: it counts as healthy as soon as it runs", text(c, "name"))
		}
	}
}

// checkAutoscaled finds replicas that an autoscaler owns.
func checkAutoscaled(r *run) {
	type target struct{ kind, name, namespace string }
	scaled := map[target]*document{}
	for _, d := range r.repo.docs {
		if d.is("autoscaling", "HorizontalPodAutoscaler") || d.is("keda.sh", "ScaledObject") {
			ref := get(d.root, "spec", "scaleTargetRef")
			kind := text(ref, "kind")
			if kind == "" {
				kind = "Deployment"
			}
			scaled[target{kind, text(ref, "name"), d.namespace}] = d
		}
	}
	if len(scaled) == 0 || r.repo.ignoresReplicas() {
		return
	}
	for _, d := range r.repo.docs {
		hpa := scaled[target{d.kind, d.name, d.namespace}]
		if k, v := pair(get(d.root, "spec"), "replicas"); hpa != nil && v != nil && d.group() == "apps" {
			r.report(d, k, "spec.replicas is set here, and %s in %s scales it", hpa.object(), hpa.file.path)
		}
	}
}

// ignoresReplicas tells whether some Application leaves replicas alone.
func (r *repo) ignoresReplicas() bool {
	for _, d := range r.docs {
		for _, spec := range appSpecs(d) {
			for _, i := range items(spec, "ignoreDifferences") {
				for _, list := range []string{"jsonPointers", "jqPathExpressions"} {
					if slices.ContainsFunc(items(i, list), func(p *node) bool { return strings.HasSuffix(p.Value, "replicas") }) {
						return true
					}
				}
			}
		}
	}
	return false
}

func checkUnprotectedData(r *run) {
	if !slices.ContainsFunc(r.repo.docs, prunes) {
		return
	}
	for _, d := range r.repo.docs {
		if !d.is("", "PersistentVolumeClaim") && !d.is("", "PersistentVolume") {
			continue
		}
		options := text(d.root, "metadata", "annotations", prefixArgo+"sync-options")
		if !strings.Contains(options, "Prune=false") && !strings.Contains(options, "Prune=confirm") {
			at, _ := pair(d.root, "kind")
			r.report(d, at, "Applications of this repository prune, and this volume would go with its file")
		}
	}
}
