package argo

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// announced are the conditions that somebody has to do something about.
func announced(conditionType string) bool {
	switch conditionType {
	case rutter.CondDeletion, rutter.CondNotJustified, rutter.CondPruneHeld:
		return true
	}
	return false
}

// announce records an event of each such condition that an Application did not
// have before.
func (a *applications) announce(app *v1alpha1.Application, now []v1alpha1.ApplicationCondition) {
	for _, c := range now {
		if announced(c.Type) && !slices.ContainsFunc(app.Status.Conditions, func(o v1alpha1.ApplicationCondition) bool {
			return o.Type == c.Type && o.Message == c.Message
		}) {
			a.events.note(app, corev1.EventTypeWarning, c.Type, c.Message)
		}
	}
}
