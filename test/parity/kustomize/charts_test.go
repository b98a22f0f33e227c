package kustomizeparity

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/manifest"
	"github.com/rutterhq/rutter/internal/render/record"
)

// helmBinary returns the real helm of the version in go.mod.
func helmBinary(t *testing.T) string {
	t.Helper()
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "helm.sh/helm/v4").Output()
	if err != nil {
		t.Fatal(err)
	}
	return installed(t, "helm", "helm.sh/helm/v4/cmd/helm", string(version))
}

// inflate renders a chart with helm as kustomize runs it, so that only what
// kustomize makes of charts is compared.
func inflate(t *testing.T, k tool) kustomize.Inflate {
	t.Helper()
	return func(ctx context.Context, c kustomize.Chart) ([]rutter.Object, error) {
		if c.Local == "" {
			return nil, errors.New("the chart is not here")
		}
		dir := t.TempDir()
		if err := export(c.Files, c.Local, filepath.Join(dir, "chart")); err != nil {
			return nil, err
		}
		own, err := os.ReadFile(filepath.Join(dir, "chart", "values.yaml"))
		if err != nil {
			return nil, err
		}
		values, err := c.Values(own)
		if err != nil {
			return nil, err
		}
		args := []string{"template"}
		if c.ReleaseName != "" {
			args = append(args, c.ReleaseName)
		} else {
			args = append(args, "--generate-name")
		}
		args = append(args, filepath.Join(dir, "chart"))
		if c.Namespace != "" {
			args = append(args, "--namespace", c.Namespace)
		}
		for _, v := range values {
			f, err := os.CreateTemp(dir, "values")
			if err != nil {
				return nil, err
			}
			if _, err := f.Write(v.YAML); err != nil {
				return nil, err
			}
			if err := f.Close(); err != nil {
				return nil, err
			}
			args = append(args, "-f", f.Name())
		}
		for _, v := range c.APIVersions {
			args = append(args, "--api-versions", v)
		}
		if c.KubeVersion != "" {
			args = append(args, "--kube-version", c.KubeVersion)
		}
		for flag, set := range map[string]bool{"--include-crds": c.IncludeCRDs, "--skip-tests": c.SkipTests, "--no-hooks": c.SkipHooks} {
			if set {
				args = append(args, flag)
			}
		}
		out, err := exec.CommandContext(ctx, k.helm, args...).Output()
		if err != nil {
			return nil, err
		}
		return parse(out)
	}
}

func parse(text []byte) ([]rutter.Object, error) {
	var out []rutter.Object
	for _, doc := range manifest.Split(text) {
		v, err := manifest.Decode(doc, "stdout")
		if err != nil {
			return nil, err
		}
		objs, err := manifest.Objects(v, rutter.Origin{})
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

// export writes a folder of a repository to disk.
func export(repo *record.FS, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	found, err := repo.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range found {
		source, target := from+"/"+e.Name(), filepath.Join(to, e.Name())
		if e.IsDir() {
			if err := export(repo, source, target); err != nil {
				return err
			}
			continue
		}
		data, err := repo.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
