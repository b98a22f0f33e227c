package health

import (
	"strings"

	rutter "github.com/rutterhq/rutter"
)

func prometheus(o object) rutter.Health {
	if truth(o.spec, "paused") {
		return suspended("The operator leaves it alone: spec.paused is true")
	}
	if h, ok := o.behind(); ok && o.status["observedGeneration"] != nil {
		return h
	}
	conditions := o.conditions()
	if c, ok := find(conditions, "Reconciled"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	c, ok := find(conditions, "Available")
	switch {
	case !ok:
		return progressing("Waiting for the condition Available")
	case c.status == "True":
		return from(rutter.Healthy, c)
	case c.status == "Degraded":
		return from(rutter.Degraded, c)
	}
	return from(rutter.Progressing, c)
}

func grafana(o object) rutter.Health {
	if text(o.status, "stageStatus") == "failed" || strings.Contains(text(o.status, "lastMessage"), "error") {
		return degraded("stage %s failed%s", text(o.status, "stage"), suffix(text(o.status, "lastMessage")))
	}
	if text(o.status, "stage") == "complete" && text(o.status, "stageStatus") == "success" {
		return healthy("All stages are complete")
	}
	return progressing("stage %s is %s", text(o.status, "stage"), text(o.status, "stageStatus"))
}

// grafanaItem is in step with each instance that it goes to; one that no
// instance takes is told by a condition.
func grafanaItem(o object) rutter.Health {
	conditions := o.conditions()
	for _, c := range conditions {
		switch {
		case c.kind == "NoMatchingInstance" && c.status == "True", c.kind == "InvalidSpec" && c.status == "True":
			return from(rutter.Degraded, c)
		case strings.HasSuffix(c.kind, "Synchronized") && c.status == "False":
			return from(rutter.Degraded, c)
		case strings.HasSuffix(c.kind, "Suspended") && c.status == "True":
			return from(rutter.Suspended, c)
		}
	}
	for _, c := range conditions {
		if strings.HasSuffix(c.kind, "Synchronized") && c.status == "True" {
			return from(rutter.Healthy, c)
		}
	}
	return progressing("Waiting to be given to an instance")
}

// victoria reads the kinds of VictoriaMetrics, which sum up in updateStatus.
func victoria(o object) rutter.Health {
	if truth(o.spec, "paused") {
		return suspended("The operator leaves it alone: spec.paused is true")
	}
	if h, ok := o.behind(); ok && o.status["observedGeneration"] != nil {
		return h
	}
	return phase(phases{path: "updateStatus", healthy: "operational", progressing: "expanding", suspended: "paused", degraded: "failed"})(o)
}

func cnpg(o object) rutter.Health {
	if o.annotation("cnpg.io/hibernation") == "on" {
		return suspended("The cluster is hibernated")
	}
	if o.annotation("cnpg.io/reconciliationLoop") == "disabled" {
		return suspended("Reconciliation is disabled")
	}
	p := text(o.status, "phase")
	switch {
	case p == "Cluster in healthy state":
		return healthy("%s", p)
	case strings.Contains(p, "fail"), strings.Contains(p, "Unable"), strings.Contains(p, "Not enough disk"), strings.Contains(p, "unrecoverable"), strings.Contains(p, "Error"):
		return degraded("%s%s", p, suffix(text(o.status, "phaseReason")))
	case strings.Contains(p, "Waiting for user"):
		return suspended("%s%s", p, suffix(text(o.status, "phaseReason")))
	case p == "":
		return progressing("The cluster has no phase yet")
	}
	return progressing("%s%s", p, suffix(text(o.status, "phaseReason")))
}

func perconaState(o object) rutter.Health {
	return phase(phases{path: "state", healthy: "ready", progressing: "initializing stopping", suspended: "paused", degraded: "error unknown"})(o)
}

// elastic reads the kinds of Elastic Cloud on Kubernetes: a phase and a colour.
func elastic(o object) rutter.Health {
	if o.annotation("eck.k8s.elastic.co/managed") == "false" {
		return suspended("The operator leaves it alone")
	}
	if h, ok := o.behind(); ok && o.status["observedGeneration"] != nil {
		return h
	}
	switch p := text(o.status, "phase"); p {
	case "Invalid", "MigratingDataFailed":
		return degraded("The phase is %s", p)
	case "ApplyingChanges", "MigratingData", "NodesAreStalled":
		return progressing("The phase is %s", p)
	}
	want, have := count(o.status, "expectedNodes"), count(o.status, "availableNodes")
	switch text(o.status, "health") {
	case "green":
		if have < want {
			return progressing("%d of %d nodes are available", have, want)
		}
		return healthy("The health is green, %d nodes are available", have)
	case "yellow":
		return progressing("The health is yellow, %d nodes are available", have)
	case "red":
		return degraded("The health is red, %d nodes are available", have)
	}
	return progressing("The health is not known yet")
}

func altinity(o object) rutter.Health {
	if e := list(o.status, "errors"); len(e) > 0 && text(o.status, "status") != "Completed" {
		if s, ok := e[0].(string); ok {
			return degraded("%s", s)
		}
	}
	return phase(phases{path: "status", healthy: "completed", progressing: "inprogress terminating", suspended: "stopped", degraded: "aborted failed"})(o)
}

func ceph(o object) rutter.Health {
	h := dict(o.status, "ceph")
	switch text(h, "health") {
	case "HEALTH_OK":
		return healthy("HEALTH_OK")
	case "HEALTH_WARN":
		return degraded("HEALTH_WARN%s", suffix(firstDetail(h)))
	case "HEALTH_ERR":
		return degraded("HEALTH_ERR%s", suffix(firstDetail(h)))
	}
	return phase(phases{healthy: "connected", progressing: "progressing connecting deleting ready", degraded: "failure"})(o)
}

// firstDetail is the first of what is wrong with a cluster of Ceph.
func firstDetail(h map[string]any) string {
	details := dict(h, "details")
	for _, name := range sorted(details) {
		m, _ := details[name].(map[string]any)
		return name + suffix(text(m, "message"))
	}
	return ""
}

// rackMembers counts the members of a cluster of Cassandra, rack by rack.
func rackMembers(o object) rutter.Health {
	racks := dict(o.status, "racks")
	if len(racks) == 0 {
		return progressing("Waiting for the first rack")
	}
	for _, name := range sorted(racks) {
		m, _ := racks[name].(map[string]any)
		if ready, members := count(m, "readyMembers"), count(m, "members"); ready < members {
			return progressing("rack %s: %d of %d members are ready", name, ready, members)
		}
	}
	return healthy("All members of %d racks are ready", len(racks))
}

func tenant(o object) rutter.Health {
	switch colour := text(o.status, "healthStatus"); colour {
	case "red":
		return degraded("%s", firstText(o.status, "healthMessage", "currentState"))
	case "yellow":
		return progressing("%s", firstText(o.status, "healthMessage", "currentState"))
	}
	switch s := text(o.status, "currentState"); {
	case s == "Initialized":
		return healthy("%s", s)
	case strings.Contains(s, "Provisioning"), strings.Contains(s, "Waiting"), strings.Contains(s, "Updating"), strings.Contains(s, "Restarting"), strings.Contains(s, "being"), s == "":
		return progressing("The tenant is %q", s)
	default:
		return degraded("%s", s)
	}
}

func solr(o object) rutter.Health {
	want := o.replicas()
	if n, ok := number(o.spec, "replicas"); !ok {
		want = max(n, 3)
	}
	have, updated := count(o.status, "readyReplicas"), count(o.status, "upToDateNodes")
	switch {
	case have < want:
		return progressing("%d of %d nodes are ready", have, want)
	case o.status["upToDateNodes"] != nil && updated < want:
		return progressing("%d of %d nodes are up to date", updated, want)
	}
	return healthy("%d of %d nodes are ready", have, want)
}

func zookeeper(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "Error"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "Upgrading"); ok && c.status == "True" {
		return from(rutter.Progressing, c)
	}
	return becoming("PodsReady")(o)
}

// rabbit is judged by its replicas; a pause of its operator is a label.
func rabbit(o object) rutter.Health {
	if text(dict(o.meta, "labels"), "rabbitmq.com/pauseReconciliation") == "true" {
		return suspended("Reconciliation is paused")
	}
	conditions := o.conditions()
	if c, ok := find(conditions, "ReconcileSuccess"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "NoWarnings"); ok && c.status == "False" {
		return from(rutter.Degraded, c)
	}
	if h, stale := unobserved(o, condition{}); stale {
		return h
	}
	for _, kind := range []string{"AllReplicasReady", "ClusterAvailable"} {
		if c, ok := find(conditions, kind); !ok || c.status != "True" {
			return progressing("%s%s", kind, suffix(c.words()))
		}
	}
	return healthy("All replicas are ready")
}

// strimzi says NotReady with a reason, also for what is only being made.
func strimzi(o object) rutter.Health {
	conditions := o.conditions()
	if c, ok := find(conditions, "ReconciliationPaused"); ok && c.status == "True" {
		return from(rutter.Suspended, c)
	}
	if h, stale := unobserved(o, condition{}); stale {
		return h
	}
	if c, ok := find(conditions, "NotReady"); ok && c.status == "True" {
		if c.reason == "Creating" {
			return from(rutter.Progressing, c)
		}
		return from(rutter.Degraded, c)
	}
	return becoming("Ready")(o)
}

func spark(o object) rutter.Health {
	state := dict(o.status, "applicationState")
	message := text(state, "state") + suffix(text(state, "errorMessage"))
	switch text(state, "state") {
	case "RUNNING", "COMPLETED":
		return healthy("%s", message)
	case "FAILED", "SUBMISSION_FAILED", "UNKNOWN":
		return degraded("%s", message)
	case "SUSPENDED":
		return suspended("%s", message)
	}
	return progressing("The application is %q", message)
}

func flink(o object) rutter.Health {
	if text(dict(o.spec, "job"), "state") == "suspended" && text(o.status, "lifecycleState") == "SUSPENDED" {
		return suspended("The job is suspended")
	}
	if e := text(o.status, "error"); e != "" && text(dict(o.status, "jobStatus"), "state") != "RUNNING" {
		return degraded("%s", e)
	}
	if text(o.status, "jobManagerDeploymentStatus") == "ERROR" {
		return degraded("The job manager cannot be deployed")
	}
	switch s := text(dict(o.status, "jobStatus"), "state"); s {
	case "FAILED", "FAILING":
		return degraded("The job is %s", s)
	case "RUNNING", "FINISHED":
		return healthy("The job is %s", s)
	}
	switch s := text(o.status, "lifecycleState"); s {
	case "STABLE", "DEPLOYED":
		return healthy("The deployment is %s", s)
	case "FAILED", "ROLLED_BACK":
		return degraded("The deployment is %s", s)
	case "SUSPENDED":
		return suspended("The deployment is suspended")
	default:
		return progressing("The deployment is %q", s)
	}
}
