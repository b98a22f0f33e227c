package argo

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// setHealth derives the health of a set from its conditions (reference 4.5).
func setHealth(set *v1alpha1.ApplicationSet, old *v1alpha1.ApplicationSetHealth, now func() time.Time) *v1alpha1.ApplicationSetHealth {
	status, message := "Unknown", ""
	for _, c := range set.Status.Conditions {
		if c.Status != "True" {
			continue
		}
		switch c.Type {
		case v1alpha1.ApplicationSetConditionErrorOccurred:
			return stamped("Degraded", c.Message, old, now)
		case v1alpha1.ApplicationSetConditionResourcesUpToDate:
			if status == "Unknown" {
				status, message = "Healthy", c.Message
			}
		case v1alpha1.ApplicationSetConditionRolloutProgressing:
			status, message = "Progressing", c.Message
		case v1alpha1.ApplicationSetConditionDeletionsHeld:
			if status == "Unknown" { // a person has to decide
				status, message = "Suspended", "deletions wait for an approval"
			}
		case v1alpha1.ApplicationSetConditionParametersGenerated, v1alpha1.ApplicationSetConditionInvalidRolloutConfig:
		}
	}
	return stamped(status, message, old, now)
}

func stamped(status, message string, old *v1alpha1.ApplicationSetHealth, now func() time.Time) *v1alpha1.ApplicationSetHealth {
	h := &v1alpha1.ApplicationSetHealth{Status: status, Message: message}
	if old != nil && old.Status == status {
		h.LastTransitionTime = old.LastTransitionTime
	} else {
		t := metav1.NewTime(now().UTC().Truncate(time.Second))
		h.LastTransitionTime = &t
	}
	return h
}

func (s *applicationSets) lastStatus(key types.NamespacedName) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state(key).statusAt
}

func (s *applicationSets) noteStatus(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state(key).statusAt = s.opts.Now()
}
