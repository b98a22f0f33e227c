package actions

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	restartedAt = "kubectl.kubernetes.io/restartedAt"
	forceSync   = "force-sync"
	// unix is no form of package time: seconds since 1970.
	unix = "unix"
)

// builtins are the actions by group/kind.
func builtins() map[string][]builtin {
	scale := counted("scale", func(o object, n int64) { o.set(n, "spec", "replicas") }, "spec", "replicas")
	restart := stamping("restart", time.RFC3339, "spec", "template", "metadata", "annotations", restartedAt)
	suspension := switched("suspend", "resume", "spec", "suspend")
	reconcile := stamping("reconcile", time.RFC3339Nano, "metadata", "annotations", "reconcile.fluxcd.io/requestedAt")
	flux := slices.Concat(suspension, []builtin{reconcile.only(func(o object) bool { return o.at("spec", "suspend") != true })})
	out := map[string][]builtin{
		"apps/Deployment":  slices.Concat(switched("pause", "resume", "spec", "paused"), []builtin{scale, restart.only(func(o object) bool { return o.at("spec", "paused") != true })}),
		"apps/StatefulSet": {restart, scale},
		"apps/DaemonSet":   {restart},
		"batch/CronJob":    slices.Concat(suspension, []builtin{{name: "create-job", make: jobOf}}),
		"batch/Job":        jobActions(),

		"argoproj.io/AnalysisRun": {setting("terminate", true, "spec", "terminate").only(func(o object) bool {
			return o.at("spec", "terminate") != true && !slices.Contains([]string{"Successful", "Failed", "Error", "Inconclusive"}, o.text("status", "phase"))
		})},
		"argoproj.io/Application":      {{name: "toggle-auto-sync", edit: toggleAutoSync}},
		"argoproj.io/CronWorkflow":     {{name: "create-workflow", make: workflowOfCron}},
		"argoproj.io/WorkflowTemplate": {{name: "create-workflow", make: workflowOfTemplate}},
		"argoproj.io/Rollout":          rolloutActions(),

		"external-secrets.io/ExternalSecret": {stamping("refresh", unix, "metadata", "annotations", forceSync)},
		"external-secrets.io/PushSecret":     {stamping("push", unix, "metadata", "annotations", forceSync)},
		"cert-manager.io/Certificate":        {{name: "renew", when: func(o object) bool { return !o.condition("Issuing") }, edit: renew}},
		"core.strimzi.io/StrimziPodSet":      {setting("rolling-update", "true", "metadata", "annotations", "strimzi.io/manual-rolling-update")},
		"k8s.mariadb.com/MariaDB":            suspension,
		"promoter.argoproj.io/PullRequest": {setting("merge", "merged", "spec", "state").only(func(o object) bool {
			return o.text("spec", "state") == "open"
		})},
		"psmdb.percona.com/PerconaServerMongoDB": {switched("pause", "unpause", "spec", "pause")[1]},
		"postgresql.cnpg.io/Cluster":             postgresActions(),

		"keda.sh/ScaledObject": slices.Concat(kedaActions(), []builtin{counted("paused-replicas", func(o object, n int64) {
			o.set(strconv.FormatInt(n, 10), "metadata", "annotations", kedaPausedReplicas)
		}, "metadata", "annotations", kedaPausedReplicas)}),
		"keda.sh/ScaledJob": kedaActions(),
	}
	for kind := range strings.FieldsSeq("helm.toolkit.fluxcd.io/HelmRelease kustomize.toolkit.fluxcd.io/Kustomization image.toolkit.fluxcd.io/ImageRepository image.toolkit.fluxcd.io/ImageUpdateAutomation " +
		"notification.toolkit.fluxcd.io/Receiver source.toolkit.fluxcd.io/Bucket source.toolkit.fluxcd.io/GitRepository source.toolkit.fluxcd.io/HelmChart source.toolkit.fluxcd.io/HelmRepository source.toolkit.fluxcd.io/OCIRepository") {
		out[kind] = flux
	}
	for _, kind := range []string{"Alert", "Provider"} {
		out["notification.toolkit.fluxcd.io/"+kind] = suspension
	}
	numaActions(out)
	return out
}

func jobActions() []builtin {
	ended := func(o object) bool { return o.condition("Complete", "Failed") }
	list := switched("suspend", "resume", "spec", "suspend")
	suspend := list[0].when
	list[0] = list[0].only(func(o object) bool { return suspend(o) && !ended(o) })
	// A deadline that has passed ends the Job, and lets its end be seen.
	return append(list, setting("terminate", int64(1), "spec", "activeDeadlineSeconds").only(func(o object) bool { return !ended(o) }))
}

// jobOf is a Job of a CronJob, now, as kubectl create job makes it.
func jobOf(o object, now time.Time) map[string]any {
	template := object{o.dict("spec", "jobTemplate")}
	meta := map[string]any{
		// 63 bytes are what a name may have that becomes a label.
		"name":            clipped(o.text("metadata", "name"), 52) + "-" + strconv.FormatInt(now.Unix(), 10),
		"annotations":     with(template.dict("metadata", "annotations"), "cronjob.kubernetes.io/instantiate", "manual"),
		"ownerReferences": []any{ownedBy(o)},
	}
	if labels := template.dict("metadata", "labels"); len(labels) > 0 {
		meta["labels"] = labels
	}
	return map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": template.dict("spec")}
}

func ownedBy(o object) map[string]any {
	return map[string]any{"apiVersion": o.text("apiVersion"), "kind": o.text("kind"), "name": o.text("metadata", "name"), "uid": o.text("metadata", "uid"), "controller": true}
}

func with(m map[string]any, key string, value any) map[string]any {
	if m == nil {
		m = map[string]any{}
	}
	m[key] = value
	return m
}

func clipped(name string, n int) string {
	if len(name) > n {
		return strings.TrimRight(name[:n], "-.")
	}
	return name
}

// renew asks for a new certificate before the old one ends, by the condition by which
// cert-manager's own tool does.
func renew(o object, _ Params, now time.Time) error {
	var kept []any
	list, _ := o.at("status", "conditions").([]any)
	for _, entry := range list {
		if c, _ := entry.(map[string]any); c["type"] != "Issuing" {
			kept = append(kept, entry)
		}
	}
	issuing := map[string]any{"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "Asked for by rutter app actions run", "lastTransitionTime": now.Format(time.RFC3339)}
	if generation, ok := o.at("metadata", "generation").(int64); ok {
		issuing["observedGeneration"] = generation
	}
	o.set(append(kept, issuing), "status", "conditions")
	return nil
}

const (
	kedaPaused         = "autoscaling.keda.sh/paused"
	kedaPausedReplicas = "autoscaling.keda.sh/paused-replicas"
)

func kedaActions() []builtin {
	annotations := func(o object) map[string]any { return o.dict("metadata", "annotations") }
	return []builtin{
		setting("pause", "true", "metadata", "annotations", kedaPaused),
		{name: "resume", when: func(o object) bool {
			return annotations(o)[kedaPaused] != nil || annotations(o)[kedaPausedReplicas] != nil
		}, edit: func(o object, _ Params, _ time.Time) error {
			o.unset("metadata", "annotations", kedaPaused)
			o.unset("metadata", "annotations", kedaPausedReplicas)
			return nil
		}},
	}
}

func postgresActions() []builtin {
	const hibernation = "cnpg.io/hibernation"
	return []builtin{
		stamping("restart", time.RFC3339, "metadata", "annotations", restartedAt),
		stamping("reload", time.RFC3339, "metadata", "annotations", "cnpg.io/reloadedAt"),
		setting("suspend", "on", "metadata", "annotations", hibernation),
		setting("resume", "off", "metadata", "annotations", hibernation).only(func(o object) bool { return o.text("metadata", "annotations", hibernation) == "on" }),
		{name: "promote", params: []asked{{"instance", []string{"status", "currentPrimary"}}}, edit: promote},
	}
}

// numaActions are those of Numaflow and of Numaplane, which wraps it.
func numaActions(out map[string][]builtin) {
	lifecycle := func(spec, meta []string) []builtin {
		phase := slices.Concat(spec, []string{"lifecycle", "desiredPhase"})
		running := func(name, strategy string) builtin {
			return builtin{name: name, when: func(o object) bool { return o.text(phase...) == "Paused" && !ownedByRollout(o) }, edit: func(o object, _ Params, _ time.Time) error {
				o.set("Running", phase...)
				o.set(strategy, slices.Concat(meta, []string{"annotations", "numaflow.numaproj.io/resume-strategy"})...)
				return nil
			}}
		}
		pause := setting("pause", "Paused", phase...)
		pausable := pause.when
		pause = pause.only(func(o object) bool { return pausable(o) && !ownedByRollout(o) })
		return []builtin{pause, running("unpause-fast", "fast"), running("unpause-gradual", "slow")}
	}
	force := setting("force-promote", "true", "metadata", "labels", "numaplane.numaproj.io/force-promote").only(func(o object) bool {
		state := o.text("metadata", "labels", "numaplane.numaproj.io/upgrade-state")
		return (state == "in-progress" || state == "trial") && o.text("metadata", "labels", "numaplane.numaproj.io/force-promote") != "true"
	})
	own := lifecycle([]string{"spec"}, []string{"metadata"})
	out["numaflow.numaproj.io/InterStepBufferService"] = []builtin{force}
	out["numaflow.numaproj.io/MonoVertex"] = slices.Concat(own, []builtin{force})
	out["numaflow.numaproj.io/Pipeline"] = slices.Concat(own, []builtin{force})
	out["numaplane.numaproj.io/MonoVertexRollout"] = lifecycle([]string{"spec", "monoVertex", "spec"}, []string{"spec", "monoVertex", "metadata"})

	loss := []string{"metadata", "annotations", "numaplane.numaproj.io/allow-data-loss"}
	out["numaplane.numaproj.io/PipelineRollout"] = slices.Concat(lifecycle([]string{"spec", "pipeline", "spec"}, []string{"spec", "pipeline", "metadata"}), []builtin{
		setting("allow-data-loss", "true", loss...).only(func(o object) bool {
			return o.text("status", "upgradeInProgress") == "PipelinePauseAndDrain" && o.text(loss...) != "true"
		}),
		{name: "disallow-data-loss", when: func(o object) bool { return o.text(loss...) == "true" }, edit: func(o object, _ Params, _ time.Time) error {
			o.unset(loss...)
			return nil
		}},
	})
}

// ownedByRollout reports whether a rollout of Numaplane would undo what is done here.
func ownedByRollout(o object) bool {
	owners, _ := o.at("metadata", "ownerReferences").([]any)
	return slices.ContainsFunc(owners, func(v any) bool {
		owner, _ := v.(map[string]any)
		kind, _ := owner["kind"].(string)
		return kind == "PipelineRollout" || kind == "MonoVertexRollout"
	})
}
