package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/internal/cli"
)

// diffRun compares two texts by rutter diff.
type diffRun struct {
	desired, live, schema, config, app string
	args                               []string
}

func (d diffRun) run(t *testing.T) (code int, out, stderr string) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"diff"}
	for _, f := range []struct{ flag, text string }{
		{"desired", d.desired}, {"live", d.live}, {"schema", d.schema}, {"config", d.config}, {"app", d.app},
	} {
		if f.text == "" && f.flag != "desired" && f.flag != "live" {
			continue
		}
		path := filepath.Join(dir, f.flag+".yaml")
		if err := os.WriteFile(path, []byte(f.text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--"+f.flag, path)
	}
	var stdout, errs bytes.Buffer
	code = cli.Main(t.Context(), append(args, d.args...), strings.NewReader(""), &stdout, &errs, "test", cli.Deps{})
	return code, stdout.String(), strings.ReplaceAll(errs.String(), dir+string(filepath.Separator), "")
}

const (
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ns}\n"
	crd        = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              items:
                type: array
                items: {type: object, properties: {a: {type: string}, b: {type: integer, default: 7}}}
              named:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, properties: {name: {type: string}, v: {type: string}}}
`
	widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w, namespace: ns}\n"
)

// Each case is one difference, or what only looks like one.
func TestDiff(t *testing.T) {
	t.Parallel()
	lastApplied := func(spec string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: ns\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: '" + spec + "'}\n"
	}
	for _, tt := range []struct {
		reason string
		run    diffRun
		want   []string // paths
	}{
		{"the same", diffRun{desired: deployment + "spec: {replicas: 1}", live: deployment + "spec: {replicas: 1}"}, nil},
		{"a field", diffRun{desired: deployment + "spec: {replicas: 1}", live: deployment + "spec: {replicas: 2}"}, []string{".spec.replicas"}},
		{"a number's other form", diffRun{desired: deployment + "spec: {replicas: 1.0}", live: deployment + "spec: {replicas: 1}"}, nil},
		{
			"defaults, quantities, empties and nulls",
			diffRun{
				desired: deployment + `spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}, creationTimestamp: null}, spec: {hostNetwork: false, nodeSelector: {}, terminationGracePeriodSeconds: null,
  containers: [{name: c, image: i, env: [{name: E, value: ""}], args: [], ports: [{containerPort: 80}], resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5}}}]}}}
status: {}
`,
				live: deployment + `spec: {progressDeadlineSeconds: 600, replicas: 1, selector: {matchLabels: {a: b}}, strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Always, terminationGracePeriodSeconds: 30,
  containers: [{name: c, image: i, imagePullPolicy: Always, env: [{name: E}], ports: [{containerPort: 80, protocol: TCP}], resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 500m}}}]}}}
status: {replicas: 1}
`,
			}, nil,
		},
		{"an empty that is not empty live", diffRun{
			desired: deployment + "spec: {paused: false, template: {spec: {hostNetwork: false, nodeSelector: {}}}}",
			live:    deployment + "spec: {paused: true, template: {spec: {hostNetwork: true, nodeSelector: {a: b}}}}",
		}, []string{".spec.paused", ".spec.template.spec.hostNetwork", ".spec.template.spec.nodeSelector.a"}},
		{"a pointer to nothing is something", diffRun{
			desired: deployment + "spec: {template: {spec: {automountServiceAccountToken: false}}}", live: deployment + "spec: {template: {spec: {}}}",
		}, []string{".spec.template.spec.automountServiceAccountToken"}},
		{"an injected container is another's, its change of ours is not", diffRun{
			desired: deployment + "spec: {template: {spec: {containers: [{name: a, image: i}]}}}",
			live:    deployment + "spec: {template: {spec: {containers: [{name: proxy, image: p}, {name: a, image: j}]}}}",
		}, []string{`.spec.template.spec.containers[name="a"].image`}},
		{"an atomic list", diffRun{
			desired: deployment + "spec: {template: {spec: {tolerations: [{key: a, operator: Exists}]}}}",
			live:    deployment + "spec: {template: {spec: {tolerations: [{key: a, operator: Exists}, {key: b, operator: Exists}]}}}",
		}, []string{".spec.template.spec.tolerations"}},
		{"an atomic map", diffRun{
			desired: deployment + "spec: {selector: {matchLabels: {a: b}}}", live: deployment + "spec: {selector: {matchLabels: {a: b, c: d}}}",
		}, []string{".spec.selector.matchLabels.c"}},
		{"removed since kubectl applied it", diffRun{
			desired: deployment + "spec: {replicas: 1}",
			live:    lastApplied(`{"spec":{"replicas":1,"paused":true,"template":{"spec":{"containers":[{"name":"a"},{"name":"old"}]}}}}`) + "spec: {replicas: 1, paused: true, template: {spec: {containers: [{name: a}, {name: old}]}}}",
		}, []string{".spec.paused", ".spec.template"}},
		{"an element removed since", diffRun{
			desired: deployment + "spec: {template: {spec: {containers: [{name: a}]}}}",
			live:    lastApplied(`{"spec":{"template":{"spec":{"containers":[{"name":"a"},{"name":"old"}]}}}}`) + "spec: {template: {spec: {containers: [{name: a}, {name: old}, {name: injected}]}}}",
		}, []string{`.spec.template.spec.containers[name="old"]`}},
		{"what nobody applied is another's", diffRun{
			desired: deployment + "spec: {replicas: 1}", live: lastApplied(`{"spec":{"replicas":1}}`) + "spec: {replicas: 1, paused: true}",
		}, nil},
		{"marks of tools", diffRun{
			desired: deployment, live: `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: ns
  labels: {rutter.dev/unit: x, kustomize.toolkit.fluxcd.io/name: y}
  annotations: {argocd.argoproj.io/tracking-id: z}
  managedFields:
  - {manager: argocd-controller, operation: Apply, fieldsV1: {"f:metadata": {"f:annotations": {"f:argocd.argoproj.io/tracking-id": {}}}}}
  - {manager: kustomize-controller, operation: Apply, fieldsV1: {"f:metadata": {"f:labels": {"f:kustomize.toolkit.fluxcd.io/name": {}}}}}
  - {manager: rutter, operation: Apply, fieldsV1: {"f:metadata": {"f:labels": {"f:rutter.dev/unit": {}}}}}
`,
		}, nil},
		{"a service's allocations", diffRun{
			desired: "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80, targetPort: http}]}",
			live:    "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: ns}\nspec: {clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], type: ClusterIP, ports: [{port: 80, protocol: TCP, targetPort: http, nodePort: 30000}]}",
		}, nil},
		{"stringData", diffRun{
			desired: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\ndata: {c: null}", live: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ntype: Opaque\ndata: {a: Yg==}",
		}, nil},
		{"a file and itself", diffRun{
			desired: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n---\n" + widget, live: "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n---\n" + widget,
		}, nil},
		{"empty rules", diffRun{
			desired: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: []", live: "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: null",
		}, nil},
		{"an autoscaler beside it", diffRun{
			desired: deployment + "spec: {replicas: 1, paused: true}\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: ns}\nspec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}",
			live:    deployment + "spec: {replicas: 5, paused: true}\n---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: ns}\nspec: {maxReplicas: 3, minReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}",
		}, nil},
		{"a custom resource nothing is known of", diffRun{
			desired: widget + "spec: {a: 1, list: [x]}", live: widget + "spec: {a: 1, defaulted: 2, list: [x]}\nstatus: {x: y}",
		}, nil},
		{"its lists as somebody's ownership tells", diffRun{
			desired: widget + "spec: {list: [{name: a, v: 1}], set: [b, a]}",
			live: `apiVersion: example.com/v1
kind: Widget
metadata: {name: w, namespace: ns, managedFields: [{manager: operator, operation: Update, fieldsV1: {"f:spec": {"f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}, "f:set": {"v:\"x\"": {}}}}}]}
spec: {list: [{name: x}, {name: a, v: 1}], set: [x, b, a]}
`,
		}, nil},
		{"its quantities are text", diffRun{desired: widget + "spec: {limits: {cpu: 1000m}}", live: widget + "spec: {limits: {cpu: \"1\"}}"}, []string{".spec.limits.cpu"}},
		{"its defaults by a schema", diffRun{schema: crd,
			desired: widget + "spec: {items: [{a: x}], named: [{name: n, v: x}]}", live: widget + "spec: {items: [{a: x, b: 7}], named: [{name: other}, {name: n, v: x}]}",
		}, nil},
		{"and what is none", diffRun{schema: crd,
			desired: widget + "spec: {items: [{a: x}]}", live: widget + "spec: {items: [{a: x, b: 8}]}",
		}, []string{".spec.items[0].b"}},
		{"missing and extra", diffRun{
			desired: widget + "---\n" + deployment, live: widget + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}",
		}, []string{"missing Deployment web", "extra ConfigMap c"}},
		{"extra, and said to be no matter", diffRun{
			live: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {argocd.argoproj.io/compare-options: IgnoreExtraneous}}",
		}, nil},
		{"a list as kubectl prints it", diffRun{
			desired: deployment, live: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns}}",
		}, nil},
		{"system rules", diffRun{
			config: `apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm}
data:
  resource.customizations.ignoreDifferences.apps_Deployment: |
    jsonPointers: [/spec/replicas]
    jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == "a") | .image']
  resource.customizations.ignoreDifferences.all: |
    managedFieldsManagers: [tuner]
`,
			desired: deployment + "spec: {replicas: 1, paused: true, template: {spec: {containers: [{name: a, image: x}]}}}",
			live: `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: ns, managedFields: [{manager: tuner, operation: Update, fieldsV1: {"f:spec": {"f:paused": {}}}}]}
spec: {replicas: 3, paused: false, template: {spec: {containers: [{name: proxy}, {name: a, image: y}]}}}
`,
		}, nil},
		{"status, where it is asked for", diffRun{
			config:  "apiVersion: v1\nkind: ConfigMap\ndata: {resource.compareoptions: 'ignoreResourceStatusField: none'}\nmetadata: {name: c}",
			desired: widget + "status: {a: 1}", live: widget + "status: {a: 2}",
		}, []string{".status.a"}},
		{"excluded kinds", diffRun{
			config:  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  resource.exclusions: |\n    - apiGroups: ['example.*']\n      kinds: [Widget]\n",
			desired: widget, live: "",
		}, nil},
		{"hooks", diffRun{
			desired: "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, annotations: {argocd.argoproj.io/hook: PreSync}}\nspec: {}",
		}, nil},
		{"a lease that is asked about", diffRun{
			desired: "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: l}\nspec: {holderIdentity: a}", live: "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: l}\nspec: {holderIdentity: b}",
		}, []string{".spec.holderIdentity"}},
		{"known types", diffRun{
			config:  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  resource.customizations.knownTypeFields.example.com_Widget: |\n    - {field: spec.pod, type: core/v1/PodSpec}\n    - {field: spec.list.every, type: meta/v1/Duration}\n",
			desired: widget + "spec: {pod: {hostNetwork: false, containers: [{name: a, resources: {limits: {cpu: 1000m}}}]}, list: [{every: 60s}]}",
			live:    widget + "spec: {pod: {containers: [{name: a, resources: {limits: {cpu: 1}}}]}, list: [{every: 1m0s}]}",
		}, nil},
		{"an Application's rules", diffRun{
			app:     "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {project: default, destination: {name: x}, source: {repoURL: https://x, path: p}, ignoreDifferences: [{group: apps, kind: Deployment, jqPathExpressions: [.spec.replicas]}]}",
			desired: deployment + "spec: {replicas: 1}", live: deployment + "spec: {replicas: 2}",
		}, nil},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			tt.run.args = append(tt.run.args, "-o", "json")
			code, out, stderr := tt.run.run(t)
			var got struct {
				Modified    bool `json:"modified"`
				Differences []struct {
					Kind  string `json:"kind"`
					Name  string `json:"name"`
					State string `json:"state"`
					Path  string `json:"path"`
				} `json:"differences"`
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v: %s%s", err, out, stderr)
			}
			var paths []string
			for _, d := range got.Differences {
				if d.State != "changed" {
					d.Path = d.State + " " + d.Kind + " " + d.Name
				}
				paths = append(paths, d.Path)
			}
			if d := cmp.Diff(tt.want, paths); d != "" {
				t.Errorf("%s\n%s", d, out)
			}
			if want := len(tt.want) > 0; got.Modified != want || (code == 1) != want || code > 1 {
				t.Errorf("modified %v, exit code %d: %s", got.Modified, code, stderr)
			}
		})
	}
}

func TestDiffErrors(t *testing.T) {
	t.Parallel()
	config := func(data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: argocd-cm}\ndata:\n" + data
	}
	for _, tt := range []struct {
		run  diffRun
		want string
	}{
		{diffRun{desired: "a: b"}, "desired.yaml: document 1 (line 1): it is no object"},
		{diffRun{desired: widget + "---\n\n---\nkind: X"}, "desired.yaml: document 3"},
		{diffRun{desired: widget, live: "apiVersion: v1\napiVersion: v1\n"}, "live.yaml: document 1 (line 1)"},
		{diffRun{desired: "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .canary }}\n"}, "a map stands where a key has to"},
		{diffRun{args: []string{"-o", "yaml"}}, `-o "yaml": use text or json`},
		{diffRun{args: []string{"--live", "-", "--desired", "-"}}, "only one of the files"},
		{diffRun{schema: "paths: {apis/apps/v1: {serverRelativeURL: /openapi/v3/apis/apps/v1}}"}, "schema.yaml: it is the index of a server's OpenAPI documents"},
		{diffRun{schema: "a: b"}, "schema.yaml: it holds neither"},
		{diffRun{config: widget}, "config.yaml holds no ConfigMap"},
		{diffRun{app: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}"}, "app.yaml holds no Application"},
		{diffRun{config: config("  resource.customizations.ignoreDifferences.apps_Deployment: |\n    jsonPointers:\n    - /a\n    - b\n")},
			`resource.customizations.ignoreDifferences.apps_Deployment: line 3: jsonPointers: "b" is not a JSON pointer`},
		{diffRun{config: config("  resource.customizations.ignoreDifferences.all: |\n    jqPathExpressions: ['.a |']\n")}, "all: line 1: jqPathExpressions"},
		{diffRun{config: config("  resource.customizations.ignoreDifferences.all: |\n    jqPaths: ['.a']\n")}, "all: line 1: field jqPaths not found"},
		{diffRun{config: config("  resource.customizations: |\n    apps/Deployment:\n      ignoreDifferences: |\n        jsonPointers:\n        - a\n")}, "line 4: jsonPointers"},
		{diffRun{config: config("  resource.customizations.nonsense.apps_Deployment: x\n")}, `"nonsense" is no customisation`},
		{diffRun{config: config("  resource.compareoptions: |\n    ignoreResourceStatusField: sometimes\n")}, `resource.compareoptions: ignoreResourceStatusField "sometimes"`},
		{diffRun{config: config("  resource.exclusions: |\n    - kinds: ['[']\n")}, "resource.exclusions[0]"},
		{diffRun{config: config("  resource.customizations.knownTypeFields.a_B: |\n    - {field: a, type: x}\n")}, `type "x" is not known`},
	} {
		code, out, stderr := tt.run.run(t)
		if code != 2 || out != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("exit code %d, want 2 and %q:\n%s%s", code, tt.want, out, stderr)
		}
	}
}

func TestDiffText(t *testing.T) {
	t.Parallel()
	code, out, _ := diffRun{
		desired: deployment + "spec: {replicas: 1}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData: {a: canary-1}\n---\n" + widget,
		live: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ns, managedFields: [{manager: kubectl-edit, operation: Update, fieldsV1: {\"f:spec\": {\"f:replicas\": {}}}}]}\nspec: {replicas: 2}\n" +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\ndata: {a: Y2FuYXJ5LTI=}\n",
	}.run(t)
	want := `Deployment ns/web (apps/v1): changed
  .spec.replicas
    ours: 1
    live: 2   (written by kubectl-edit)
Secret ns/s (v1): changed
  .data.a
    ours: "++++++++"
    live: "++++++++++++"
Widget ns/w (example.com/v1): missing
`
	if d := cmp.Diff(want, out); code != 1 || d != "" {
		t.Errorf("exit code %d\n%s", code, d)
	}
}
