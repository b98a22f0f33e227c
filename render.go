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
}

// Renderer turns a source into objects. Identical requests over unchanged
// inputs are answered from the store without running a tool.
// Errors: CodeInvalid with file and line where known, CodeNotFound (path), CodeUnsupported.
type Renderer interface {
	Render(ctx context.Context, req RenderRequest) (RenderResult, error)
}

// RenderResult is Manifests and whether a tool had to run.
type RenderResult struct {
	Manifests

	// Cached is true when the store answered.
	Cached bool
}
