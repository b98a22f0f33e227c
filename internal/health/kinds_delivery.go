package health

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	rutter "github.com/rutterhq/rutter"
)

func healthyAlways(object) rutter.Health { return healthy("") }

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// rollout is a workload of Argo Rollouts, which sums up in a phase; older
// versions had only conditions.
func rollout(o object) rutter.Health {
	observed := text(o.status, "observedGeneration")
	if n, err := strconv.ParseInt(observed, 10, 64); err == nil && n != count(o.meta, "generation") {
		return progressing("Waiting for the controller to observe the newest spec: generation %d, observed %d", count(o.meta, "generation"), n)
	}
	if truth(o.spec, "paused") {
		return suspended("The rollout is paused by hand")
	}
	message := text(o.status, "message")
	switch p := text(o.status, "phase"); p {
	case "Healthy":
		return healthy("%s", message)
	case "Paused":
		return suspended("The rollout waits at a step%s", suffix(message))
	case "Degraded":
		return degraded("The rollout is degraded%s", suffix(message))
	case "":
		for _, c := range o.conditions() {
			if c.kind == "InvalidSpec" && c.status == "True" || c.kind == "Progressing" && (c.reason == "RolloutAborted" || c.reason == "ProgressDeadlineExceeded") {
				return from(rutter.Degraded, c)
			}
		}
		return progressing("The rollout has no phase yet")
	default:
		return progressing("The rollout is %s%s", p, suffix(message))
	}
}

func deploymentConfig(o object) rutter.Health {
	if truth(o.spec, "paused") {
		return suspended("The deployment config is paused")
	}
	if h, ok := o.behind(); ok {
		return h
	}
	conditions := o.conditions()
	if c, ok := find(conditions, "Progressing"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	want, updated, available := o.replicas(), count(o.status, "updatedReplicas"), count(o.status, "availableReplicas")
	switch {
	case updated < want:
		return progressing("%d of %d replicas are updated", updated, want)
	case available < want:
		return progressing("%d of %d replicas are available", available, want)
	}
	return healthy("%d of %d replicas are available", available, want)
}

// kruise reads the CloneSet and StatefulSet of OpenKruise.
func kruise(o object) rutter.Health {
	if h, ok := o.behind(); ok {
		return h
	}
	if c, ok := find(o.conditions(), "FailedUpdate"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	want, updated, ready := o.replicas(), count(o.status, "updatedReplicas"), count(o.status, "readyReplicas")
	partition := count(dict(o.spec, "updateStrategy"), "partition")
	switch {
	case updated < want-partition:
		return progressing("%d of %d replicas are updated", updated, want-partition)
	case ready < want:
		return progressing("%d of %d replicas are ready", ready, want)
	}
	return healthy("%d of %d replicas are ready", ready, want)
}

func kruiseDaemonSet(o object) rutter.Health {
	if truth(dict(dict(o.spec, "updateStrategy"), "rollingUpdate"), "paused") {
		return suspended("The update is paused")
	}
	return daemonSet(o)
}

func kruiseRollout(o object) rutter.Health {
	message := text(o.status, "message")
	for _, field := range []string{"canaryStatus", "blueGreenStatus"} {
		switch text(dict(o.status, field), "currentStepState") {
		case "StepPaused":
			return suspended("The rollout waits at a step%s", suffix(message))
		case "StepMetricsAnalysisFailed":
			return degraded("The analysis of a step failed%s", suffix(message))
		}
	}
	return phase(phases{healthy: "healthy", progressing: "initial progressing terminating", suspended: "disabled disabling", degraded: "failed"})(o)
}

// scaler is ready when its trigger can be read; idle is no fault.
func scaler(o object) rutter.Health {
	for _, name := range []string{"autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas"} {
		if v := o.annotation(name); v != "" && v != "false" {
			return suspended("the annotation %s is %q", name, v)
		}
	}
	conditions := o.conditions()
	if c, ok := find(conditions, "Paused"); ok && c.status == "True" {
		return from(rutter.Suspended, c)
	}
	if c, ok := find(conditions, "Fallback"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	return ready("Ready")(o)
}

func snapshot(o object) rutter.Health {
	if e := dict(o.status, "error"); e != nil {
		return degraded("The snapshot failed%s", suffix(text(e, "message")))
	}
	if truth(o.status, "readyToUse") {
		return healthy("The snapshot can be used")
	}
	return progressing("The snapshot is being taken")
}

func keptnMetric(o object) rutter.Health {
	if e := text(o.status, "errMsg"); e != "" {
		return degraded("%s", e)
	}
	return filled("value")(o)
}

// inferenceService must have all of its conditions; one that is stopped has none.
func inferenceService(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "Stopped"); ok && c.status == "True" {
		return from(rutter.Suspended, c)
	}
	if t := text(dict(o.status, "modelStatus"), "transitionStatus"); t == "BlockedByFailedLoad" || t == "InvalidSpec" {
		return degraded("%s%s", t, suffix(text(dict(dict(o.status, "modelStatus"), "lastFailureInfo"), "message")))
	}
	return becoming("Ready")(o)
}

func spinApp(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "Progressing"); ok && c.reason == "ProgressDeadlineExceeded" {
		return from(rutter.Degraded, c)
	}
	return becoming("Available")(o)
}

func ansibleJob(o object) rutter.Health {
	result := dict(o.status, "ansibleJobResult")
	switch s := text(result, "status"); s {
	case "successful":
		return healthy("The job has succeeded")
	case "failed", "error", "canceled":
		return degraded("The job is %s%s", s, suffix(firstText(o.status, "message")))
	}
	return ansible(o)
}

// subscription of the Operator Lifecycle Manager: an upgrade that waits for a
// person is suspended.
func subscription(o object) rutter.Health {
	conditions := o.conditions()
	for _, c := range conditions {
		if c.status == "True" && (c.kind == "ResolutionFailed" || c.kind == "BundleUnpackFailed" || c.kind == "InstallPlanFailed" || c.kind == "CatalogSourcesUnhealthy") {
			return from(rutter.Degraded, c)
		}
		if c.status == "True" && c.kind == "InstallPlanPending" {
			if c.reason == "RequiresApproval" {
				return from(rutter.Suspended, c)
			}
			return from(rutter.Progressing, c)
		}
	}
	switch s := text(o.status, "state"); s {
	case "AtLatestKnown":
		return healthy("At the newest known version, %s", text(o.status, "installedCSV"))
	case "UpgradeAvailable":
		return healthy("%s is installed and an upgrade is available", text(o.status, "installedCSV"))
	case "UpgradePending":
		if text(o.spec, "installPlanApproval") == "Manual" {
			return suspended("An upgrade waits for approval")
		}
		return progressing("An upgrade is on its way")
	default:
		return progressing("The subscription is %q", s)
	}
}

// numa reads the kinds of Numaflow and Numaplane: a phase, and a wish to pause.
func numa(o object) rutter.Health {
	if h, stale := unobserved(o, condition{}); stale {
		return h
	}
	if p := text(dict(o.spec, "lifecycle"), "desiredPhase"); p == "Paused" && text(o.status, "phase") == "Paused" {
		return suspended("The pipeline is paused")
	}
	for _, c := range o.conditions() {
		if c.status == "False" && (strings.HasSuffix(c.kind, "Healthy") || c.kind == "ChildResourceDeployed" || c.kind == "DaemonServiceHealthy") && c.reason != "Progressing" && c.reason != "Pending" {
			return degraded("%s: %s", c.kind, c.words())
		}
	}
	return phase(phases{healthy: "running succeeded deployed", progressing: "pending pausing deleting", suspended: "paused", degraded: "failed"})(o)
}

// threescale reads the conditions of 3scale's capabilities, of which each kind has others.
func threescale(o object) rutter.Health {
	conditions := o.conditions()
	for _, kind := range []string{"Ready", "Synced"} {
		if c, ok := find(conditions, kind); ok {
			if c.status == "True" {
				return from(rutter.Healthy, c)
			}
			return from(rutter.Progressing, c)
		}
	}
	return progressing("Waiting for the first conditions")
}
