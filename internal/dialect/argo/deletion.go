package argo

import (
	"slices"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// The finalizers of an Application (reference 2.9). Each says that a stage of its
// deletion is to be done yet.
const (
	FinalizerResources = "resources-finalizer.argocd.argoproj.io"
	FinalizerPre       = "pre-delete-finalizer.argocd.argoproj.io"
	FinalizerPost      = "post-delete-finalizer.argocd.argoproj.io"
	cleanup            = "/cleanup"
)

const (
	// AnnotationApproved confirms deletions that ask for it: a time in RFC 3339.
	AnnotationApproved = "argocd.argoproj.io/deletion-approved"
	// AnnotationDeletion on an Application that is being deleted is somebody's
	// decision: "orphan", or "force" and a time in RFC 3339.
	AnnotationDeletion = "rutter.dev/deletion-decision"
	// AnnotationDeadline is how long an object of the Application may be terminating
	// before somebody has to decide.
	AnnotationDeadline = "rutter.dev/deletion-deadline"
	// DecisionOrphan lets the objects stay.
	DecisionOrphan = "orphan"
	// DecisionForce and a time removes the finalizers of what is terminating since before.
	DecisionForce = "force"
)

// stageOf is the stage that a finalizer stands for, empty for any other finalizer.
func stageOf(finalizer string) rutter.DeletionStage {
	switch finalizer {
	case FinalizerPre:
		return rutter.StagePreDelete
	case FinalizerPre + cleanup:
		return rutter.StagePreCleanup
	case FinalizerPost:
		return rutter.StagePostDelete
	case FinalizerPost + cleanup:
		return rutter.StagePostCleanup
	case FinalizerResources, FinalizerResources + "/foreground", FinalizerResources + "/background":
		return rutter.StageCascade
	}
	return ""
}

// Deletion reads what is to be done yet of the deletion of an Application, and how.
// deadline holds where the Application has none of its own that can be read.
func Deletion(app *v1alpha1.Application, deadline time.Duration) (rutter.Deletion, []rutter.Condition) {
	d := rutter.Deletion{ID: string(app.UID), Propagation: "foreground", Deadline: deadline}
	if app.DeletionTimestamp != nil {
		d.Since = app.DeletionTimestamp.Time
	}
	for _, s := range rutter.DeletionStages() {
		if slices.ContainsFunc(app.Finalizers, func(f string) bool { return stageOf(f) == s }) {
			d.Stages = append(d.Stages, s)
		}
	}
	if slices.Contains(app.Finalizers, FinalizerResources+"/background") {
		d.Propagation = "background"
	}
	var problems []rutter.Condition
	problem := func(annotation, want string) {
		problems = append(problems, rutter.Condition{Type: rutter.CondDeletion,
			Message: "metadata.annotations[" + annotation + "]: " + app.Annotations[annotation] + ": write " + want})
	}
	if text := app.Annotations[AnnotationDeadline]; text != "" {
		own, err := time.ParseDuration(text)
		if err != nil || own <= 0 {
			problem(AnnotationDeadline, "a duration such as 15m")
		} else {
			d.Deadline = own
		}
	}
	switch verb, at, _ := strings.Cut(app.Annotations[AnnotationDeletion], " "); verb {
	case "":
	case DecisionOrphan:
		d.Orphan = true
	case DecisionForce:
		var err error
		if d.Forced, err = time.Parse(time.RFC3339, at); err != nil {
			problem(AnnotationDeletion, "force and a time such as 2026-01-31T12:00:00Z")
		}
	default:
		problem(AnnotationDeletion, "orphan, or force and a time")
	}
	return d, problems
}

// Deletes reports whether the deletion of an Application does anything.
func Deletes(app *v1alpha1.Application) bool {
	return slices.ContainsFunc(app.Finalizers, func(f string) bool { return stageOf(f) != "" })
}

// Without are finalizers but for those of some stages.
func Without(finalizers []string, stages []rutter.DeletionStage) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		s := stageOf(f)
		return s != "" && slices.Contains(stages, s)
	})
}

// WithHooks are finalizers as the hooks of the sources want them.
func WithHooks(finalizers []string, hooks rutter.DeleteHooks) []string {
	out := slices.Clone(finalizers)
	for f, wanted := range map[string]bool{FinalizerPre: hooks.Pre, FinalizerPost: hooks.Post} {
		for _, f := range []string{f, f + cleanup} {
			if has := slices.Contains(out, f); wanted && !has {
				out = append(out, f)
			} else if !wanted && has {
				out = slices.DeleteFunc(out, func(x string) bool { return x == f })
			}
		}
	}
	return out
}
