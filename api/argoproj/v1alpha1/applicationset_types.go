package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ApplicationSet declares a family of Applications: generators produce sets of
// parameters, and a template is rendered once for each of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=applicationsets,shortName=appset;appsets
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Applications",type=integer,JSONPath=`.status.resourcesCount`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health.status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ApplicationSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   ApplicationSetSpec   `json:"spec"`
	Status ApplicationSetStatus `json:"status,omitempty"`
}

// ApplicationSetList is a list of ApplicationSets.
//
// +kubebuilder:object:root=true
type ApplicationSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ApplicationSet `json:"items"`
}

// ApplicationSetSpec is what a set generates and how.
type ApplicationSetSpec struct {
	// GoTemplate renders strings as Go templates; otherwise {{key}} is replaced.
	GoTemplate bool `json:"goTemplate,omitempty"`
	// GoTemplateOptions are given to the Go template engine, e.g. missingkey=error.
	GoTemplateOptions []string `json:"goTemplateOptions,omitempty"`
	// Generators produce the parameters; their outputs are concatenated.
	Generators []ApplicationSetGenerator `json:"generators"`
	// Template is the Application that is rendered for each set of parameters.
	Template ApplicationSetTemplate `json:"template"`
	// TemplatePatch is a YAML text that is rendered and merged onto the rendered
	// Application; it can set fields that are not strings.
	TemplatePatch *string `json:"templatePatch,omitempty"`
	// SyncPolicy limits what may be done to the generated Applications.
	SyncPolicy *ApplicationSetSyncPolicy `json:"syncPolicy,omitempty"`
	// Strategy orders the changes among the generated Applications.
	Strategy *ApplicationSetStrategy `json:"strategy,omitempty"`
	// PreservedFields are metadata keys of live Applications that survive.
	PreservedFields *ApplicationPreservedFields `json:"preservedFields,omitempty"`
	// IgnoreApplicationDifferences are fields of live Applications that are left alone.
	IgnoreApplicationDifferences []ApplicationSetResourceIgnoreDifferences `json:"ignoreApplicationDifferences,omitempty"`
	// ApplyNestedSelectors is deprecated and has no effect: nested selectors always apply.
	ApplyNestedSelectors bool `json:"applyNestedSelectors,omitempty"`
}

// ApplicationSetTemplate is the Application to render.
type ApplicationSetTemplate struct {
	ApplicationSetTemplateMeta `json:"metadata"`

	Spec ApplicationSpec `json:"spec"`
}

// ApplicationSetTemplateMeta is the metadata of the Application to render.
type ApplicationSetTemplateMeta struct {
	Name string `json:"name,omitempty"`
	// Namespace has no effect: Applications are made in the namespace of their set.
	Namespace   string            `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Finalizers  []string          `json:"finalizers,omitempty"`
}

// ApplicationsSyncPolicy says which changes a set may make to its Applications.
//
// +kubebuilder:validation:Enum=sync;create-only;create-update;create-delete
type ApplicationsSyncPolicy string

// The policies of a set.
const (
	// ApplicationsSyncPolicySync allows everything; it is the default.
	ApplicationsSyncPolicySync ApplicationsSyncPolicy = "sync"
	// ApplicationsSyncPolicyCreateOnly allows neither updates nor deletions.
	ApplicationsSyncPolicyCreateOnly ApplicationsSyncPolicy = "create-only"
	// ApplicationsSyncPolicyCreateUpdate allows no deletions.
	ApplicationsSyncPolicyCreateUpdate ApplicationsSyncPolicy = "create-update"
	// ApplicationsSyncPolicyCreateDelete allows no updates.
	ApplicationsSyncPolicyCreateDelete ApplicationsSyncPolicy = "create-delete"
)

// ApplicationSetSyncPolicy limits what may be done to generated Applications.
type ApplicationSetSyncPolicy struct {
	// PreserveResourcesOnDeletion leaves the workloads of deleted Applications alone.
	PreserveResourcesOnDeletion bool `json:"preserveResourcesOnDeletion,omitempty"`
	// ApplicationsSync is sync when it is empty.
	ApplicationsSync *ApplicationsSyncPolicy `json:"applicationsSync,omitempty"`
}

// ApplicationSetStrategy orders changes among the generated Applications.
type ApplicationSetStrategy struct {
	// Type is AllAtOnce (the default) or RollingSync.
	Type string `json:"type,omitempty"`
	// RollingSync are the steps of that type.
	RollingSync *ApplicationSetRolloutStrategy `json:"rollingSync,omitempty"`
	// DeletionOrder is AllAtOnce (the default) or Reverse.
	DeletionOrder string `json:"deletionOrder,omitempty"`
}

// ApplicationSetRolloutStrategy is a list of steps that are taken one after another.
type ApplicationSetRolloutStrategy struct {
	Steps []ApplicationSetRolloutStep `json:"steps,omitempty"`
}

// ApplicationSetRolloutStep is the Applications of one step, by their labels.
type ApplicationSetRolloutStep struct {
	MatchExpressions []ApplicationMatchExpression `json:"matchExpressions,omitempty"`
	// MaxUpdate is a number or a percentage of Applications that change at once.
	MaxUpdate *intstr.IntOrString `json:"maxUpdate,omitempty"`
}

// ApplicationMatchExpression is one condition on the labels of an Application.
type ApplicationMatchExpression struct {
	Key string `json:"key,omitempty"`
	// Operator is In or NotIn.
	Operator string   `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// ApplicationPreservedFields are keys that survive on live Applications.
type ApplicationPreservedFields struct {
	Annotations []string `json:"annotations,omitempty"`
	Labels      []string `json:"labels,omitempty"`
}

// ApplicationSetResourceIgnoreDifferences names fields of live Applications that are left alone.
type ApplicationSetResourceIgnoreDifferences struct {
	// Name limits the rule to the Application of that name; empty means all.
	Name              string   `json:"name,omitempty"`
	JSONPointers      []string `json:"jsonPointers,omitempty"`
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}
