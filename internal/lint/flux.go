package lint

const groupKustomize = "kustomize.toolkit.fluxcd.io"

// checkHealthGates finds Kustomizations that others wait for and that say they
// are ready before they are.
func checkHealthGates(r *run) {
	type key struct{ namespace, name string }
	needed := map[key]*document{}
	for _, d := range r.repo.docs {
		if !d.is(groupKustomize, "Kustomization") {
			continue
		}
		for _, dep := range items(d.root, "spec", "dependsOn") {
			namespace := text(dep, "namespace")
			if namespace == "" {
				namespace = d.namespace
			}
			needed[key{namespace, text(dep, "name")}] = d
		}
	}
	for _, d := range r.repo.docs {
		by := needed[key{d.namespace, d.name}]
		spec := get(d.root, "spec")
		if by == nil || !d.is(groupKustomize, "Kustomization") || truth(spec, "wait") || len(items(spec, "healthChecks")) > 0 {
			continue
		}
		at, _ := pair(get(d.root, "metadata"), "name")
		r.report(d, at, "%s depends on this, and it is ready as soon as it is applied, whether it works or not", by.object())
	}
}

// checkTwoControllers finds folders that both tools deploy.
func checkTwoControllers(r *run) {
	argo := map[string]*document{}
	for _, d := range r.repo.docs {
		for _, spec := range appSpecs(d) {
			for _, s := range sources(spec) {
				if p := clean(text(s, "path")); p != "" && !templatedText(p) {
					argo[p] = d
				}
			}
		}
	}
	for _, d := range r.repo.docs {
		if !d.is(groupKustomize, "Kustomization") {
			continue
		}
		k, v := pair(get(d.root, "spec"), "path")
		if v == nil {
			continue
		}
		if app := argo[clean(v.Value)]; app != nil {
			r.report(d, k, "%s in %s deploys %s too; the two undo each other's work", app.object(), app.file.path, clean(v.Value))
		}
	}
}
