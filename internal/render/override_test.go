package render

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// declared is a source whose every protected field is set.
var declared = rutter.Source{RepoURL: "https://git.example.com/a.git", Path: "app", TargetRevision: "main", Ref: "r", Name: "n", TagPrefix: "t",
	Helm: &rutter.HelmOptions{ReleaseName: "web", ValuesObject: json.RawMessage(`{"keep":null,"a":1}`)}}

func overridden(t testing.TB, files map[string]string) (rutter.Source, error) {
	t.Helper()
	return override(record.New(t.Context(), rendertest.Snapshot(files), record.Options{}), "app", "team_web", declared)
}

func TestOverride(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  func(*rutter.Source)
		says  string
		code  rutter.Code
	}{
		"none":             {files: map[string]string{"app/x": ""}, want: func(*rutter.Source) {}},
		"empty":            {files: map[string]string{"app/.argocd-source.yaml": "# nothing\n"}, want: func(*rutter.Source) {}},
		"value":            {files: map[string]string{"app/.argocd-source.yaml": "helm: {releaseName: other}"}, want: func(s *rutter.Source) { s.Helm.ReleaseName = "other" }},
		"instance is last": {files: map[string]string{"app/.argocd-source.yaml": "helm: {releaseName: a}", "app/.argocd-source-team_web.yaml": "helm: {releaseName: b}", "app/.argocd-source-web.yaml": "helm: {releaseName: c}"}, want: func(s *rutter.Source) { s.Helm.ReleaseName = "b" }},
		"null removes":     {files: map[string]string{"app/.argocd-source.yaml": "helm: null"}, want: func(s *rutter.Source) { s.Helm = nil }},
		"protected": {files: map[string]string{"app/.argocd-source.yaml": "repoURL: https://evil\npath: ../x\nchart: c\ntargetRevision: evil\nref: x\nname: other\ntagPrefix: z"},
			want: func(*rutter.Source) {}},
		"helm.version is ignored": {files: map[string]string{"app/.argocd-source.yaml": "helm: {version: v3}"}, want: func(*rutter.Source) {}},
		"replicas as text": {files: map[string]string{"app/.argocd-source.yaml": "kustomize: {replicas: [{name: a, count: '3'}]}"},
			want: func(s *rutter.Source) {
				s.Kustomize = &rutter.KustomizeOptions{Replicas: []rutter.KustomizeReplica{{Name: "a", Count: 3}}}
			}},
		"unknown field": {files: map[string]string{"app/.argocd-source.yaml": "helm: {releasName: x}"}, says: "releasName", code: rutter.CodeUnsupported},
		"no mapping":    {files: map[string]string{"app/.argocd-source.yaml": "- a"}, says: "app/.argocd-source.yaml", code: rutter.CodeInvalid},
		"twice":         {files: map[string]string{"app/.argocd-source.yaml": "helm: {}\nhelm: {}"}, says: "helm", code: rutter.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := overridden(t, tc.files)
			if tc.says != "" {
				if rutter.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%q %v, want %q with %q", rutter.CodeOf(err), err, tc.code, tc.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := declared
			h := *declared.Helm
			want.Helm = &h
			tc.want(&want)
			if got.Helm != nil && want.Helm != nil && string(got.Helm.ValuesObject) == `{"a":1,"keep":null}` {
				got.Helm.ValuesObject = want.Helm.ValuesObject // the same, in another order
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// FuzzOverride: whatever a repository says, where the source is read from stays.
func FuzzOverride(f *testing.F) {
	for _, s := range []string{"helm: {releaseName: x}", "repoURL: x\npath: /etc", "kustomize: {images: [a=b:c]}", "plugin: {name: x, env: [{name: A, value: b}]}",
		"directory: {jsonnet: {tlas: [{name: a, value: b, code: true}]}}", "a: &a [*a]", "null", "\xff\xfe", "helm: {valuesObject: {a: null}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := overridden(t, map[string]string{"app/.argocd-source.yaml": text})
		if err != nil {
			return
		}
		if got.RepoURL != declared.RepoURL || got.Path != declared.Path || got.TargetRevision != declared.TargetRevision || got.Chart != "" ||
			got.Ref != declared.Ref || got.Name != declared.Name || got.TagPrefix != declared.TagPrefix {
			t.Errorf("%q changes where the source is read from: %+v", text, got)
		}
	})
}
