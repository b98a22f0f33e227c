package generate

import (
	"maps"
	"slices"
	"strings"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// A set that preserves the objects of its Applications has none that would delete
// them: whoever deletes the set, the garbage collector deletes its Applications and
// heeds their finalizers, whatever the set says. Those that the set writes are
// rendered without; this is about all others that it has, which wait to be
// removed, or keep their last state because of an error.

// AnnotationFreed on an Application are the finalizers that were taken off it
// because its set preserves its objects. It gets them back when the set does so no
// more, if the set does not write it by then.
const AnnotationFreed = "rutter.dev/finalizers-taken-off"

// Preserves reports whether workloads outlive their Applications.
func Preserves(set *v1alpha1.ApplicationSet) bool {
	return set.Spec.SyncPolicy != nil && set.Spec.SyncPolicy.PreserveResourcesOnDeletion
}

// Cascades reports whether deleting an Application deletes its objects.
func Cascades(app *v1alpha1.Application) bool { return slices.ContainsFunc(app.Finalizers, isCascade) }

func isCascade(f string) bool {
	return f == resourcesFinalizer || strings.HasPrefix(f, resourcesFinalizer+"/")
}

// freeWorkloads takes the finalizers that delete objects off an Application of a
// set that preserves them.
func freeWorkloads(app *v1alpha1.Application) (changed bool) {
	if !Cascades(app) {
		return false
	}
	app.Finalizers = slices.DeleteFunc(slices.Clone(app.Finalizers), isCascade)
	return true
}

// preserved makes the finalizers of an Application that is not written otherwise
// what the set says of its objects. A set that deletes no Applications leaves them
// alone, as they outlive it.
func (rc *reconciliation) preserved(app *v1alpha1.Application) (changed bool) {
	taken, freed := app.Annotations[AnnotationFreed]
	switch preserves := Preserves(rc.set); {
	case !Deletes(rc.set, rc.policy):
		return false
	case preserves && Cascades(app):
		annotations := make(map[string]string, len(app.Annotations)+1)
		maps.Copy(annotations, app.Annotations)
		annotations[AnnotationFreed] = strings.Join(slices.DeleteFunc(slices.Clone(app.Finalizers), func(f string) bool { return !isCascade(f) }), ",")
		app.Annotations = annotations
		return freeWorkloads(app)
	case !preserves && freed:
		app.Annotations = maps.Clone(app.Annotations)
		delete(app.Annotations, AnnotationFreed)
		for f := range strings.SplitSeq(taken, ",") {
			if isCascade(f) && !slices.Contains(app.Finalizers, f) {
				app.Finalizers = append(slices.Clone(app.Finalizers), f)
			}
		}
		return true
	}
	return false
}

// freeing reports whether an Application of the set would still delete what the
// set says is to stay.
func (rc *reconciliation) freeing(live map[string]*v1alpha1.Application) bool {
	if !Preserves(rc.set) || !Deletes(rc.set, rc.policy) {
		return false
	}
	for _, app := range live {
		if ownedBy(app, rc.set) && Cascades(app) {
			return true
		}
	}
	return false
}
