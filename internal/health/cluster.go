package health

import (
	"encoding/json"
	"slices"

	rutter "github.com/rutterhq/rutter"
)

func ingress(o object) rutter.Health {
	if n := len(list(dict(o.status, "loadBalancer"), "ingress")); n > 0 {
		return healthy("%d load balancer addresses are assigned", n)
	}
	class := text(o.spec, "ingressClassName")
	if class == "" {
		class = o.annotation("kubernetes.io/ingress.class")
	}
	if class != "" && !publishes(class) {
		return because("NoAddressPublished", healthy("The controllers of class %q publish no address", class))
	}
	return because("WaitingForAddress", progressing("Waiting for an ingress controller to assign a load balancer address"))
}

// publishes reports whether the controllers of a class are known to write the
// address into every Ingress. Others may never do it, and an Ingress must not be
// waited for that is as ready as it will be.
func publishes(class string) bool {
	return slices.Contains([]string{
		"nginx", "alb", "gce", "gce-internal", "azure-application-gateway", "azure/application-gateway", "webapprouting.kubernetes.azure.com", "kong", "contour",
		"haproxy", "openshift-default",
	}, class)
}

func service(o object) rutter.Health {
	if text(o.spec, "type") != "LoadBalancer" {
		return healthy("")
	}
	if n := len(list(dict(o.status, "loadBalancer"), "ingress")); n > 0 {
		return healthy("%d load balancer addresses are assigned", n)
	}
	return progressing("Waiting for a load balancer address")
}

func claim(o object) rutter.Health {
	switch phase := text(o.status, "phase"); phase {
	case "Bound":
		return healthy("Bound to volume %s", text(o.spec, "volumeName"))
	case "Pending":
		return pendingClaim(o)
	case "Lost":
		return degraded("The volume %s of the claim is lost", text(o.spec, "volumeName"))
	default:
		return unknown("The claim is in the phase %q", phase)
	}
}

// pendingClaim tells a claim that waits for its first pod, which is as it is
// meant to be, from one that waits for its volume: who is to make a volume is
// written on the claim as soon as one is to be made, which with late binding is
// when a pod uses the claim.
func pendingClaim(o object) rutter.Health {
	for _, name := range []string{"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node"} {
		if by := o.annotation(name); by != "" {
			return because("Provisioning", progressing("The claim is not bound yet: %s makes its volume", by))
		}
	}
	if text(o.spec, "volumeName") != "" {
		return because("Binding", progressing("The claim is not bound to volume %s yet", text(o.spec, "volumeName")))
	}
	return because("WaitingForConsumer", healthy("The claim is bound when the first pod uses it"))
}

func namespace(o object) rutter.Health {
	switch phase := text(o.status, "phase"); phase {
	case "Active":
		return healthy("")
	case "Terminating":
		return progressing("The namespace is being deleted")
	case "":
		return progressing("The namespace has no phase yet")
	default:
		return unknown("The namespace is in the phase %q", phase)
	}
}

func apiService(o object) rutter.Health {
	c, ok := find(o.conditions(), "Available")
	switch {
	case !ok:
		return progressing("Waiting for the API to be checked")
	case c.status == "True":
		return from(rutter.Healthy, c)
	}
	return from(rutter.Progressing, c)
}

func customResourceDefinition(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "NamesAccepted"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "Terminating"); ok && c.status == "True" {
		return from(rutter.Progressing, c)
	}
	c, ok := find(conditions, "Established")
	switch {
	case !ok:
		return progressing("The definition is not established yet")
	case c.status != "True":
		return from(rutter.Progressing, c)
	}
	return healthy("The definition is established")
}

// disruptionBudget is healthy whatever it allows at the moment: a budget that
// forbids every disruption does what it is for.
func disruptionBudget(o object) rutter.Health {
	if h, ok := o.behind(); ok {
		return h
	}
	c, ok := find(o.conditions(), "DisruptionAllowed")
	switch {
	case ok && c.reason == "SyncFailed":
		return from(rutter.Degraded, c)
	case !ok && len(o.status) == 0:
		return progressing("Waiting for the controller to observe the budget")
	}
	return healthy("%d of %d wanted pods are healthy, %d disruptions are allowed",
		count(o.status, "currentHealthy"), count(o.status, "desiredHealthy"), count(o.status, "disruptionsAllowed"))
}

// autoscalerFailures are the conditions' reasons that make an autoscaler useless.
func autoscalerFails(c condition) bool {
	switch c.kind {
	case "AbleToScale":
		return c.reason == "FailedGetScale" || c.reason == "FailedUpdateScale"
	case "ScalingActive":
		switch c.reason {
		case "FailedGetResourceMetric", "FailedGetObjectMetric", "FailedGetPodsMetric", "FailedGetExternalMetric",
			"FailedComputeMetricsReplicas", "InvalidSelector":
			return true
		}
	}
	return false
}

func autoscaler(o object) rutter.Health {
	conditions := o.conditions()
	if o.version == "v1" { // the oldest version has no conditions; the server keeps them in an annotation
		var entries []any
		if s := o.annotation("autoscaling.alpha.kubernetes.io/conditions"); s != "" {
			if err := json.Unmarshal([]byte(s), &entries); err != nil {
				return unknown("The annotation with the conditions of the autoscaler can't be read: %v", err)
			}
		}
		conditions = conditionsOf(entries)
	}
	for _, c := range conditions {
		if autoscalerFails(c) {
			return from(rutter.Degraded, c)
		}
	}
	for _, c := range conditions {
		if (c.kind == "AbleToScale" || c.kind == "ScalingLimited") && c.status == "True" {
			return from(rutter.Healthy, c)
		}
	}
	return progressing("Waiting to Autoscale")
}
