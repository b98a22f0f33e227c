package kustomizeparity

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
)

// kustomizeBinary returns the real kustomize.
func kustomizeBinary(t testing.TB) string {
	t.Helper()
	return installed(t, "kustomize", "sigs.k8s.io/kustomize/kustomize/v5", kustomize.Version)
}

// installed returns a program that is built from its Go module and kept beside
// the other tools.
func installed(t testing.TB, name, pkg, version string) string {
	t.Helper()
	version = strings.TrimSpace(version)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "bin", "tools")
	if env := os.Getenv("RUTTER_TESTENV_DIR"); env != "" {
		dir = filepath.Join(filepath.Dir(env), "tools")
	}
	bin := filepath.Join(dir, name)
	if info, err := buildinfo.ReadFile(bin); err == nil && info.Main.Version == version {
		return bin
	}
	cmd := exec.Command("go", "install", pkg+"@"+version)
	cmd.Dir = t.TempDir() // outside of the module, whose requirements stay as they are
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("install %s %s: %v\n%s", pkg, version, err, out)
	}
	return bin
}

// tool runs the real kustomize in a folder.
type tool struct {
	bin, helm string
	// env replaces what is said of the network.
	env []string
}

func (k tool) run(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command(k.bin, args...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// No proxy answers there, so nothing on the network can be reached by accident.
	cmd.Env = append(append(os.Environ(), "HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "GIT_ALLOW_PROTOCOL=none"), k.env...)
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("kustomize %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.Bytes(), nil
}

// build runs the edits that the options stand for, as the reference does, and
// then the build.
func (k tool) build(root, folder string, opts treeOptions) ([]byte, error) {
	dir := filepath.Join(root, folder)
	for _, edit := range edits(root, dir, opts.Options) {
		if err := edit(k); err != nil {
			return nil, err
		}
	}
	args := []string{"build", "."}
	if opts.Build.LoadRestrictorNone {
		args = append(args, "--load-restrictor", "LoadRestrictionsNone")
	}
	if opts.Build.LegacyOrder {
		args = append(args, "--reorder", "legacy")
	}
	if opts.Build.EnableHelm {
		args = append(args, "--enable-helm", "--helm-command", k.helm)
		if v := opts.Options.KubeVersion; v != "" {
			args = append(args, "--helm-kube-version", v)
		}
		for _, v := range opts.Options.APIVersions {
			args = append(args, "--helm-api-versions", v)
		}
	}
	return k.run(dir, args...)
}

// environment are the variables of the renders here.
func environment(name string) string {
	return map[string]string{"ARGOCD_APP_NAME": "web", "ARGOCD_APP_PROJECT_NAME": "team", "$": "$"}[name]
}

// edits are the steps of the reference, in its order.
func edits(root, dir string, o rutter.KustomizeOptions) []func(tool) error {
	var steps []func(tool) error
	edit := func(args ...string) {
		steps = append(steps, func(k tool) error { _, err := k.run(dir, append([]string{"edit"}, args...)...); return err })
	}
	if o.NamePrefix != "" {
		edit("set", "nameprefix", "--", o.NamePrefix)
	}
	if o.NameSuffix != "" {
		edit("set", "namesuffix", "--", o.NameSuffix)
	}
	if len(o.Images) > 0 {
		args := []string{"set", "image"}
		for _, i := range o.Images {
			args = append(args, os.Expand(i, environment))
		}
		edit(args...)
	}
	if len(o.Replicas) > 0 {
		args := []string{"set", "replicas"}
		for _, r := range o.Replicas {
			args = append(args, r.Name+"="+strconv.FormatInt(r.Count, 10))
		}
		edit(args...)
	}
	expand := func(s string) string { return os.Expand(s, environment) }
	if len(o.CommonLabels) > 0 {
		edit(pairArgs("label", o.CommonLabels, expand, map[string]bool{"--force": o.ForceCommonLabels,
			"--without-selector": o.LabelWithoutSelector, "--include-templates": o.LabelIncludeTemplates})...)
	}
	if len(o.CommonAnnotations) > 0 {
		if !o.CommonAnnotationsEnvsubst {
			expand = func(s string) string { return s }
		}
		edit(pairArgs("annotation", o.CommonAnnotations, expand, map[string]bool{"--force": o.ForceCommonAnnotations})...)
	}
	if o.Namespace != "" {
		edit("set", "namespace", "--", o.Namespace)
	}
	if len(o.Patches) > 0 {
		steps = append(steps, func(tool) error { return addPatches(dir, o.Patches) })
	}
	if c := components(dir, o); len(c) > 0 {
		edit(append([]string{"add", "component"}, c...)...)
	}
	return steps
}

func pairArgs(kind string, pairs map[string]string, expand func(string) string, flags map[string]bool) []string {
	args := []string{"add", kind}
	for flag, set := range flags {
		if set {
			args = append(args, flag)
		}
	}
	for k, v := range pairs {
		args = append(args, k+":"+expand(v))
	}
	return args
}

// addPatches appends patches to the text of the kustomization, as the reference does.
func addPatches(dir string, patches []rutter.KustomizePatch) error {
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		m := map[string]any{}
		if err := yaml.Unmarshal(data, &m); err != nil {
			return err
		}
		list, _ := m["patches"].([]any)
		for _, p := range patches {
			list = append(list, p)
		}
		m["patches"] = list
		if data, err = yaml.Marshal(m); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o600)
	}
	return errors.New("kustomization file not found in the path")
}

func components(dir string, o rutter.KustomizeOptions) []string {
	if !o.IgnoreMissingComponents {
		return o.Components
	}
	var out []string
	for _, c := range o.Components {
		if _, err := os.Stat(filepath.Join(dir, c)); err == nil {
			out = append(out, c)
		}
	}
	return out
}
