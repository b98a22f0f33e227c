package health

import (
	rutter "github.com/rutterhq/rutter"
)

func deployment(o object) rutter.Health {
	if truth(o.spec, "paused") {
		return suspended("The deployment is paused")
	}
	if h, ok := o.behind(); ok {
		return h
	}
	if c, ok := find(o.conditions(), "Progressing"); ok && c.reason == "ProgressDeadlineExceeded" {
		return from(rutter.Degraded, c)
	}
	want, updated := o.replicas(), count(o.status, "updatedReplicas")
	total, available := count(o.status, "replicas"), count(o.status, "availableReplicas")
	switch {
	case updated < want:
		return progressing("%d of %d replicas are updated", updated, want)
	case total > updated:
		return progressing("%d old replicas are waiting to be terminated", total-updated)
	case available < updated:
		return progressing("%d of %d updated replicas are available", available, updated)
	}
	return healthy("%d of %d replicas are available", available, want)
}

func statefulSet(o object) rutter.Health {
	if count(o.status, "observedGeneration") == 0 {
		return progressing("Waiting for the controller to observe the stateful set")
	}
	if h, ok := o.behind(); ok {
		return h
	}
	want, ready := o.replicas(), count(o.status, "readyReplicas")
	if ready < want {
		return progressing("%d of %d replicas are ready", ready, want)
	}
	strategy := dict(o.spec, "updateStrategy")
	rolling, hasBlock := strategy["rollingUpdate"].(map[string]any)
	updated := count(o.status, "updatedReplicas")
	switch {
	case text(strategy, "type") == "RollingUpdate" && hasBlock:
		partition, isSet := number(rolling, "partition")
		if isSet && updated < want-partition {
			return progressing("%d of %d replicas are updated (partition %d)", updated, want-partition, partition)
		}
		return healthy("%d of %d replicas are ready", ready, want)
	case text(strategy, "type") == "OnDelete":
		return healthy("%d of %d replicas are ready; pods are updated when they are deleted", ready, want)
	}
	if next, current := text(o.status, "updateRevision"), text(o.status, "currentRevision"); next != current {
		return progressing("%d of %d replicas are at revision %s", updated, want, next)
	}
	return healthy("%d of %d replicas are ready at revision %s", ready, want, text(o.status, "currentRevision"))
}

func daemonSet(o object) rutter.Health {
	if h, ok := o.behind(); ok {
		return h
	}
	want := count(o.status, "desiredNumberScheduled")
	if text(dict(o.spec, "updateStrategy"), "type") == "OnDelete" {
		return healthy("Wanted on %d nodes; pods are updated when they are deleted", want)
	}
	if n := count(o.status, "updatedNumberScheduled"); n < want {
		return progressing("%d of %d pods are updated", n, want)
	}
	available := count(o.status, "numberAvailable")
	if available < want {
		return progressing("%d of %d updated pods are available", available, want)
	}
	return healthy("%d of %d pods are available", available, want)
}

func replicaSet(o object) rutter.Health {
	if h, ok := o.behind(); ok {
		return h
	}
	if c, ok := find(o.conditions(), "ReplicaFailure"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	want, available := o.replicas(), count(o.status, "availableReplicas")
	if available < want {
		return progressing("%d of %d replicas are available", available, want)
	}
	return healthy("%d of %d replicas are available", available, want)
}

// job takes the presence of a condition for its truth, as the reference does;
// only Suspended is read.
func job(o object) rutter.Health {
	conditions := o.conditions()
	failed, isFailed := find(conditions, "Failed")
	pause, paused := find(conditions, "Suspended")
	complete, isComplete := find(conditions, "Complete")
	switch {
	case isFailed:
		return from(rutter.Degraded, failed)
	case paused && pause.status == "True":
		return from(rutter.Suspended, pause)
	case isComplete:
		return from(rutter.Healthy, complete)
	case paused:
		return healthy("The job was resumed; %d pods are active", count(o.status, "active"))
	}
	return progressing("The job is running: %d pods active, %d succeeded, %d failed",
		count(o.status, "active"), count(o.status, "succeeded"), count(o.status, "failed"))
}

// cronJob counts a schedule as healthy until a run that was due has failed.
func cronJob(o object) rutter.Health {
	if truth(o.spec, "suspend") {
		return healthy("CronJob is Suspended")
	}
	if _, ok := o.root["status"].(map[string]any); !ok {
		return progressing("Waiting for the controller to observe the cron job")
	}
	if n := len(list(o.status, "active")); n > 0 {
		return healthy("%d jobs are running", n)
	}
	due, done := text(o.status, "lastScheduleTime"), text(o.status, "lastSuccessfulTime")
	switch {
	case due == "":
		return healthy("The cron job has not been due yet")
	case done == "":
		return healthy("The cron job ran at %s and has not succeeded yet", due)
	case earlier(done, due):
		return degraded("The run of %s did not succeed; the last success was at %s", due, done)
	}
	return healthy("The last run succeeded at %s", done)
}
