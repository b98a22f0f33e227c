package helm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// TestUseOfTheClusterIsNoted: only a chart that looks at the cluster's version
// or APIs is rendered again for another cluster.
func TestUseOfTheClusterIsNoted(t *testing.T) {
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {v: 'x'}\n"
	tests := map[string]struct {
		files map[string]string
		opts  rutter.HelmOptions
		uses  bool
	}{
		"not at all":                     {files: map[string]string{"templates/x.yaml": cm}},
		"the version":                    {files: map[string]string{"templates/x.yaml": cm + "# {{ .Capabilities.KubeVersion.Minor }}"}, uses: true},
		"the APIs":                       {files: map[string]string{"templates/x.yaml": `{{ if .Capabilities.APIVersions.Has "a/v1" }}{{ end }}` + cm}, uses: true},
		"in a helper that is used":       {files: map[string]string{"templates/_h.tpl": `{{ define "h" }}{{ .Capabilities.KubeVersion }}{{ end }}`, "templates/x.yaml": `# {{ include "h" . }}` + "\n" + cm}, uses: true},
		"in a helper that is not used":   {files: map[string]string{"templates/_h.tpl": `{{ define "h" }}{{ .Capabilities.KubeVersion }}{{ end }}`, "templates/x.yaml": cm}},
		"handed on":                      {files: map[string]string{"templates/_h.tpl": `{{ define "h" }}{{ .Minor }}{{ end }}`, "templates/x.yaml": `# {{ include "h" .Capabilities.KubeVersion }}` + "\n" + cm}, uses: true},
		"in a text of the values":        {files: map[string]string{"values.yaml": "t: '{{ .Capabilities.KubeVersion }}'", "templates/x.yaml": `# {{ tpl .Values.t . }}` + "\n" + cm}, uses: true},
		"everything is written":          {files: map[string]string{"templates/x.yaml": `{{ $_ := toJson . }}` + cm}, uses: true},
		"through an index":               {files: map[string]string{"templates/x.yaml": `{{ $c := index . "Capabilities" }}` + cm}, uses: true},
		"what the chart requires":        {files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\nkubeVersion: '>=1.20.0-0'\n", "templates/x.yaml": cm}, uses: true},
		"the options say all there is":   {files: map[string]string{"templates/x.yaml": cm + "# {{ .Capabilities.KubeVersion }}"}, opts: rutter.HelmOptions{KubeVersion: "1.30.0", APIVersions: []string{"v1"}}},
		"the options say half there is":  {files: map[string]string{"templates/x.yaml": cm + "# {{ .Capabilities.KubeVersion }}"}, opts: rutter.HelmOptions{KubeVersion: "1.30.0"}, uses: true},
		"in the text of a schema or not": {files: map[string]string{"README.md": "Capabilities", "templates/x.yaml": cm}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(t, chart(tt.files), tt.opts)
			if _, _, err := render(t, in); err != nil {
				t.Fatal(err)
			}
			if uses := len(in.Env.Used()) > 0; uses != tt.uses {
				t.Errorf("the use of the cluster is noted: %v, want %v", uses, tt.uses)
			}
			if len(in.Repo.Inputs()) == 0 {
				t.Error("nothing is recorded")
			}
		})
	}
}

// TestInputsAreRecordedEachTime: a chart that is known parsed still names every
// file that the render depends on.
func TestInputsAreRecordedEachTime(t *testing.T) {
	files := chart(map[string]string{"templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "values.yaml": "a: 1\n", "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"})
	r := newRenderer()
	var first []rutter.Input
	for i := range 3 {
		in := input(t, files, rutter.HelmOptions{})
		if _, _, err := r.Render(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = in.Repo.Inputs()
		}
		if diff := cmp.Diff(first, in.Repo.Inputs()); diff != "" || len(first) < 8 {
			t.Errorf("render %d has other inputs (%d):\n%s", i, len(first), diff)
		}
	}
}
