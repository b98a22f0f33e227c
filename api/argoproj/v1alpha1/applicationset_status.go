package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ApplicationSetStatus is what was last observed of a set.
type ApplicationSetStatus struct {
	Conditions []ApplicationSetCondition `json:"conditions,omitempty"`
	// ApplicationStatus is the progress of a rollout; RollingSync only.
	ApplicationStatus []ApplicationSetApplicationStatus `json:"applicationStatus,omitempty"`
	// Resources are the generated Applications; the list may be cut.
	Resources []ApplicationSetResource `json:"resources,omitempty"`
	// ResourcesCount is the number of generated Applications, never cut.
	ResourcesCount int64 `json:"resourcesCount,omitempty"`
	// Health is that of the set itself, not of its Applications.
	Health *ApplicationSetHealth `json:"health,omitempty"`
}

// ApplicationSetConditionType names a condition of a set.
type ApplicationSetConditionType string

// The conditions of a set.
const (
	ApplicationSetConditionErrorOccurred        ApplicationSetConditionType = "ErrorOccurred"
	ApplicationSetConditionParametersGenerated  ApplicationSetConditionType = "ParametersGenerated"
	ApplicationSetConditionResourcesUpToDate    ApplicationSetConditionType = "ResourcesUpToDate"
	ApplicationSetConditionRolloutProgressing   ApplicationSetConditionType = "RolloutProgressing"
	ApplicationSetConditionInvalidRolloutConfig ApplicationSetConditionType = "InvalidRolloutConfig"
	// ApplicationSetConditionDeletionsHeld is Rutter's own: True while removals wait
	// for an approval. The message says which, why, and what approves them.
	ApplicationSetConditionDeletionsHeld ApplicationSetConditionType = "DeletionsHeld"
)

// The reasons of the conditions of a set.
const (
	ApplicationSetReasonUpToDate                   = "ApplicationSetUpToDate"
	ApplicationSetReasonErrorOccurred              = "ErrorOccurred"
	ApplicationSetReasonParametersGenerated        = "ParametersGenerated"
	ApplicationSetReasonUpdateApplicationError     = "UpdateApplicationError"
	ApplicationSetReasonCreateApplicationError     = "CreateApplicationError"
	ApplicationSetReasonDeleteApplicationError     = "DeleteApplicationError"
	ApplicationSetReasonRefreshApplicationError    = "RefreshApplicationError"
	ApplicationSetReasonGenerationFromParamsError  = "ApplicationGenerationFromParamsError"
	ApplicationSetReasonRenderTemplateParamsError  = "RenderTemplateParamsError"
	ApplicationSetReasonApplicationValidationError = "ApplicationValidationError"
	// ApplicationSetReasonInputsFailed and ApplicationSetReasonHeldOverBudget are Rutter's own.
	ApplicationSetReasonInputsFailed         = "InputsFailed"
	ApplicationSetReasonHeldOverBudget       = "HeldOverBudget"
	ApplicationSetReasonModified             = "ApplicationSetModified"
	ApplicationSetReasonRolloutComplete      = "ApplicationSetRolloutComplete"
	ApplicationSetReasonRolloutError         = "ApplicationSetRolloutError"
	ApplicationSetReasonInvalidRolloutConfig = "ApplicationSetInvalidRolloutConfig"
	ApplicationSetReasonValidRolloutConfig   = "ApplicationSetValidRolloutConfig"
)

// ApplicationSetCondition is one statement about a set.
type ApplicationSetCondition struct {
	Type ApplicationSetConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status             string       `json:"status"`
	Reason             string       `json:"reason"`
	Message            string       `json:"message"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// ApplicationSetApplicationStatus is where one Application stands in a rollout.
type ApplicationSetApplicationStatus struct {
	Application string `json:"application"`
	// Status is Waiting, Pending, Progressing or Healthy.
	Status  string `json:"status"`
	Message string `json:"message"`
	// Step is the 1-based number of the step, -1 for none.
	Step               string       `json:"step"`
	TargetRevisions    []string     `json:"targetRevisions"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// ApplicationSetResource is one generated Application as last observed.
type ApplicationSetResource struct {
	Group     string                `json:"group,omitempty"`
	Version   string                `json:"version,omitempty"`
	Kind      string                `json:"kind,omitempty"`
	Namespace string                `json:"namespace,omitempty"`
	Name      string                `json:"name,omitempty"`
	Status    string                `json:"status,omitempty"`
	Health    *ApplicationSetHealth `json:"health,omitempty"`
}

// ApplicationSetHealth is a health status and its reason.
type ApplicationSetHealth struct {
	Status             string       `json:"status,omitempty"`
	Message            string       `json:"message,omitempty"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}
