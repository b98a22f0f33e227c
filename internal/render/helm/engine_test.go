package helm

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	helmengine "helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// TestSameAsHelmsEngine renders the same charts with Helm's engine and with
// ours: every file must be the same, byte for byte.
func TestSameAsHelmsEngine(t *testing.T) {
	for _, name := range []string{"functions", "nulls", "layers"} {
		t.Run(name, func(t *testing.T) {
			p := load(t, name)
			c := p.family.clone()
			top, err := p.renderValues(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			want, err := helmengine.Engine{}.RenderWithContext(t.Context(), c, top)
			if err != nil {
				t.Fatal(err)
			}
			c = p.family.clone()
			if top, err = p.renderValues(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			pages := map[string]page{}
			if err := collect(c, top, pages); err != nil {
				t.Fatal(err)
			}
			parsed, err := p.r.templates(t.Context(), p.family.identity(), c.Name(), pages)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parsed.render(&run{ctx: t.Context(), chart: c.Name(), limits: p.r.limits}, pages)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-helm +rutter):\n%s", diff)
			}
		})
	}
}

func load(t *testing.T, name string) *pass {
	t.Helper()
	ar, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	in := Input{Path: "chart", AppName: "web", Namespace: "default", KubeVersion: "v1.37.2"}
	vals := map[string]any{}
	for _, f := range ar.Files {
		if f.Name == "options.yaml" {
			var opts rutter.HelmOptions
			if err := yaml.Unmarshal(f.Data, &opts); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(opts.ValuesObject, &vals); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !strings.HasPrefix(f.Name, "../") && !strings.HasPrefix(f.Name, "$") {
			files["chart/"+f.Name] = string(f.Data)
		}
	}
	r := New(Limits{})
	in.Repo = record.New(t.Context(), rendertest.Snapshot(files), record.Options{})
	f, err := r.family(in)
	if err != nil {
		t.Fatal(err)
	}
	return &pass{r: r, in: in, family: f, vals: vals}
}
