package actions

import (
	"time"

	"github.com/rutterhq/rutter"
)

// rolloutActions steer an Argo Rollout by what its own command line writes.
func rolloutActions() []builtin {
	unpause := func(o object) {
		o.unset("spec", "paused")
		o.unset("status", "pauseConditions")
	}
	paused := func(o object) bool {
		waits, _ := o.at("status", "pauseConditions").([]any)
		return o.at("spec", "paused") == true || len(waits) > 0
	}
	underway := func(o object) bool {
		hash := o.text("status", "currentPodHash")
		return hash != "" && hash != o.text("status", "stableRS")
	}
	aborted := func(o object) bool { return o.at("status", "abort") == true }
	return []builtin{
		stamping("restart", time.RFC3339, "spec", "restartAt"),
		setting("pause", true, "spec", "paused"),
		{name: "resume", when: paused, edit: func(o object, _ Params, _ time.Time) error {
			unpause(o)
			return nil
		}},
		setting("abort", true, "status", "abort").only(func(o object) bool { return underway(o) && !aborted(o) }),
		setting("retry", false, "status", "abort").only(aborted),
		{name: "promote-full", when: func(o object) bool { return underway(o) && !aborted(o) && o.at("status", "promoteFull") != true }, edit: func(o object, _ Params, _ time.Time) error {
			unpause(o)
			o.set(true, "status", "promoteFull")
			return nil
		}},
		{name: "skip-current-step", when: func(o object) bool { _, ok := nextStep(o); return ok && underway(o) }, edit: func(o object, _ Params, _ time.Time) error {
			n, _ := nextStep(o)
			unpause(o)
			o.set(n, "status", "currentStepIndex")
			return nil
		}},
	}
}

// nextStep is the index after the step of a canary that is under way.
func nextStep(o object) (int64, bool) {
	steps, _ := o.at("spec", "strategy", "canary", "steps").([]any)
	n, _ := o.at("status", "currentStepIndex").(int64)
	return n + 1, n < int64(len(steps))
}

// toggleAutoSync switches automated syncs off, and on again as they were.
func toggleAutoSync(o object, _ Params, _ time.Time) error {
	_, has := o.at("spec", "syncPolicy", "automated").(map[string]any)
	on := has && o.at("spec", "syncPolicy", "automated", "enabled") != false
	o.set(!on, "spec", "syncPolicy", "automated", "enabled")
	return nil
}

// workflowOfCron is a Workflow of a CronWorkflow, now.
func workflowOfCron(o object, now time.Time) map[string]any {
	meta := map[string]any{"generateName": clipped(o.text("metadata", "name"), 57) + "-", "ownerReferences": []any{ownedBy(o)}}
	meta["labels"] = with(o.dict("spec", "workflowMetadata", "labels"), "workflows.argoproj.io/cron-workflow", o.text("metadata", "name"))
	meta["annotations"] = with(o.dict("spec", "workflowMetadata", "annotations"), "workflows.argoproj.io/scheduled-time", now.Format(time.RFC3339))
	return map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": meta, "spec": o.dict("spec", "workflowSpec")}
}

// workflowOfTemplate is a Workflow that does what a template says.
func workflowOfTemplate(o object, _ time.Time) map[string]any {
	name := o.text("metadata", "name")
	return map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
		"metadata": map[string]any{"generateName": clipped(name, 57) + "-", "labels": map[string]any{"workflows.argoproj.io/workflow-template": name}},
		"spec":     map[string]any{"workflowTemplateRef": map[string]any{"name": name}},
	}
}

// promote makes another instance of a PostgreSQL cluster the primary one, by what the
// command line of its operator writes.
func promote(o object, given Params, now time.Time) error {
	name := given["instance"]
	names, _ := o.at("status", "instanceNames").([]any)
	found := false
	for _, n := range names {
		found = found || n == name
	}
	if !found || name == o.text("status", "currentPrimary") {
		return rutter.Errorf(rutter.CodeInvalid, "the parameter instance is %q, want one of status.instanceNames that is not the primary", name)
	}
	o.set(name, "status", "targetPrimary")
	o.set(now.Format("2006-01-02T15:04:05.000000Z07:00"), "status", "targetPrimaryTimestamp")
	o.set("Switchover in progress", "status", "phase")
	o.set("Switching over to "+name, "status", "phaseReason")
	return nil
}
