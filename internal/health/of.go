package health

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

const (
	hookFinalizer = "argocd.argoproj.io/hook-finalizer"
	// anyVersion is for kinds that are read alike in every version.
	anyVersion = ""
)

// check assesses one kind.
type check func(o object) rutter.Health

// Of returns the health of a live object. An empty status means that the kind
// has no health and does not count.
func Of(obj *unstructured.Unstructured) rutter.Health {
	if obj == nil || obj.Object == nil {
		return rutter.Health{}
	}
	o := newObject(obj)
	if o.pendingDeletion() {
		return because(pendingDeletion, progressing("Pending deletion%s", o.waitingFor()))
	}
	assess, version := checkFor(o.group, o.kind)
	if assess == nil {
		assess = custom(o.group, o.kind)
	}
	if assess == nil {
		if !conventional(o.group) {
			return rutter.Health{}
		}
		return byConvention(o)
	}
	if version != anyVersion && !slices.Contains(strings.Split(version, ","), o.version) {
		return unknown("The health of %s is known for version %s, not for %s", o.kind, version, o.version)
	}
	return assess(o)
}

// pendingDeletion reports whether the object is being deleted, and not only held as
// a hook until its end was seen.
func (o object) pendingDeletion() bool {
	return o.meta["deletionTimestamp"] != nil && !slices.Contains(o.finalizers(), hookFinalizer)
}

// checkFor returns the check of a kind and the versions it can read.
func checkFor(group, kind string) (assess check, versions string) {
	switch group {
	case "":
		return coreCheck(kind), "v1"
	case "apps":
		return appsCheck(kind), "v1"
	case "batch":
		return batchCheck(kind), anyVersion
	case "autoscaling":
		if kind == "HorizontalPodAutoscaler" {
			return autoscaler, "v1,v2"
		}
	case "networking.k8s.io", "extensions":
		if kind == "Ingress" {
			return ingress, anyVersion
		}
	case "apiregistration.k8s.io":
		if kind == "APIService" {
			return apiService, "v1,v1beta1"
		}
	case "apiextensions.k8s.io":
		if kind == "CustomResourceDefinition" {
			return customResourceDefinition, anyVersion
		}
	case "policy":
		if kind == "PodDisruptionBudget" {
			return disruptionBudget, anyVersion
		}
	case "argoproj.io":
		return argoCheck(kind), anyVersion
	}
	if strings.HasSuffix(group, ".toolkit.fluxcd.io") {
		return fluxCheck(kind), anyVersion
	}
	return nil, anyVersion
}

func coreCheck(kind string) check {
	switch kind {
	case "Pod":
		return pod
	case "Service":
		return service
	case "PersistentVolumeClaim":
		return claim
	case "Namespace":
		return namespace
	}
	return nil
}

func appsCheck(kind string) check {
	switch kind {
	case "Deployment":
		return deployment
	case "StatefulSet":
		return statefulSet
	case "DaemonSet":
		return daemonSet
	case "ReplicaSet":
		return replicaSet
	}
	return nil
}

func batchCheck(kind string) check {
	switch kind {
	case "Job":
		return job
	case "CronJob":
		return cronJob
	}
	return nil
}

func argoCheck(kind string) check {
	switch kind {
	case "Application":
		return application
	case "ApplicationSet":
		return applicationSet
	case "Workflow":
		return workflow
	}
	return nil
}

func fluxCheck(kind string) check {
	switch kind {
	case "Kustomization", "HelmRelease", "GitRepository", "OCIRepository", "Bucket", "HelmRepository", "HelmChart",
		"Receiver", "ImageRepository", "ImagePolicy", "ImageUpdateAutomation":
		return flux
	}
	return nil
}
