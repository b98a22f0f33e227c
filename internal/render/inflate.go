package render

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
)

// inflate renders a chart that a kustomization lists, with the built-in Helm.
func (r *Renderer) inflate(ctx context.Context, j job, c kustomize.Chart) ([]rutter.Object, error) {
	files, dir, err := chartFiles(j, c)
	if err != nil {
		return nil, err
	}
	in := helm.Input{Repo: files, Path: dir, Env: j.env, Project: j.req.Project, AppName: c.ReleaseName, Namespace: c.Namespace,
		KubeVersion: c.KubeVersion, APIVersions: c.APIVersions,
		Options: rutter.HelmOptions{ReleaseName: c.ReleaseName, SkipCrds: !c.IncludeCRDs, SkipTests: c.SkipTests}}
	switch {
	case c.ReleaseName == "" && c.NameTemplate != "":
		return nil, &rutter.Error{Code: rutter.CodeUnsupported, File: c.At.File, Line: c.At.Line, Message: fmt.Sprintf(
			"helmCharts: %s: nameTemplate is not acted on: set releaseName", c.Name)}
	case c.ReleaseName == "":
		in.Options.ReleaseName, in.AppName = c.Name, c.Name // helm would make one up by chance
	}
	if in.Options.ValuesObject, err = chartValues(files, dir, c); err != nil {
		return nil, err
	}
	objs, _, err := r.helm.Render(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	if c.SkipHooks {
		objs = withoutHooks(objs)
	}
	return objs, nil
}

// chartFiles finds the chart: beside the kustomization, or in a repository.
func chartFiles(j job, c kustomize.Chart) (*record.FS, string, error) {
	if c.Local != "" {
		return c.Files, c.Local, nil
	}
	version := c.Version
	if version == "" && c.Devel {
		version = ">0.0.0-0"
	}
	files, err := c.Files.Remote(rutter.Repo{URL: c.Repo, Chart: c.Name, Revision: version, Project: j.req.Project})
	if err != nil {
		return nil, "", &rutter.Error{Code: rutter.CodeOf(err), File: c.At.File, Line: c.At.Line, Message: "helmCharts: " + c.Name, Err: err}
	}
	return files, ".", nil
}

// chartValues merges the layers that the kustomization declares into one.
func chartValues(files *record.FS, dir string, c kustomize.Chart) (json.RawMessage, error) {
	own, err := files.ReadFile(path.Join(dir, "values.yaml"))
	if err != nil && !record.IsAbsent(err) {
		return nil, fmt.Errorf("read the values of chart %s: %w", c.Name, err)
	}
	layers, err := c.Values(own)
	if err != nil {
		return nil, err
	}
	merged := map[string]any{}
	for _, l := range layers {
		values := map[string]any{}
		if err := yaml.Unmarshal(l.YAML, &values); err != nil {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: l.Name, Message: "is no file of values", Err: err}
		}
		merged = loader.MergeMaps(merged, values)
	}
	text, err := json.Marshal(merged)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "values of chart %s: %w", c.Name, err)
	}
	return text, nil
}

// withoutHooks is --no-hooks.
func withoutHooks(objs []rutter.Object) []rutter.Object {
	var kept []rutter.Object
	for _, o := range objs {
		if _, hook := o.GetAnnotations()["helm.sh/hook"]; !hook {
			kept = append(kept, o)
		}
	}
	return kept
}
