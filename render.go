package rutter

import "context"

// RenderRequest is everything that a render depends on.
type RenderRequest struct {
	// Source is the one to render; Refs are the other sources that it may
	// reference as $name/..., by name.
	Source   Source
	Snapshot Snapshot
	Refs     map[string]Snapshot
	// AppName is the release name's default; Instance and Project fill the build environment.
	AppName   string
	Instance  string
	Project   string
	Namespace string
	// KubeVersion and APIVersions are the target cluster's, for Helm.
	KubeVersion string
	APIVersions []string
	// Permit says whether the project allows a repository that the source itself
	// names: a chart's dependency, a remote base, a values file. Nil allows all.
	Permit func(repo Repo) error
	// Lookup reads an object of the target cluster for Helm's lookup, as the
	// tenant; nil means that lookup finds nothing, as in helm template.
	Lookup Lookup
	// Cluster names the target cluster that Lookup reads.
	Cluster string
	// Lazy leaves Objects out of an answer from the store; Load has them.
	Lazy bool
}

// Lookup returns one object, or with an empty name the list of them. It returns
// nil and no error when there is none.
type Lookup func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error)

// Renderer turns a source into objects. Identical requests over unchanged
// inputs are answered from the store without running a tool.
// Errors: CodeInvalid with file and line where known, CodeNotFound (path), CodeUnsupported:
// of the input, and kept until an input changes; CodeUnavailable and CodeForbidden (credentials): passing.
type Renderer interface {
	Render(ctx context.Context, req RenderRequest) (RenderResult, error)
	// Load returns the objects of a digest that an earlier Render returned;
	// CodeNotFound when they are no longer kept: render again.
	Load(digest string) (Manifests, error)
}

// RenderResult is Manifests and whether a tool had to run.
type RenderResult struct {
	Manifests

	// Cached is true when the store answered.
	Cached bool
}

// RenderSettings are what an operator sets for all renders (argocd-cm, reference 1.2 to 1.6).
// The zero value is the default: all tools on, nothing that runs foreign code.
type RenderSettings struct {
	HelmDisabled, KustomizeDisabled, JsonnetDisabled bool
	// Kustomize are build options by version name; "" is the default.
	Kustomize map[string]KustomizeBuild
	// ValuesFileSchemes are the protocols of remote values files; nil means http
	// and https, an empty list none.
	ValuesFileSchemes []string
	// MaxDirectoryBytes bounds the files of a plain directory; 0 means 10 MB,
	// negative no limit.
	MaxDirectoryBytes int64
}

// KustomizeBuild are the options of kustomize build that an operator may set.
type KustomizeBuild struct {
	// EnableHelm lets kustomizations inflate charts.
	EnableHelm bool
	// LoadRestrictorNone lets a kustomization read files above its own folder,
	// still inside the repository.
	LoadRestrictorNone bool
	// LegacyOrder sorts the output by kind.
	LegacyOrder bool
}

// Decrypter opens files that SOPS has sealed.
type Decrypter interface {
	// Decrypt returns the plaintext of a file; its name tells the format (YAML,
	// JSON, dotenv, INI, else binary). sealed is false, and plain nil, when the
	// file holds no envelope. Errors: CodeForbidden when no configured key of the
	// project opens it, CodeInvalid when it is damaged, CodeUnavailable when a key
	// service does not answer.
	Decrypt(ctx context.Context, project, name string, data []byte) (plain []byte, sealed bool, err error)
	// DecryptObject does the same for one object that a tool has put together; its
	// envelope is taken off. What the tool changed is not verified.
	DecryptObject(ctx context.Context, project string, obj map[string]any) (plain map[string]any, sealed bool, err error)
	// Generation changes whenever the keys do.
	Generation() string
}

// Explanation says how a render came about.
type Explanation struct {
	// Source is the field of the Application, such as spec.sources[1]; Revision is
	// what it resolved to.
	Source   string `json:"source,omitempty"`
	Revision string `json:"revision"`
	// Tool renders the source, because of Reason.
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
	// Objects is how many came out.
	Objects int `json:"objects"`
	// Values are what set or removed each Helm value, lowest layer first.
	Values []ValueLayer `json:"values,omitempty"`
	Inputs []Input      `json:"inputs"`
}

// ValueLayer is one layer that set or removed one Helm value.
type ValueLayer struct {
	// Path is the value's, such as image.tag or ports[0].name.
	Path string `json:"path"`
	// Layer is the kind of layer: chart, dependency, valueFile, values,
	// valuesObject, parameter, fileParameter.
	Layer string `json:"layer"`
	// File and Line name the place; the file is empty for what the Application itself says.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Source is the index of the source that File belongs to.
	Source  int  `json:"source,omitempty"`
	Value   any  `json:"value"`
	Removed bool `json:"removed,omitempty"`
}
