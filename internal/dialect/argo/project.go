package argo

import (
	"fmt"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/policy"
)

// project checks an application against its AppProject (reference 6.2, 6.3,
// 6.9). Without an AppProject of that name, default allows everything and any
// other name nothing.
func (t *translation) project(u rutter.Unit, projects Projects) {
	p, ok := projects(u.Project)
	if !ok {
		if u.Project != "default" {
			t.invalid("spec.project: AppProject %s does not exist", u.Project)
		}
		return
	}
	if err := policy.CheckSourceNamespace(p, t.app.Name, t.app.Namespace, t.cfg.Namespace); err != nil {
		t.invalid("spec.project: %v", err)
	}
	for i, s := range u.Sources {
		if err := policy.CheckSource(p, s.RepoURL); s.RepoURL != "" && err != nil {
			t.invalid("%s.repoURL: %v", sourceField(t.app, i), err)
		}
	}
	t.destination(p, u.Target)
	t.unsupportedProject(p)
}

func (t *translation) destination(p *v1alpha1.AppProject, target rutter.Target) {
	if t.cfg.Cluster == nil || (target.Server == "") == (target.Name == "") {
		return
	}
	cluster, ok := t.cfg.Cluster(target)
	if !ok {
		return // an unknown cluster is the engine's to report
	}
	if err := policy.CheckDestination(p, cluster, target.Namespace); err != nil {
		t.invalid("spec.destination: %v", err)
	}
}

// unsupportedProject names what the project asks for in vain. Signed commits
// are a promise that nothing unsigned is deployed, so nothing is.
func (t *translation) unsupportedProject(p *v1alpha1.AppProject) {
	field := func(name string) string { return fmt.Sprintf("AppProject %s: spec.%s", p.Name, name) }
	t.unsupported(len(p.Spec.SyncWindows) > 0, field("syncWindows"))
	t.unsupported(p.Spec.OrphanedResources != nil, field("orphanedResources"))
	t.unsupported(len(p.Spec.DestinationServiceAccounts) > 0, field("destinationServiceAccounts"))
	t.refuse(len(p.Spec.SignatureKeys) > 0, field("signatureKeys"))
	t.refuse(p.Spec.SourceIntegrity != nil, field("sourceIntegrity"))
}
