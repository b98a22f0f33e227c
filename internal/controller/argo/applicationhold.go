package argo

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// applyHold pauses the automated sync of a unit whose Application a person
// holds, says so, and returns when the hold ends; 0 is never.
func applyHold(app *v1alpha1.Application, unit *rutter.Unit, conditions []rutter.Condition, now time.Time) ([]rutter.Condition, time.Duration) {
	hold, err := generate.HoldOf(app, now)
	if hold == nil {
		return conditions, 0
	}
	unit.Policy.Automated = false
	message := "automated sync is paused: " + cmp.Or(hold.Who, "somebody") + " holds the application"
	var left time.Duration
	if hold.Until.IsZero() {
		message += fmt.Sprintf(" until the hold is taken off, because it cannot be read: %v", err)
	} else {
		message += " until " + hold.Until.UTC().Format(time.RFC3339)
		left = hold.Until.Sub(now)
	}
	if hold.Why != "" {
		message += ": " + hold.Why
	}
	return append(conditions, rutter.Condition{Type: rutter.CondHeld, Message: message}), left
}
