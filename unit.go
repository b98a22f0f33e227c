package rutter

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// OrphanWatch is what becomes of the count of objects that nobody declares.
type OrphanWatch struct {
	// Warn shows it as a condition.
	Warn bool
}

// UnitID names a unit: the dialect's object that declares it.
type UnitID struct {
	// Dialect is "argo" or "flux".
	Dialect   string
	Namespace string
	Name      string
}

// String returns dialect/namespace/name.
func (id UnitID) String() string { return id.Dialect + "/" + id.Namespace + "/" + id.Name }

// Hash is the value of LabelUnit on the unit's objects: 20 hex digits.
func (id UnitID) Hash() string {
	sum := sha256.Sum256([]byte(id.String()))
	return hex.EncodeToString(sum[:10])
}

// Unit is "these sources, rendered so, at this target, under this policy": the
// engine's only word for what an Application or a Flux Kustomization declares.
type Unit struct {
	ID UnitID
	// Instance is the name in tracking ids: the Application's name, or
	// namespace_name outside the control-plane namespace (reference 2.11).
	Instance string
	Tracking Tracking
	Project  string
	Sources  []Source
	Target   Target
	Policy   SyncPolicy
	// Orphans says that objects in the target namespace that nobody declares are
	// counted; nil when they are not.
	Orphans *OrphanWatch
	// Windows are the sync windows of its project that concern it.
	Windows []SyncWindow
	// Ignore are fields whose live value is not compared.
	Ignore []IgnoreRule
	// KnownKinds are kinds that an earlier revision managed (from the status),
	// watched so that what Git no longer declares is still found.
	KnownKinds []GVK
	// Last is the last completed operation as the status records it, read when
	// the unit is first seen, so that a restart does not forget what was tried.
	Last *OperationReport
	// Approved is when a person last confirmed what waits for a confirmation.
	Approved time.Time
	// Asked says that a sync was asked for that has not been answered yet.
	Asked bool
	// Drifts are the objects that differ as the status records them, read likewise.
	Drifts map[Ref]Drift
	// Declared is what the status records of what was declared last, read likewise.
	Declared *Declaration
	// Budget is how many objects one sync may prune without being asked, nil the
	// default; Approves is the digest of prunes over it that somebody approved.
	Budget   *Budget
	Approves string
	// Problem, when set, is why the declaration cannot be acted upon at all
	// (an invalid spec, a project that does not allow it). The unit is shown
	// with it and nothing is touched.
	Problem error
}

// SourcesDigest names what of the unit decides which objects it declares at a commit.
func (u Unit) SourcesDigest() string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{u.Instance, u.Target, u.Sources}) //nolint:errchkjson // plain data into a hash
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// Stamp names commits and the sources that were read at them.
func Stamp(revisions []string, sources string) string {
	return strings.Join(revisions, ",") + "@" + sources
}

// Tracking is how an operator wants managed objects to be marked for others
// (reference 2.11), beside the marks that Rutter finds them by: the label LabelUnit
// and the tracking annotation, which are always there.
type Tracking struct {
	// Label is the key of a label with the instance's name; empty for none.
	Label string
	// InstallationID is written on every object; empty for none.
	InstallationID string
}

// GVK is a comparable group, version and kind.
type GVK struct {
	Group, Version, Kind string
}

// Target is where a unit's objects go.
type Target struct {
	// Server is the API server's URL; exactly one of Server and Name is set by
	// the user, both once resolved.
	Server string
	Name   string
	// Namespace is given to namespaced objects that have none.
	Namespace string
}

// Source is one source of a unit: where to read and which tool renders it.
// It serialises deterministically; its JSON is a part of the render key.
type Source struct {
	RepoURL        string `json:"repoURL"`
	Path           string `json:"path,omitempty"`
	TargetRevision string `json:"targetRevision,omitempty"`
	Chart          string `json:"chart,omitempty"`
	Ref            string `json:"ref,omitempty"`
	Name           string `json:"name,omitempty"`
	TagPrefix      string `json:"tagPrefix,omitempty"`

	Directory *DirectoryOptions `json:"directory,omitempty"`
	Kustomize *KustomizeOptions `json:"kustomize,omitempty"`
	Helm      *HelmOptions      `json:"helm,omitempty"`
	Plugin    *PluginOptions    `json:"plugin,omitempty"`
	// Unsupported names options that were set and that no renderer acts on yet.
	Unsupported []string `json:"unsupported,omitempty"`
}

// Repo is where the source is read from, on behalf of a project.
func (s Source) Repo(project string) Repo {
	r := Repo{URL: s.RepoURL, Revision: s.TargetRevision, Project: project, Chart: s.Chart, TagPrefix: s.TagPrefix}
	if s.Helm != nil && s.Chart != "" {
		r.PassCredentials = s.Helm.PassCredentials
	}
	return r
}

// OnlyRef says that the source yields no objects: it is there for the others to
// refer to (reference 1.2).
func (s Source) OnlyRef() bool { return s.Ref != "" && s.Path == "" && s.Chart == "" }

// DirectoryOptions are spec.source.directory (reference 1.4).
type DirectoryOptions struct {
	Recurse bool   `json:"recurse,omitempty"`
	Include string `json:"include,omitempty"`
	Exclude string `json:"exclude,omitempty"`
	// DisableExtensionFilter reads every file, whatever its name ends in.
	DisableExtensionFilter bool            `json:"disableExtensionFilter,omitempty"`
	Jsonnet                *JsonnetOptions `json:"jsonnet,omitempty"`
}

// JsonnetOptions are spec.source.directory.jsonnet (reference 1.4).
type JsonnetOptions struct {
	ExtVars []JsonnetVar `json:"extVars,omitempty"`
	TLAs    []JsonnetVar `json:"tlas,omitempty"`
	// Libs are folders that imports are looked for in, relative to the root of the repository.
	Libs []string `json:"libs,omitempty"`
}

// JsonnetVar is one variable; with Code its value is evaluated.
type JsonnetVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Code  bool   `json:"code,omitempty"`
}

// KustomizeOptions are spec.source.kustomize (reference 1.5).
type KustomizeOptions struct {
	NamePrefix                string             `json:"namePrefix,omitempty"`
	NameSuffix                string             `json:"nameSuffix,omitempty"`
	Images                    []string           `json:"images,omitempty"`
	Replicas                  []KustomizeReplica `json:"replicas,omitempty"`
	CommonLabels              map[string]string  `json:"commonLabels,omitempty"`
	CommonAnnotations         map[string]string  `json:"commonAnnotations,omitempty"`
	ForceCommonLabels         bool               `json:"forceCommonLabels,omitempty"`
	ForceCommonAnnotations    bool               `json:"forceCommonAnnotations,omitempty"`
	CommonAnnotationsEnvsubst bool               `json:"commonAnnotationsEnvsubst,omitempty"`
	LabelWithoutSelector      bool               `json:"labelWithoutSelector,omitempty"`
	LabelIncludeTemplates     bool               `json:"labelIncludeTemplates,omitempty"`
	Namespace                 string             `json:"namespace,omitempty"`
	Patches                   []KustomizePatch   `json:"patches,omitempty"`
	Components                []string           `json:"components,omitempty"`
	IgnoreMissingComponents   bool               `json:"ignoreMissingComponents,omitempty"`
	// Version selects the operator's build options of that name.
	Version string `json:"version,omitempty"`
	// KubeVersion and APIVersions are what inflated charts see instead of the cluster's.
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
}

// KustomizeReplica sets the replicas of workloads of a name.
type KustomizeReplica struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// UnmarshalJSON takes the count as a number or as a text (reference 1.5).
func (r *KustomizeReplica) UnmarshalJSON(data []byte) error {
	var raw struct {
		Name  string          `json:"name"`
		Count json.RawMessage `json:"count"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return Errorf(CodeInvalid, "replicas: %w", err)
	}
	count, err := strconv.ParseInt(strings.Trim(string(raw.Count), `"`), 10, 32)
	if err != nil || count < 0 {
		return Errorf(CodeInvalid, "replicas: count %s of %q is not a number of replicas", raw.Count, raw.Name)
	}
	r.Name, r.Count = raw.Name, count
	return nil
}

// KustomizePatch is one inline or file patch.
type KustomizePatch struct {
	Path    string           `json:"path,omitempty"`
	Patch   string           `json:"patch,omitempty"`
	Target  *KustomizeTarget `json:"target,omitempty"`
	Options map[string]bool  `json:"options,omitempty"`
}

// KustomizeTarget selects what a patch applies to.
type KustomizeTarget struct {
	Group              string `json:"group,omitempty"`
	Version            string `json:"version,omitempty"`
	Kind               string `json:"kind,omitempty"`
	Name               string `json:"name,omitempty"`
	Namespace          string `json:"namespace,omitempty"`
	LabelSelector      string `json:"labelSelector,omitempty"`
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}

// HelmOptions are spec.source.helm (reference 1.6).
type HelmOptions struct {
	ReleaseName             string          `json:"releaseName,omitempty"`
	ValueFiles              []string        `json:"valueFiles,omitempty"`
	Values                  string          `json:"values,omitempty"`
	ValuesObject            json.RawMessage `json:"valuesObject,omitempty"`
	Parameters              []HelmParameter `json:"parameters,omitempty"`
	FileParameters          []HelmFile      `json:"fileParameters,omitempty"`
	IgnoreMissingValueFiles bool            `json:"ignoreMissingValueFiles,omitempty"`
	SkipCrds                bool            `json:"skipCrds,omitempty"`
	SkipTests               bool            `json:"skipTests,omitempty"`
	SkipSchemaValidation    bool            `json:"skipSchemaValidation,omitempty"`
	Namespace               string          `json:"namespace,omitempty"`
	KubeVersion             string          `json:"kubeVersion,omitempty"`
	APIVersions             []string        `json:"apiVersions,omitempty"`
	// PassCredentials sends the repository's credentials to other hosts too.
	PassCredentials bool `json:"passCredentials,omitempty"`
}

// HelmParameter is one --set or --set-string.
type HelmParameter struct {
	Name        string `json:"name"`
	Value       string `json:"value"`
	ForceString bool   `json:"forceString,omitempty"`
}

// HelmFile is one --set-file.
type HelmFile struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// PluginOptions are spec.source.plugin (reference 1.7). An empty name means the
// first plugin that discovers itself.
type PluginOptions struct {
	Name       string            `json:"name,omitempty"`
	Env        []PluginEnv       `json:"env,omitempty"`
	Parameters []PluginParameter `json:"parameters,omitempty"`
}

// PluginEnv is one variable that the plugin sees as ARGOCD_ENV_<Name>.
type PluginEnv struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PluginParameter is one parameter; exactly one of String, Array and Map is set.
type PluginParameter struct {
	Name   string            `json:"name"`
	String *string           `json:"string,omitempty"`
	Array  []string          `json:"array,omitempty"`
	Map    map[string]string `json:"map,omitempty"`
}

// SyncPolicy is how and when a unit may be made equal to its sources.
type SyncPolicy struct {
	Automated  bool
	Prune      bool
	SelfHeal   bool
	AllowEmpty bool
	// CreateNamespace creates the target namespace when it is missing.
	CreateNamespace bool
	// NamespaceLabels and NamespaceAnnotations are managedNamespaceMetadata.
	NamespaceLabels      map[string]string
	NamespaceAnnotations map[string]string
	// Options are all syncOptions that are known, Key=value.
	Options []string
	// FormerManager is one more field manager whose objects are taken over.
	FormerManager string
	// IncludeWebhooks counts what a webhook would change of fields that nobody
	// declares as a difference.
	IncludeWebhooks bool
	Retry           Retry
	// Propagation is foreground (default), background or orphan.
	Propagation string
}

// HasOption reports whether an option such as "PruneLast=true" is set.
func (p SyncPolicy) HasOption(option string) bool {
	for _, o := range p.Options {
		if strings.TrimSpace(o) == option {
			return true
		}
	}
	return false
}

// For is the policy of one sync: the options that it was asked for with count in
// the place of the application's own (reference 2.10).
func (p SyncPolicy) For(req SyncRequest) SyncPolicy {
	if len(req.Options) == 0 {
		return p
	}
	p.Options = req.Options
	p.CreateNamespace = p.HasOption("CreateNamespace=true")
	p.Propagation = ""
	for _, v := range []string{"foreground", "background", "orphan"} {
		if p.HasOption("PrunePropagationPolicy=" + v) {
			p.Propagation = v
		}
	}
	return p
}

// Retry is how a failed sync is tried again.
type Retry struct {
	// Limit is the number of retries; negative means without end.
	Limit       int64
	Duration    time.Duration
	Factor      int64
	MaxDuration time.Duration
	// Refresh lets a retry of a sync to a chosen revision use the newest one instead.
	Refresh bool
}

// Delay returns the pause before retry n (n = retries done so far):
// min(MaxDuration, Duration*Factor^n), reference 1.10.
func (r Retry) Delay(n int64) time.Duration {
	d, limit := r.Duration, r.MaxDuration
	if d <= 0 {
		d = 5 * time.Second
	}
	if limit <= 0 {
		limit = 3 * time.Minute
	}
	factor := r.Factor
	if factor <= 0 {
		factor = 2
	}
	for ; n > 0 && d < limit; n-- {
		d *= time.Duration(factor)
	}
	return min(d, limit)
}

// IgnoreRule is one entry of spec.ignoreDifferences. Group and Kind are globs.
type IgnoreRule struct {
	Group        string
	Kind         string
	Namespace    string
	Name         string
	JSONPointers []string
	// JQ are path expressions; what they name is not compared.
	JQ []string
	// Managers are field managers who are trusted with what they own.
	Managers []string
}
