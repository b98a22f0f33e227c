package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two places are kept as JSON on purpose, although they have a known shape:
// combinations inside a combination, because a CRD schema cannot recurse, and
// the template of a generator, because a partial Application must not be held
// to the required fields of a whole one. Both are decoded when the set is
// evaluated, so a mistake in one set is an error of that set and can never
// make the whole listing of ApplicationSets undecodable.

// ApplicationSetGenerator is one item of spec.generators: one type of
// generator and an optional selector on what it produces.
type ApplicationSetGenerator struct {
	ApplicationSetLeafGenerators `json:",inline"`

	Matrix *MatrixGenerator `json:"matrix,omitempty"`
	Merge  *MergeGenerator  `json:"merge,omitempty"`
	// Selector drops the sets of parameters that do not match.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ApplicationSetNestedGenerator is an item inside a combination. Combinations
// may nest to any depth.
type ApplicationSetNestedGenerator struct {
	ApplicationSetLeafGenerators `json:",inline"`

	// Matrix is a NestedMatrixGenerator.
	Matrix *apiextensionsv1.JSON `json:"matrix,omitempty"`
	// Merge is a NestedMergeGenerator.
	Merge *apiextensionsv1.JSON `json:"merge,omitempty"`
	// Selector drops the sets of parameters that do not match.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ApplicationSetLeafGenerators are the generators that do not combine others.
type ApplicationSetLeafGenerators struct {
	List                    *ListGenerator        `json:"list,omitempty"`
	Clusters                *ClusterGenerator     `json:"clusters,omitempty"`
	Git                     *GitGenerator         `json:"git,omitempty"`
	SCMProvider             *SCMProviderGenerator `json:"scmProvider,omitempty"`
	ClusterDecisionResource *DuckTypeGenerator    `json:"clusterDecisionResource,omitempty"`
	PullRequest             *PullRequestGenerator `json:"pullRequest,omitempty"`
	Plugin                  *PluginGenerator      `json:"plugin,omitempty"`
}

// MatrixGenerator is the product of its generators: each is evaluated with the
// parameters of those before it.
type MatrixGenerator struct {
	Generators []ApplicationSetNestedGenerator `json:"generators"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// NestedMatrixGenerator is a matrix inside a combination.
//
// +kubebuilder:object:generate=true
type NestedMatrixGenerator struct {
	Generators []ApplicationSetNestedGenerator `json:"generators"`
}

// MergeGenerator joins its generators on keys: the first is the base, later
// ones override the sets of parameters with equal keys.
type MergeGenerator struct {
	Generators []ApplicationSetNestedGenerator `json:"generators"`
	MergeKeys  []string                        `json:"mergeKeys"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// NestedMergeGenerator is a merge inside a combination.
//
// +kubebuilder:object:generate=true
type NestedMergeGenerator struct {
	Generators []ApplicationSetNestedGenerator `json:"generators"`
	MergeKeys  []string                        `json:"mergeKeys"`
}

// ListGenerator produces the sets of parameters that are written in it.
type ListGenerator struct {
	Elements []apiextensionsv1.JSON `json:"elements,omitempty"`
	// ElementsYaml is a YAML list whose items are appended to Elements.
	ElementsYaml string `json:"elementsYaml,omitempty"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// ClusterGenerator produces one set of parameters for each member cluster.
type ClusterGenerator struct {
	// Selector matches the labels of the cluster Secrets.
	Selector metav1.LabelSelector `json:"selector,omitempty"`
	// Values are extra parameters, templated with those of the cluster.
	Values map[string]string `json:"values,omitempty"`
	// FlatList produces one set only, with all clusters in the list "clusters".
	FlatList bool `json:"flatList,omitempty"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// GitGenerator produces parameters from the directories or files of a repository.
type GitGenerator struct {
	RepoURL string `json:"repoURL"`
	// Revision is HEAD when it is empty.
	Revision    string                      `json:"revision,omitempty"`
	Directories []GitDirectoryGeneratorItem `json:"directories,omitempty"`
	Files       []GitFileGeneratorItem      `json:"files,omitempty"`
	// PathParamPrefix keeps the path parameters of two git generators apart.
	PathParamPrefix     string            `json:"pathParamPrefix,omitempty"`
	RequeueAfterSeconds *int64            `json:"requeueAfterSeconds,omitempty"`
	Values              map[string]string `json:"values,omitempty"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// GitDirectoryGeneratorItem includes or excludes directories by a glob.
type GitDirectoryGeneratorItem struct {
	Path    string `json:"path"`
	Exclude bool   `json:"exclude,omitempty"`
}

// GitFileGeneratorItem includes or excludes files by a glob.
type GitFileGeneratorItem struct {
	Path    string `json:"path"`
	Exclude bool   `json:"exclude,omitempty"`
}

// DuckTypeGenerator produces parameters from the status of a placement resource.
type DuckTypeGenerator struct {
	// ConfigMapRef names the ConfigMap that describes the resource.
	ConfigMapRef        string               `json:"configMapRef"`
	Name                string               `json:"name,omitempty"`
	LabelSelector       metav1.LabelSelector `json:"labelSelector,omitempty"`
	RequeueAfterSeconds *int64               `json:"requeueAfterSeconds,omitempty"`
	Values              map[string]string    `json:"values,omitempty"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// PluginGenerator asks a service for parameters.
type PluginGenerator struct {
	ConfigMapRef        PluginConfigMapRef `json:"configMapRef"`
	Input               PluginInput        `json:"input,omitempty"`
	RequeueAfterSeconds *int64             `json:"requeueAfterSeconds,omitempty"`
	Values              map[string]string  `json:"values,omitempty"`
	// Template is an ApplicationSetTemplate whose fields win over spec.template.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Template *apiextensionsv1.JSON `json:"template,omitempty"`
}

// PluginConfigMapRef names the ConfigMap that describes the service.
type PluginConfigMapRef struct {
	Name string `json:"name"`
}

// PluginInput is sent to the service.
type PluginInput struct {
	Parameters map[string]apiextensionsv1.JSON `json:"parameters,omitempty"`
}
