package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ApplicationSource is a repository, a place in it, and the tool's options
// (reference 1.2). At most one of the four tools may be set.
type ApplicationSource struct {
	// RepoURL is required; without it the application says so in a condition.
	//
	// +optional
	RepoURL        string                      `json:"repoURL"`
	Path           string                      `json:"path,omitempty"`
	TargetRevision string                      `json:"targetRevision,omitempty"`
	Helm           *ApplicationSourceHelm      `json:"helm,omitempty"`
	Kustomize      *ApplicationSourceKustomize `json:"kustomize,omitempty"`
	Directory      *ApplicationSourceDirectory `json:"directory,omitempty"`
	Plugin         *ApplicationSourcePlugin    `json:"plugin,omitempty"`
	// Chart is the name of a chart in a Helm repository.
	Chart string `json:"chart,omitempty"`
	// Ref names the source for $ref/... in the values files of the others.
	Ref  string `json:"ref,omitempty"`
	Name string `json:"name,omitempty"`
	// TagPrefix is put before semantic versions when tags are looked for.
	TagPrefix string `json:"tagPrefix,omitempty"`
}

// ApplicationSourceHelm are the options of Helm (reference 1.6).
type ApplicationSourceHelm struct {
	ValueFiles              []string            `json:"valueFiles,omitempty"`
	Parameters              []HelmParameter     `json:"parameters,omitempty"`
	ReleaseName             string              `json:"releaseName,omitempty"`
	Values                  string              `json:"values,omitempty"`
	FileParameters          []HelmFileParameter `json:"fileParameters,omitempty"`
	Version                 string              `json:"version,omitempty"`
	PassCredentials         bool                `json:"passCredentials,omitempty"`
	IgnoreMissingValueFiles bool                `json:"ignoreMissingValueFiles,omitempty"`
	SkipCrds                bool                `json:"skipCrds,omitempty"`
	// ValuesObject are values as an object; it wins entirely over Values.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	ValuesObject         *apiextensionsv1.JSON `json:"valuesObject,omitempty"`
	Namespace            string                `json:"namespace,omitempty"`
	KubeVersion          string                `json:"kubeVersion,omitempty"`
	APIVersions          []string              `json:"apiVersions,omitempty"`
	SkipTests            bool                  `json:"skipTests,omitempty"`
	SkipSchemaValidation bool                  `json:"skipSchemaValidation,omitempty"`
}

// HelmParameter is one --set, or --set-string with ForceString.
type HelmParameter struct {
	Name        string `json:"name,omitempty"`
	Value       string `json:"value,omitempty"`
	ForceString bool   `json:"forceString,omitempty"`
}

// HelmFileParameter is one --set-file.
type HelmFileParameter struct {
	Name string `json:"name,omitempty"`
	Path string `json:"path,omitempty"`
}

// ApplicationSourceKustomize are the options of Kustomize (reference 1.5).
type ApplicationSourceKustomize struct {
	NamePrefix                string             `json:"namePrefix,omitempty"`
	NameSuffix                string             `json:"nameSuffix,omitempty"`
	Images                    []string           `json:"images,omitempty"`
	CommonLabels              map[string]string  `json:"commonLabels,omitempty"`
	Version                   string             `json:"version,omitempty"`
	CommonAnnotations         map[string]string  `json:"commonAnnotations,omitempty"`
	ForceCommonLabels         bool               `json:"forceCommonLabels,omitempty"`
	ForceCommonAnnotations    bool               `json:"forceCommonAnnotations,omitempty"`
	Namespace                 string             `json:"namespace,omitempty"`
	CommonAnnotationsEnvsubst bool               `json:"commonAnnotationsEnvsubst,omitempty"`
	Replicas                  []KustomizeReplica `json:"replicas,omitempty"`
	Patches                   []KustomizePatch   `json:"patches,omitempty"`
	Components                []string           `json:"components,omitempty"`
	IgnoreMissingComponents   bool               `json:"ignoreMissingComponents,omitempty"`
	LabelWithoutSelector      bool               `json:"labelWithoutSelector,omitempty"`
	LabelIncludeTemplates     bool               `json:"labelIncludeTemplates,omitempty"`
	KubeVersion               string             `json:"kubeVersion,omitempty"`
	APIVersions               []string           `json:"apiVersions,omitempty"`
}

// KustomizeReplica sets the replicas of workloads of a name.
type KustomizeReplica struct {
	Name  string             `json:"name"`
	Count intstr.IntOrString `json:"count"`
}

// KustomizePatch is one patch, inline or in a file.
type KustomizePatch struct {
	Path    string             `json:"path,omitempty"`
	Patch   string             `json:"patch,omitempty"`
	Target  *KustomizeSelector `json:"target,omitempty"`
	Options map[string]bool    `json:"options,omitempty"`
}

// KustomizeSelector selects what a patch applies to.
type KustomizeSelector struct {
	Group              string `json:"group,omitempty"`
	Version            string `json:"version,omitempty"`
	Kind               string `json:"kind,omitempty"`
	Name               string `json:"name,omitempty"`
	Namespace          string `json:"namespace,omitempty"`
	AnnotationSelector string `json:"annotationSelector,omitempty"`
	LabelSelector      string `json:"labelSelector,omitempty"`
}

// ApplicationSourceDirectory are the options of plain manifests (reference 1.4).
type ApplicationSourceDirectory struct {
	Recurse                bool                     `json:"recurse,omitempty"`
	Jsonnet                ApplicationSourceJsonnet `json:"jsonnet,omitempty"`
	Exclude                string                   `json:"exclude,omitempty"`
	Include                string                   `json:"include,omitempty"`
	DisableExtensionFilter bool                     `json:"disableExtensionFilter,omitempty"`
}

// ApplicationSourceJsonnet are the options of Jsonnet files.
type ApplicationSourceJsonnet struct {
	ExtVars []JsonnetVar `json:"extVars,omitempty"`
	TLAs    []JsonnetVar `json:"tlas,omitempty"`
	Libs    []string     `json:"libs,omitempty"`
}

// JsonnetVar is one variable, evaluated when Code is set.
type JsonnetVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Code  bool   `json:"code,omitempty"`
}

// ApplicationSourcePlugin are the options of a config management plugin (reference 1.7).
type ApplicationSourcePlugin struct {
	Name       string                             `json:"name,omitempty"`
	Env        []EnvEntry                         `json:"env,omitempty"`
	Parameters []ApplicationSourcePluginParameter `json:"parameters,omitempty"`
}

// EnvEntry is one environment variable.
type EnvEntry struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ApplicationSourcePluginParameter is one parameter: a string, a list or a map.
type ApplicationSourcePluginParameter struct {
	Name   string            `json:"name,omitempty"`
	String *string           `json:"string,omitempty"`
	Map    map[string]string `json:"map,omitempty"`
	Array  []string          `json:"array,omitempty"`
}
