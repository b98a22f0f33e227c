package kustomize_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// inflated is what a chart makes here: an object that says what it was told.
func inflated(_ context.Context, c kustomize.Chart) ([]rutter.Object, error) {
	values, err := c.Values([]byte("own: 1\nshared: chart\n"))
	if err != nil {
		return nil, err
	}
	var text []string
	for _, v := range values {
		text = append(text, v.Name+": "+strings.ReplaceAll(strings.TrimSpace(string(v.YAML)), "\n", ", "))
	}
	object := func(kind, name string) rutter.Object {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		u.SetName(name)
		u.SetNamespace(c.Namespace)
		return rutter.Object{Unstructured: u, Origin: rutter.Origin{File: c.Local + "/templates/x.yaml", Line: 1}}
	}
	o := object("ConfigMap", c.Name)
	o.Object["data"] = map[string]any{"octal": "0o17", "no": "no", "del": "\x7f", "text": "a\nb: c\n", "values": strings.Join(text, " | "), "home": c.Home, "local": c.Local, "dir": c.Dir, "kube": c.KubeVersion, "apis": strings.Join(c.APIVersions, ",")}
	return []rutter.Object{o, object("Secret", c.Name)}, nil
}

func charted() map[string]string {
	return map[string]string{
		"base/kustomization.yaml":    "resources: [a.yaml]\nconfigMapGenerator: [{name: g, literals: [a=b]}]\ngeneratorOptions: {disableNameSuffixHash: true}\nhelmCharts: [{name: app, releaseName: r}]\n",
		"base/a.yaml":                configMap("a"),
		"base/charts/app/Chart.yaml": "name: app\n",
		"overlay/kustomization.yaml": "resources: [../base]\nnamespace: team\nnamePrefix: o-\ncommonLabels: {l: v}\n",
		"overlay/v.yaml":             "from: file\nshared: file\n",
		"overlay/w.yaml":             "more: w\n",
		"secret.txt":                 "SENTINEL",
	}
}

// TestCharts holds the inflation of charts, in every layer.
func TestCharts(t *testing.T) {
	own := func(text string) map[string]string {
		return map[string]string{"overlay/kustomization.yaml": text + "\n", "overlay/charts/app/Chart.yaml": "name: app\n"}
	}
	tests := map[string]struct {
		files  map[string]string
		opts   rutter.KustomizeOptions
		build  rutter.KustomizeBuild
		has    []string
		object map[string]string
		code   rutter.Code
		says   string
	}{
		"in a base": {has: []string{"ConfigMap/team/o-a", "ConfigMap/team/o-g", "ConfigMap/team/o-app", "Secret/team/o-app"}, object: map[string]string{"label": "v", "dir": "base", "home": "base/charts", "local": "base/charts/app"}},
		"with options": {opts: rutter.KustomizeOptions{Namespace: "argo", KubeVersion: "1.30.0", APIVersions: []string{"x/v1"}},
			has: []string{"ConfigMap/argo/o-app"}, object: map[string]string{"kube": "1.30.0", "apis": "x/v1"}},
		"the cluster's capabilities": {object: map[string]string{"kube": "1.37.0", "apis": "c/v1"}},
		"its own capabilities":       {files: own("helmCharts: [{name: app, kubeVersion: 1.20.0, apiVersions: [own/v1]}]"), opts: rutter.KustomizeOptions{KubeVersion: "1.30.0"}, object: map[string]string{"kube": "1.20.0", "apis": "own/v1"}},
		"its own namespace":          {files: own("namespace: not\nhelmCharts: [{name: app, namespace: mine}]"), has: []string{"ConfigMap/mine/app"}},
		"values: own":                {files: own("helmCharts: [{name: app}]"), object: map[string]string{"values": "values.yaml: own: 1, shared: chart"}},
		"values: file and more":      {files: own("helmCharts: [{name: app, valuesFile: v.yaml, additionalValuesFiles: [w.yaml]}]"), object: map[string]string{"values": "overlay/v.yaml: from: file, shared: file | overlay/w.yaml: more: w"}},
		"values: inline":             {files: own("helmCharts: [{name: app, valuesInline: {shared: inline, deep: {x: 1}}}]"), object: map[string]string{"values": "valuesInline: deep:,   x: 1, own: 1, shared: inline"}},
		"values: inline fills":       {files: own("helmCharts: [{name: app, valuesMerge: merge, valuesInline: {shared: inline, new: 2}}]"), object: map[string]string{"values": "valuesInline: new: 2, own: 1, shared: chart"}},
		"values: inline instead":     {files: own("helmCharts: [{name: app, valuesMerge: replace, valuesInline: {new: 2}}]"), object: map[string]string{"values": "valuesInline: new: 2"}},
		"values: inline over a file": {files: own("helmCharts: [{name: app, valuesFile: v.yaml, valuesInline: {shared: inline, from: null}}]"), object: map[string]string{"values": "valuesInline: shared: inline"}},
		"another home":               {files: map[string]string{"overlay/kustomization.yaml": "helmGlobals: {chartHome: vendor}\nhelmCharts: [{name: app}]\n", "overlay/vendor/app/Chart.yaml": "name: app\n"}, object: map[string]string{"local": "overlay/vendor/app"}},
		"from a repository":          {files: own("helmCharts: [{name: far, repo: 'https://charts.example.com', version: 1.2.3}]"), object: map[string]string{"home": "overlay/charts/far-1.2.3", "local": "", "dir": "overlay"}},
		"pulled before": {files: map[string]string{"overlay/kustomization.yaml": "helmCharts: [{name: far, repo: 'https://charts.example.com', version: 1.2.3}]\n",
			"overlay/charts/far-1.2.3/far/Chart.yaml": "name: far\n"}, object: map[string]string{"local": "overlay/charts/far-1.2.3/far"}},
		"the older form":                  {files: own("helmChartInflationGenerator: [{chartName: app, values: v.yaml}]"), object: map[string]string{"values": "overlay/v.yaml: from: file, shared: file"}},
		"as a generator":                  {files: own("generators: [g.yaml]"), object: map[string]string{"values": "valuesInline: a: 1, own: 1, shared: chart"}},
		"beside another":                  {files: own("resources: [a.yaml]\nhelmCharts: [{name: app}]"), has: []string{"ConfigMap//app", "ConfigMap//r"}},
		"in a component":                  {files: own("components: [../part]"), object: map[string]string{"dir": "part"}},
		"without EnableHelm":              {build: rutter.KustomizeBuild{}, code: rutter.CodeUnsupported, says: "base/kustomization.yaml:4: helmCharts: must specify --enable-helm: kustomize inflates charts only where an operator has set kustomize.buildOptions"},
		"generator without it":            {files: own("generators: [g.yaml]"), build: rutter.KustomizeBuild{LegacyOrder: true}, code: rutter.CodeUnsupported, says: "--enable-helm"},
		"mixed generators":                {files: own("generators: [mixed.yaml]"), code: rutter.CodeUnsupported, says: "overlay/mixed.yaml"},
		"no such chart":                   {files: own("helmCharts: [{name: nope}]"), code: rutter.CodeInvalid, says: "there is no chart in overlay/charts/nope"},
		"a name that leaves":              {files: own("helmCharts: [{name: ../../base/charts/app}]"), code: rutter.CodeInvalid, says: "must not lead out"},
		"a home that leaves":              {files: own("helmGlobals: {chartHome: ../../../etc}\nhelmCharts: [{name: app}]"), code: rutter.CodeInvalid, says: "leaves the repository"},
		"a home above":                    {files: own("helmGlobals: {chartHome: ../base/charts}\nhelmCharts: [{name: app}]"), code: rutter.CodeInvalid, says: "not in or below"},
		"a home above, allowed":           {files: own("helmGlobals: {chartHome: ../base/charts}\nhelmCharts: [{name: app}]"), build: rutter.KustomizeBuild{EnableHelm: true, LoadRestrictorNone: true}, object: map[string]string{"local": "base/charts/app"}},
		"values that leave":               {files: own("helmCharts: [{name: app, valuesFile: ../secret.txt}]"), code: rutter.CodeInvalid, says: "not in or below"},
		"values out of the repository":    {files: own("helmCharts: [{name: app, valuesFile: ../../secret.txt}]"), build: rutter.KustomizeBuild{EnableHelm: true, LoadRestrictorNone: true}, code: rutter.CodeInvalid, says: "not in or below"},
		"a flag as name":                  {files: own("helmCharts: [{name: --post-renderer=x}]"), code: rutter.CodeInvalid, says: "must not start with a dash"},
		"an unknown merge":                {files: own("helmCharts: [{name: app, valuesMerge: any}]"), code: rutter.CodeInvalid, says: "valuesMerge"},
		"an object that is there already": {files: own("resources: [a.yaml]\nhelmCharts: [{name: r, repo: 'https://x'}]"), code: rutter.CodeInvalid, says: "overlay/kustomization.yaml: may not add resource with an already registered id: ConfigMap.v1.[noGrp]/r"},
		"no name":                         {files: own("helmCharts: [{repo: 'https://x'}]"), code: rutter.CodeInvalid, says: "name is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			files := rendertest.With(charted(), tt.files)
			files["overlay/a.yaml"] = configMap("r")
			files["overlay/g.yaml"] = "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: x}\nname: app\nvaluesInline: {a: 1}\n"
			files["overlay/mixed.yaml"] = files["overlay/g.yaml"] + "---\napiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: y}\n"
			files["part/kustomization.yaml"] = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nhelmCharts: [{name: app}]\n"
			files["part/charts/app/Chart.yaml"] = "name: app\n"
			build := tt.build
			if build == (rutter.KustomizeBuild{}) && tt.code == "" || tt.code == rutter.CodeInvalid && !build.EnableHelm || name == "mixed generators" {
				build.EnableHelm = true
			}
			objs, _, err := render(t, kustomize.New(), files, kustomize.Input{Path: "overlay", Options: tt.opts, Build: build, Inflate: inflated,
				KubeVersion: "1.37.0", APIVersions: []string{"c/v1"}}, record.Options{})
			if rutter.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("want %q that says %q, got %v", tt.code, tt.says, err)
			}
			if err != nil {
				return
			}
			var got []string
			var of rutter.Object
			for _, o := range objs {
				got = append(got, o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName())
				if data, _, _ := unstructured.NestedStringMap(o.Object, "data"); data["values"] != "" {
					of = o
				}
			}
			for _, want := range tt.has {
				if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+want+" ") {
					t.Errorf("no %s in %v", want, got)
				}
			}
			if of.Unstructured == nil {
				t.Fatalf("nothing was inflated: %v", got)
			}
			if strings.Contains(fmt.Sprint(of.Object), "helm-generated") {
				t.Errorf("the library's mark is left: %v", of.Object)
			}
			data, _, _ := unstructured.NestedStringMap(of.Object, "data")
			data["label"] = of.GetLabels()["l"]
			if data["octal"] != "0o17" || data["no"] != "no" || data["del"] != "\x7f" || data["text"] != "a\nb: c\n" {
				t.Errorf("texts have changed: %q", data)
			}
			for key, want := range tt.object {
				if data[key] != want {
					t.Errorf("%s is %q, want %q", key, data[key], want)
				}
			}
		})
	}
}

// TestChartPlace: objects of charts come where the library's own generator would
// put them, with the places in the chart as origins.
func TestChartPlace(t *testing.T) {
	files := rendertest.With(charted(), map[string]string{
		"base/kustomization.yaml":    "resources: [a.yaml]\nconfigMapGenerator: [{name: g, literals: [a=b]}]\ncomponents: [../late]\ngeneratorOptions: {disableNameSuffixHash: true}\nhelmCharts: [{name: app, releaseName: r}]\nsortOptions: {order: fifo}\n",
		"late/kustomization.yaml":    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [late.yaml]\n",
		"late/late.yaml":             configMap("late"),
		"overlay/kustomization.yaml": "resources: [../base]\nsortOptions: {order: fifo}\nbuildMetadata: [originAnnotations]\n",
	})
	objs, _, err := render(t, kustomize.New(), files, kustomize.Input{Path: "overlay", Build: rutter.KustomizeBuild{EnableHelm: true}, Inflate: inflated}, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objs {
		got = append(got, fmt.Sprintf("%s/%s %s:%d %s", o.GetKind(), o.GetName(), o.Origin.File, o.Origin.Line, strings.Join(strings.Fields(o.GetAnnotations()["config.kubernetes.io/origin"]), " ")))
	}
	const generator = "configuredIn: ../base/kustomization.yaml configuredBy: apiVersion: builtin kind: "
	want := []string{
		"ConfigMap/a base/a.yaml:1 path: ../base/a.yaml",
		"ConfigMap/g base/kustomization.yaml:2 " + generator + "ConfigMapGenerator",
		"ConfigMap/app base/charts/app/templates/x.yaml:1 " + generator + "HelmChartInflationGenerator",
		"Secret/app base/charts/app/templates/x.yaml:1 " + generator + "HelmChartInflationGenerator",
		"ConfigMap/late late/late.yaml:1 path: ../late/late.yaml",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
