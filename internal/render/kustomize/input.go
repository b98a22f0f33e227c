package kustomize

import (
	"context"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Input is one render of a kustomization.
type Input struct {
	// Repo holds the kustomization in the folder Path.
	Repo *record.FS
	Path string
	// Options are those of the source (reference 1.5), Build those of the operator.
	Options rutter.KustomizeOptions
	Build   rutter.KustomizeBuild
	// Env fills variables in images, labels and annotations.
	Env *buildenv.Env
	// Project restricts which credentials remote bases may use.
	Project string
	// KubeVersion and APIVersions are the cluster's, for charts that say nothing of their own.
	KubeVersion string
	APIVersions []string
	// Inflate renders one chart that a kustomization lists; nil refuses them. It
	// is asked only when Build.EnableHelm is set.
	Inflate Inflate
	// Flux, when set, renders as a Flux Kustomization does; Options are then not looked at.
	Flux *FluxOptions
}

// Inflate renders one chart: the objects that `helm template` would print, in its order.
type Inflate func(ctx context.Context, chart Chart) ([]rutter.Object, error)

// Chart is one entry of helmCharts, as a kustomization declares it.
type Chart struct {
	// Name is the chart's, Repo the URL of its repository (https:// or oci://).
	Name, Repo, Version string
	// ReleaseName may be empty: helm then makes one up from NameTemplate, or by chance.
	ReleaseName  string
	NameTemplate string
	// Namespace is the release's: the entry's, else that of the kustomization or of one above it.
	Namespace string
	// ValuesFile is used instead of the chart's own values.yaml; it and the
	// additional ones are relative to Files, and empty where not given.
	ValuesFile            string
	AdditionalValuesFiles []string
	ValuesInline          map[string]any
	// ValuesMerge is merge, override or replace; see Values.
	ValuesMerge string
	IncludeCRDs bool
	SkipTests   bool
	SkipHooks   bool
	Devel       bool
	// KubeVersion and APIVersions are the entry's, else the source's, else the cluster's.
	KubeVersion string
	APIVersions []string

	// Files holds the kustomization, which is in the folder Dir of it: the
	// repository of the source, or that of a remote base.
	Files *record.FS
	Dir   string
	// Home is the folder of Files that local charts lie in, by name; Local is
	// this chart's folder where it lies there, and then nothing is fetched.
	Home  string
	Local string
	// At is where the entry is written.
	At rutter.Origin

	// download fetches a values file that is named by its address.
	download func(address string) ([]byte, error)
}
