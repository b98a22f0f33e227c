package engine

import (
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// protected says why a live object that carries our label is not removed, or "".
// What the unit's project does not let it manage it does not let it remove either
// (reference 6.3); a project that is gone fences nothing in. u.mu is held.
func (e *Engine) protected(u *state, ref rutter.Ref, v rutter.Verdict) string {
	if why := protected(ref, v, u.unit); why != "" {
		return why
	}
	if err := e.opts.Permit(u.unit, u.cluster, ref, ref.Namespace != ""); err != nil && rutter.CodeOf(err) != rutter.CodeNotFound {
		return err.Error()
	}
	return ""
}

// installedBy stands between an instance and the control plane that it is one of,
// where a live object names both.
const installedBy = "@"

// protected says so of the object itself.
// A label can be copied with an object; the tracking annotation names the one
// object that it was written for (reference 2.11).
func protected(ref rutter.Ref, v rutter.Verdict, unit rutter.Unit) string {
	if why := plan.NeverPruned(ref); why != "" {
		return why
	}
	if unit.ID.Dialect == "argo" && ref.Group == "argoproj.io" && ref.Kind == "Application" && ref.Namespace == unit.ID.Namespace && ref.Name == unit.ID.Name {
		return "an application does not remove itself"
	}
	instance, installation, installed := strings.Cut(v.Tracking, installedBy)
	if installed && unit.Tracking.InstallationID != "" && installation != unit.Tracking.InstallationID {
		return "it belongs to another control plane, of installationID " + installation
	}
	if instance != unit.Instance {
		return "its tracking annotation does not name it"
	}
	return ""
}

// instanceOf is the instance of what the verdict on a live object says of its tracking.
func instanceOf(tracking string) string {
	instance, _, _ := strings.Cut(tracking, installedBy)
	return instance
}
