package argo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func TestParseSettings(t *testing.T) {
	none := map[string]rutter.KustomizeBuild{}
	for name, tc := range map[string]struct {
		cm, params map[string]string
		want       rutter.RenderSettings
		problems   []string
	}{
		"nothing":         {want: rutter.RenderSettings{Kustomize: none}},
		"disabled":        {cm: map[string]string{"helm.enable": "false", "kustomize.enable": "true", "jsonnet.enable": "false"}, want: rutter.RenderSettings{HelmDisabled: true, JsonnetDisabled: true, Kustomize: none}},
		"not a bool":      {cm: map[string]string{"helm.enable": "no"}, want: rutter.RenderSettings{Kustomize: none}, problems: []string{"helm.enable"}},
		"schemes":         {cm: map[string]string{"helm.valuesFileSchemes": "https, S3"}, want: rutter.RenderSettings{ValuesFileSchemes: []string{"https", "s3"}, Kustomize: none}},
		"no remote files": {cm: map[string]string{"helm.valuesFileSchemes": ""}, want: rutter.RenderSettings{ValuesFileSchemes: []string{}, Kustomize: none}},
		"build options": {cm: map[string]string{"kustomize.buildOptions": "--enable-helm --load-restrictor LoadRestrictionsNone", "kustomize.buildOptions.v4.5.7": "--reorder=legacy --load-restrictor=LoadRestrictionsNone"},
			want: rutter.RenderSettings{Kustomize: map[string]rutter.KustomizeBuild{"": {EnableHelm: true, LoadRestrictorNone: true}, "v4.5.7": {LegacyOrder: true, LoadRestrictorNone: true}}}},
		"foreign code": {cm: map[string]string{"kustomize.buildOptions": "--enable-alpha-plugins --enable-exec --enable-helm --helm-command /bin/evil ; rm"},
			want: rutter.RenderSettings{Kustomize: map[string]rutter.KustomizeBuild{"": {EnableHelm: true}}}, problems: []string{"--enable-alpha-plugins is refused", "--enable-exec is refused", "--helm-command has no effect", `";"`, `"rm"`}},
		"path":      {cm: map[string]string{"kustomize.path.v5.0.0": "/bin/kustomize5"}, want: rutter.RenderSettings{Kustomize: map[string]rutter.KustomizeBuild{"v5.0.0": {}}}, problems: []string{"kustomize.path.v5.0.0: the built-in"}},
		"size":      {params: map[string]string{"reposerver.max.combined.directory.manifests.size": "20M"}, want: rutter.RenderSettings{MaxDirectoryBytes: 20_000_000, Kustomize: none}},
		"unlimited": {params: map[string]string{"reposerver.max.combined.directory.manifests.size": "0"}, want: rutter.RenderSettings{MaxDirectoryBytes: -1, Kustomize: none}},
		"no size":   {params: map[string]string{"reposerver.max.combined.directory.manifests.size": "big"}, want: rutter.RenderSettings{Kustomize: none}, problems: []string{"manifests.size"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, problems := argo.ParseSettings(&corev1.ConfigMap{Data: tc.cm}, &corev1.ConfigMap{Data: tc.params})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if len(problems) != len(tc.problems) {
				t.Fatalf("problems %q, want %q", problems, tc.problems)
			}
			for i, says := range tc.problems {
				if !strings.Contains(problems[i], says) {
					t.Errorf("%q, want %q", problems[i], says)
				}
			}
		})
	}
}
