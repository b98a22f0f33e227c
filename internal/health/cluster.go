package health

import (
	"encoding/json"

	rutter "github.com/rutterhq/rutter"
)

func ingress(o object) rutter.Health {
	if n := len(list(dict(o.status, "loadBalancer"), "ingress")); n > 0 {
		return healthy("%d load balancer addresses are assigned", n)
	}
	return progressing("Waiting for an ingress controller to assign a load balancer address")
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
		return progressing("The claim is not bound yet")
	case "Lost":
		return degraded("The volume %s of the claim is lost", text(o.spec, "volumeName"))
	default:
		return unknown("The claim is in the phase %q", phase)
	}
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
		return healthy("%s", c.words())
	}
	return progressing("%s", c.words())
}

func customResourceDefinition(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "NamesAccepted"); ok && c.status == "False" {
		return degraded("%s", c.words())
	}
	if c, ok := find(conditions, "Terminating"); ok && c.status == "True" {
		return progressing("%s", c.words())
	}
	c, ok := find(conditions, "Established")
	switch {
	case !ok:
		return progressing("The definition is not established yet")
	case c.status != "True":
		return progressing("%s", c.words())
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
		return degraded("%s", c.words())
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
			return degraded("%s", c.words())
		}
	}
	for _, c := range conditions {
		if (c.kind == "AbleToScale" || c.kind == "ScalingLimited") && c.status == "True" {
			return healthy("%s", c.words())
		}
	}
	return progressing("Waiting to Autoscale")
}
