package render

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/rutterhq/rutter"
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
func (r *Renderer) detect(repo *record.FS, j job) (tool, reason string, err error) {
	tool, reason, err = r.chosen(repo, j)
	switch {
	case tool == toolHelm && j.settings.HelmDisabled:
		return toolDirectory, "Helm is disabled (helm.enable)", err
	case tool == toolKustomize && j.settings.KustomizeDisabled:
		return toolDirectory, "Kustomize is disabled (kustomize.enable)", err
	}
	return tool, reason, err
}

func (r *Renderer) chosen(repo *record.FS, j job) (tool, reason string, err error) {
	switch explicit := blocks(j.source); {
	case len(explicit) > 1:
		return "", "", rutter.Errorf(rutter.CodeInvalid, "multiple application sources defined: %s: keep one of the blocks", strings.Join(explicit, ","))
	case len(explicit) == 1:
		return explicit[0], "the source has a block for it", nil
	}
	if name, ok, err := r.discover(repo, j); err != nil || ok {
		return toolPlugin, "plugin " + name + " discovers itself", err
	}
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if repo.IsFile(path.Join(j.path, name)) {
			return toolKustomize, "the path holds " + name, nil
		}
	}
	if repo.IsFile(path.Join(j.path, "Chart.yaml")) {
		return toolHelm, "the path holds Chart.yaml", nil
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

// discover asks the plugins whether one of them is made for the path.
func (r *Renderer) discover(_ *record.FS, _ job) (name string, ok bool, err error) {
	return "", false, nil
}

func noPlugin(name string) error {
	if name == "" {
		return rutter.Errorf(rutter.CodeInvalid, "plugin: no plugin discovers itself in the path: name one in plugin.name")
	}
	return rutter.Errorf(rutter.CodeInvalid, "plugin.name: %s", fmt.Sprintf("there is no plugin %q: the operator lists them in the folder of --plugins", name))
}
