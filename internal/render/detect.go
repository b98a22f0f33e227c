package render

import (
	"context"
	"path"
	"reflect"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/cue"
	"github.com/rutterhq/rutter/internal/render/plugin"
	"github.com/rutterhq/rutter/internal/render/record"
)

// The tools, by the name that a status shows (reference 1.13).
const (
	toolDirectory = "Directory"
	toolKustomize = "Kustomize"
	toolHelm      = "Helm"
	toolPlugin    = "Plugin"
	toolCue       = "Cue"
)

// detect returns the tool and why: that of the explicit block, else a plugin
// that discovers itself, else by what lies in the path. Kustomize wins over
// Helm, as it does in the reference (1.2). A tool that the operator has
// disabled leaves a plain directory.
func (r *Renderer) detect(ctx context.Context, repo *record.FS, j *job) (tool, reason string, err error) {
	tool, reason, err = r.chosen(ctx, repo, j)
	switch {
	case tool == toolHelm && j.settings.HelmDisabled:
		return toolDirectory, "Helm is disabled (helm.enable)", err
	case tool == toolKustomize && j.settings.KustomizeDisabled:
		return toolDirectory, "Kustomize is disabled (kustomize.enable)", err
	}
	return tool, reason, err
}

func (r *Renderer) chosen(ctx context.Context, repo *record.FS, j *job) (tool, reason string, err error) {
	switch explicit := blocks(j.source); {
	case len(explicit) > 1:
		return "", "", rutter.Errorf(rutter.CodeInvalid, "multiple application sources defined: %s: keep one of the blocks", strings.Join(explicit, ","))
	case len(explicit) == 1 && explicit[0] == toolPlugin:
		j.plugin, err = r.matchPlugin(ctx, repo, *j)
		return toolPlugin, "the source asks for plugin " + j.plugin.FullName(), err
	case len(explicit) == 1:
		return explicit[0], "the source has a block for it", nil
	}
	if r.opts.Plugins != nil {
		d, ok, err := r.opts.Plugins.Match(ctx, pluginInput(repo, *j))
		if err != nil || ok {
			j.plugin = d
			return toolPlugin, "plugin " + d.FullName() + " discovers itself", err
		}
	}
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if repo.IsFile(path.Join(j.path, name)) {
			return toolKustomize, "the path holds " + name, nil
		}
	}
	if repo.IsFile(path.Join(j.path, "Chart.yaml")) {
		return toolHelm, "the path holds Chart.yaml", nil
	}
	if cue.Detect(repo, j.path) {
		return toolCue, "the path holds a CUE package and no manifests", nil
	}
	return toolDirectory, "the path holds neither a kustomization nor a chart", repo.Err()
}

// blocks returns the tools that the source names outright. An empty block says
// nothing, but for plugin, where it asks for discovery.
func blocks(src rutter.Source) []string {
	var explicit []string
	for _, b := range []struct {
		tool  string
		block any
	}{{toolDirectory, src.Directory}, {toolHelm, src.Helm}, {toolKustomize, src.Kustomize}} {
		if v := reflect.ValueOf(b.block); !v.IsNil() && !v.Elem().IsZero() {
			explicit = append(explicit, b.tool)
		}
	}
	if p := src.Plugin; p != nil {
		tool := toolPlugin
		if p.Name == cueName {
			tool = toolCue
		}
		explicit = append(explicit, tool)
	}
	return explicit
}

// cueName is the plugin name that means the built-in tool.
const cueName = "cue"

// matchPlugin finds the plugin of a source that asks for one.
func (r *Renderer) matchPlugin(ctx context.Context, repo *record.FS, j job) (plugin.Definition, error) {
	if r.opts.Plugins == nil {
		return plugin.Definition{}, rutter.Errorf(rutter.CodeInvalid, "plugin: there is no plugin %q: the operator lists plugins in the folder of --plugins", j.source.Plugin.Name)
	}
	d, _, err := r.opts.Plugins.Match(ctx, pluginInput(repo, j))
	return d, err
}
