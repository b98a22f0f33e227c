package health

import (
	"strings"

	rutter "github.com/rutterhq/rutter"
)

// ackResource reads the conditions of AWS Controllers for Kubernetes.
func ackResource(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "ACK.Terminal"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "ACK.Recoverable"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	c, ok := find(conditions, "ACK.ResourceSynced")
	switch {
	case !ok:
		return progressing("Waiting for the resource to be made at AWS")
	case c.status == "True":
		return from(rutter.Healthy, c)
	}
	return from(rutter.Progressing, c)
}

// crossplane reads what every managed resource, claim and composite reports:
// Synced is about telling the provider, Ready about what it made. Kinds that only
// hold configuration have no status.
func crossplane(o object) rutter.Health {
	conditions := o.conditions()
	if len(conditions) == 0 {
		if len(o.status) == 0 && configures(o.kind) {
			return healthy("")
		}
		return progressing("Waiting for the provider to observe the resource")
	}
	if c, ok := find(conditions, "Synced"); ok && c.status == "False" {
		if c.reason == "ReconcilePaused" {
			return from(rutter.Suspended, c)
		}
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "LastAsyncOperation"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	c, ok := find(conditions, "Ready")
	if !ok {
		if c, ok = find(conditions, "Established"); !ok {
			return progressing("Waiting for the condition Ready")
		}
	}
	switch {
	case c.status == "True":
		return from(rutter.Healthy, c)
	case c.status == "False" && c.reason == "ReconcileError":
		return from(rutter.Degraded, c)
	}
	return from(rutter.Progressing, c)
}

// configures reports whether a kind only holds configuration.
func configures(kind string) bool {
	for _, s := range []string{"ProviderConfig", "ProviderConfigUsage", "Composition", "CompositionRevision", "EnvironmentConfig", "StoreConfig", "ControllerConfig", "DeploymentRuntimeConfig", "ResourcePack", "Usage"} {
		if kind == s || strings.HasSuffix(kind, s) {
			return true
		}
	}
	return false
}

func pulumi(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "Stalled"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	if last := dict(o.status, "lastUpdate"); text(last, "state") == "failed" {
		return degraded("The last update failed%s", suffix(text(last, "message")))
	}
	if c, ok := find(conditions, "Reconciling"); ok && c.status == "True" {
		return from(rutter.Progressing, c)
	}
	if text(dict(o.status, "lastUpdate"), "state") == "succeeded" {
		return healthy("The last update succeeded")
	}
	return ready("Ready")(o)
}

// shoot is a cluster of Gardener: its last operation, then its conditions.
func shoot(o object) rutter.Health {
	if truth(dict(o.spec, "hibernation"), "enabled") && truth(o.status, "hibernated") {
		return suspended("The cluster is hibernated")
	}
	op := dict(o.status, "lastOperation")
	what := text(op, "type") + " is " + text(op, "state") + suffix(text(op, "description"))
	switch text(op, "state") {
	case "Failed", "Error", "Aborted":
		return degraded("%s", what)
	case "Succeeded":
	default:
		return progressing("%s", what)
	}
	for _, c := range append(o.conditions(), conditionsOf(list(o.status, "constraints"))...) {
		if c.status == "False" && c.kind != "HibernationPossible" && c.kind != "MaintenancePreconditionsSatisfied" {
			return degraded("%s: %s", c.kind, c.words())
		}
	}
	return healthy("%s", what)
}

func nmstate(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "Degraded"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "Ignored"); ok && c.status == "True" {
		return from(rutter.Suspended, c)
	}
	if c, ok := find(conditions, "Available"); ok && c.status == "True" {
		return from(rutter.Healthy, c)
	}
	return progressing("The policy is being applied to the nodes")
}

// capi reads the kinds of Cluster API, of which older versions say Ready and
// newer ones Available; a phase of failure counts before both.
func capi(names ...string) check {
	return func(o object) rutter.Health {
		if why := firstText(o.status, "failureMessage", "failureReason"); why != "" {
			return degraded("%s", why)
		}
		switch p := text(o.status, "phase"); p {
		case "Failed", "Unknown":
			return degraded("The phase is %s", p)
		case "Deleting", "ScalingDown", "ScalingUp", "Provisioning", "Pending":
			return progressing("The phase is %s", p)
		}
		if h, stale := unobserved(o, condition{}); stale {
			return h
		}
		conditions := o.conditions()
		for _, n := range names {
			c, ok := find(conditions, n)
			switch {
			case !ok:
			case c.status == "True":
				return from(rutter.Healthy, c)
			case strings.HasSuffix(c.reason, "Failed") || strings.HasSuffix(c.reason, "Error"):
				return from(rutter.Degraded, c)
			default:
				return from(rutter.Progressing, c)
			}
		}
		if p := text(o.status, "phase"); p == "Running" || p == "Provisioned" {
			return healthy("The phase is %s", p)
		}
		return progressing("Waiting for the condition %s", names[0])
	}
}

func capiMachine(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "HealthCheckSucceeded"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	return capi("Ready", "Available")(o)
}

func karmada(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "Scheduled"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	for _, item := range list(o.status, "aggregatedStatus") {
		m, _ := item.(map[string]any)
		switch {
		case text(m, "appliedMessage") != "" && !truth(m, "applied"):
			return degraded("%s: %s", text(m, "clusterName"), text(m, "appliedMessage"))
		case text(m, "health") == "Unhealthy":
			return degraded("%s: the workload is unhealthy", text(m, "clusterName"))
		}
	}
	c, ok := find(conditions, "FullyApplied")
	switch {
	case !ok:
		return progressing("Waiting for the resource to be applied to its clusters")
	case c.status == "True":
		return from(rutter.Healthy, c)
	}
	return from(rutter.Progressing, c)
}

func virtualMachine(o object) rutter.Health {
	switch s := text(o.status, "printableStatus"); s {
	case "Running":
	case "Stopped", "Paused", "Halted":
		return suspended("The virtual machine is %s", s)
	case "CrashLoopBackOff", "ErrorUnschedulable", "ErrImagePull", "ImagePullBackOff", "ErrorPvcNotFound", "ErrorDataVolumeNotFound", "DataVolumeError", "Unknown":
		return degraded("The virtual machine is %s", s)
	}
	if c, ok := find(o.conditions(), "Failure"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(o.conditions(), "Paused"); ok && c.status == "True" {
		return from(rutter.Suspended, c)
	}
	return becoming("Ready")(o)
}

// certificate is not degraded while it is issued for the first time, or anew.
func certificate(o object) rutter.Health {
	conditions := o.conditions()
	issuing, ok := find(conditions, "Issuing")
	if ok && issuing.status == "False" && issuing.reason == "Failed" {
		return from(rutter.Degraded, issuing)
	}
	c, known := find(conditions, "Ready")
	switch {
	case known && c.status == "True":
		return from(rutter.Healthy, c)
	case ok && issuing.status == "True":
		return from(rutter.Progressing, issuing)
	case known && c.status == "False" && c.reason != "DoesNotExist" && c.reason != "Pending" && c.reason != "InProgress":
		return from(rutter.Degraded, c)
	case known:
		return from(rutter.Progressing, c)
	}
	return progressing("Waiting for the certificate to be issued")
}

func clusterExternalSecret(o object) rutter.Health {
	conditions := o.conditions()
	for _, kind := range []string{"NotReady", "PartiallyReady"} {
		if c, ok := find(conditions, kind); ok && c.status == "True" {
			return from(rutter.Degraded, c)
		}
	}
	return ready("Ready")(o)
}

// sealedSecret has no status where its controller does not write one.
func sealedSecret(o object) rutter.Health {
	if len(o.status) == 0 {
		return healthy("The controller writes no status")
	}
	if h, ok := o.behind(); ok && o.status["observedGeneration"] != nil {
		return h
	}
	return ready("Synced")(o)
}
