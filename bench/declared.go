package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

const (
	namespace   = "argocd"  // of Applications
	destination = "default" // of their objects
)

// set is the ApplicationSet of the whole fleet.
func (f *fleet) set() (*v1alpha1.ApplicationSet, error) {
	var set v1alpha1.ApplicationSet
	err := yaml.Unmarshal(fmt.Appendf(nil, `
metadata: {name: bench, namespace: %[2]s}
spec:
  generators:
    - git: {repoURL: %[1]q, revision: main, directories: [{path: "apps/*"}]}
  template:
    metadata: {name: "{{path.basename}}"}
    spec:
      project: default
      source: {repoURL: %[1]q, targetRevision: main, path: "{{path}}"}
      destination: {server: "https://kubernetes.default.svc", namespace: %[3]s}
      syncPolicy: {automated: {prune: true, selfHeal: true}}
`, f.url(), namespace, destination), &set)
	if err != nil {
		return nil, fmt.Errorf("read the set: %w", err)
	}
	return &set, nil
}

// application is what the set generates for one overlay.
func (f *fleet) application(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{
			"project":     "default",
			"source":      map[string]any{"repoURL": f.url(), "targetRevision": "main", "path": "apps/" + name},
			"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": destination},
			"syncPolicy":  map[string]any{"automated": map[string]any{"prune": true, "selfHeal": true}},
		},
	}}
}

func unitID(app string) rutter.UnitID {
	return rutter.UnitID{Dialect: "argo", Namespace: namespace, Name: app}
}

// status is a status as long as Rutter's: before a sync, or after it.
func (f *fleet) status(name string, synced bool) ([]byte, error) {
	var app v1alpha1.Application
	raw, err := json.Marshal(f.application(name))
	if err != nil {
		return nil, fmt.Errorf("encode Application %s: %w", name, err)
	}
	if err := json.Unmarshal(raw, &app); err != nil {
		return nil, fmt.Errorf("decode Application %s: %w", name, err)
	}
	now := time.Now()
	commit := strings.Repeat("0123456789", 4)
	report := rutter.Report{ID: unitID(name), Revisions: []string{commit}, SourceTypes: []string{"Kustomize"}, ComparedAt: now,
		Sync: rutter.OutOfSync, Images: []string{"registry.example.com/web:" + firstVersion}, Health: rutter.Health{Status: rutter.Missing}}
	op := &rutter.OperationReport{Phase: rutter.OperationRunning, Message: "waiting", StartedAt: now, Revisions: report.Revisions}
	op.Request.Automated = true
	if synced {
		report.Sync, report.Health.Status = rutter.Synced, rutter.Progressing
		op.Phase, op.Message, op.FinishedAt = rutter.OperationSucceeded, "successfully synced (all tasks run)", now
	}
	for _, kind := range [][2]string{{"", "ConfigMap"}, {"", "Service"}, {"apps", "Deployment"}} {
		ref := rutter.Ref{Group: kind[0], Kind: kind[1], Namespace: destination, Name: name + "-web"}
		report.Resources = append(report.Resources, rutter.ResourceReport{Ref: ref, Version: "v1", State: report.Sync, Health: report.Health})
		if synced {
			op.Results = append(op.Results, rutter.StepResult{Step: rutter.Step{Ref: ref, Version: "v1", Phase: rutter.PhaseSync}, Status: "Synced", Message: ref.Name + " serverside-applied"})
		}
	}
	report.Operation = op
	data, err := json.Marshal(map[string]any{"status": argo.Status(report, &app, now)})
	if err != nil {
		return nil, fmt.Errorf("encode the status of %s: %w", name, err)
	}
	return data, nil
}
