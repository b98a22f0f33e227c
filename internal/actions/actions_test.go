package actions

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// thing is an object of a kind with name a in namespace ns, and what a text adds.
func thing(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	obj := map[string]any{}
	if text != "" {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(`{"apiVersion": "v1", "kind": "x", ` + text + `}`)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		obj = u.Object
	}
	group, name, _ := strings.Cut(kind, "/")
	meta, _ := obj["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["name"], meta["namespace"], meta["uid"] = "a", "ns", "u-1"
	obj["metadata"], obj["kind"], obj["apiVersion"] = meta, name, group+"/v1"
	return &unstructured.Unstructured{Object: obj}
}

type builtinCase struct{ kind, action, obj, params, want, no string }

// single are every built-in action, on an object where it makes sense: what it
// changes or creates. no is an object where it does not, empty where it always does.
var single = []builtinCase{
	{"apps/Deployment", "restart", `"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}`, "", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-08-01T12:00:00Z"}}}}}`, `"spec": {"paused": true}`},
	{"apps/Deployment", "pause", "", "", `{"spec":{"paused":true}}`, `"spec": {"paused": true}`},
	{"apps/Deployment", "resume", `"spec": {"paused": true}`, "", `{"spec":{"paused":false}}`, `"spec": {}`},
	{"apps/Deployment", "scale", `"spec": {"replicas": 2}`, "replicas=5", `{"spec":{"replicas":5}}`, ""},
	{"apps/StatefulSet", "restart", "", "", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-08-01T12:00:00Z"}}}}}`, ""},
	{"apps/StatefulSet", "scale", `"spec": {"replicas": 2}`, "replicas=0", `{"spec":{"replicas":0}}`, ""},
	{"apps/DaemonSet", "restart", "", "", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-08-01T12:00:00Z"}}}}}`, ""},
	{"batch/CronJob", "suspend", "", "", `{"spec":{"suspend":true}}`, `"spec": {"suspend": true}`},
	{"batch/CronJob", "resume", `"spec": {"suspend": true}`, "", `{"spec":{"suspend":false}}`, ""},
	{"batch/CronJob", "create-job", `"metadata": {"labels": {"rutter.dev/unit": "x"}}, "spec": {"schedule": "@daily", "jobTemplate": {"metadata": {"labels": {"l": "1"}, "annotations": {"x": "y"}}, "spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}}`, "",
		`+{"apiVersion":"batch/v1","kind":"Job","metadata":{"annotations":{"cronjob.kubernetes.io/instantiate":"manual","x":"y"},"labels":{"l":"1"},"name":"a-1785585600","namespace":"ns","ownerReferences":[{"apiVersion":"batch/v1","controller":true,"kind":"CronJob","name":"a","uid":"u-1"}]},"spec":{"template":{"spec":{"volumes":[{"emptyDir":{},"name":"v"}]}}}}`, ""},
	{"batch/Job", "suspend", "", "", `{"spec":{"suspend":true}}`, `"status": {"conditions": [{"type": "Complete", "status": "True"}]}`},
	{"batch/Job", "resume", `"spec": {"suspend": true}`, "", `{"spec":{"suspend":false}}`, ""},
	{"batch/Job", "terminate", `"status": {"conditions": [{"type": "Failed", "status": "False"}]}`, "", `{"spec":{"activeDeadlineSeconds":1}}`, `"status": {"conditions": [{"type": "Failed", "status": "True"}]}`},

	{"argoproj.io/AnalysisRun", "terminate", `"status": {"phase": "Running"}`, "", `{"spec":{"terminate":true}}`, `"status": {"phase": "Successful"}`},
	{"argoproj.io/Application", "toggle-auto-sync", `"spec": {"syncPolicy": {"automated": {"prune": true}}}`, "", `{"spec":{"syncPolicy":{"automated":{"enabled":false}}}}`, ""},
	{"argoproj.io/CronWorkflow", "create-workflow", `"spec": {"workflowMetadata": {"labels": {"l": "1"}}, "workflowSpec": {"entrypoint": "e"}}`, "",
		`+{"apiVersion":"argoproj.io/v1alpha1","kind":"Workflow","metadata":{"annotations":{"workflows.argoproj.io/scheduled-time":"2026-08-01T12:00:00Z"},"generateName":"a-","labels":{"l":"1","workflows.argoproj.io/cron-workflow":"a"},"namespace":"ns","ownerReferences":[{"apiVersion":"argoproj.io/v1","controller":true,"kind":"CronWorkflow","name":"a","uid":"u-1"}]},"spec":{"entrypoint":"e"}}`, ""},
	{"argoproj.io/WorkflowTemplate", "create-workflow", "", "", `+{"apiVersion":"argoproj.io/v1alpha1","kind":"Workflow","metadata":{"generateName":"a-","labels":{"workflows.argoproj.io/workflow-template":"a"},"namespace":"ns"},"spec":{"workflowTemplateRef":{"name":"a"}}}`, ""},
	{"argoproj.io/Rollout", "restart", "", "", `{"spec":{"restartAt":"2026-08-01T12:00:00Z"}}`, ""},
	{"argoproj.io/Rollout", "pause", "", "", `{"spec":{"paused":true}}`, `"spec": {"paused": true}`},
	{"argoproj.io/Rollout", "resume", `"spec": {"paused": true}, "status": {"pauseConditions": [{"reason": "CanaryPauseStep"}]}`, "", `{"spec":{"paused":null},"status":{"pauseConditions":null}}`, ""},
	{"argoproj.io/Rollout", "abort", `"status": {"currentPodHash": "2", "stableRS": "1"}`, "", `{"status":{"abort":true}}`, `"status": {"currentPodHash": "1", "stableRS": "1"}`},
	{"argoproj.io/Rollout", "retry", `"status": {"abort": true}`, "", `{"status":{"abort":false}}`, ""},
	{"argoproj.io/Rollout", "promote-full", `"status": {"currentPodHash": "2", "stableRS": "1", "pauseConditions": [{}]}`, "", `{"status":{"pauseConditions":null,"promoteFull":true}}`, `"status": {"currentPodHash": "1", "stableRS": "1"}`},
	{"argoproj.io/Rollout", "skip-current-step", `"spec": {"strategy": {"canary": {"steps": [{}, {}]}}}, "status": {"currentPodHash": "2", "stableRS": "1", "currentStepIndex": 1}`, "", `{"status":{"currentStepIndex":2}}`, `"spec": {"strategy": {"canary": {"steps": [{}]}}}, "status": {"currentPodHash": "2", "stableRS": "1", "currentStepIndex": 1}`},

	{"external-secrets.io/ExternalSecret", "refresh", "", "", `{"metadata":{"annotations":{"force-sync":"1785585600"}}}`, ""},
	{"external-secrets.io/PushSecret", "push", "", "", `{"metadata":{"annotations":{"force-sync":"1785585600"}}}`, ""},
	{"cert-manager.io/Certificate", "renew", `"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Issuing", "status": "False"}]}`, "",
		`{"status":{"conditions":[{"status":"True","type":"Ready"},{"lastTransitionTime":"2026-08-01T12:00:00Z","message":"Asked for by rutter app actions run","reason":"ManuallyTriggered","status":"True","type":"Issuing"}]}}`, `"status": {"conditions": [{"type": "Issuing", "status": "True"}]}`},
	{"core.strimzi.io/StrimziPodSet", "rolling-update", "", "", `{"metadata":{"annotations":{"strimzi.io/manual-rolling-update":"true"}}}`, `"metadata": {"annotations": {"strimzi.io/manual-rolling-update": "true"}}`},
	{"k8s.mariadb.com/MariaDB", "suspend", "", "", `{"spec":{"suspend":true}}`, `"spec": {"suspend": true}`},
	{"k8s.mariadb.com/MariaDB", "resume", `"spec": {"suspend": true}`, "", `{"spec":{"suspend":false}}`, ""},
	{"promoter.argoproj.io/PullRequest", "merge", `"spec": {"state": "open"}`, "", `{"spec":{"state":"merged"}}`, `"spec": {"state": "closed"}`},
	{"psmdb.percona.com/PerconaServerMongoDB", "unpause", `"spec": {"pause": true}`, "", `{"spec":{"pause":false}}`, `"spec": {}`},
	{"postgresql.cnpg.io/Cluster", "restart", "", "", `{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-08-01T12:00:00Z"}}}`, ""},
	{"postgresql.cnpg.io/Cluster", "reload", "", "", `{"metadata":{"annotations":{"cnpg.io/reloadedAt":"2026-08-01T12:00:00Z"}}}`, ""},
	{"postgresql.cnpg.io/Cluster", "suspend", "", "", `{"metadata":{"annotations":{"cnpg.io/hibernation":"on"}}}`, `"metadata": {"annotations": {"cnpg.io/hibernation": "on"}}`},
	{"postgresql.cnpg.io/Cluster", "resume", `"metadata": {"annotations": {"cnpg.io/hibernation": "on"}}`, "", `{"metadata":{"annotations":{"cnpg.io/hibernation":"off"}}}`, ""},
	{"postgresql.cnpg.io/Cluster", "promote", `"status": {"instanceNames": ["a-1", "a-2"], "currentPrimary": "a-1"}`, "instance=a-2", `{"status":{"phase":"Switchover in progress","phaseReason":"Switching over to a-2","targetPrimary":"a-2","targetPrimaryTimestamp":"2026-08-01T12:00:00.000000Z"}}`, ""},
	{"keda.sh/ScaledObject", "pause", "", "", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`, `"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}`},
	{"keda.sh/ScaledObject", "paused-replicas", "", "replicas=2", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":"2"}}}`, ""},
	{"keda.sh/ScaledObject", "resume", `"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": "2"}}`, "", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused-replicas":null}}}`, ""},
	{"keda.sh/ScaledJob", "pause", "", "", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`, `"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}`},
	{"keda.sh/ScaledJob", "resume", `"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}`, "", `{"metadata":{"annotations":{"autoscaling.keda.sh/paused":null}}}`, ""},

	{"numaflow.numaproj.io/Pipeline", "pause", "", "", `{"spec":{"lifecycle":{"desiredPhase":"Paused"}}}`, `"metadata": {"ownerReferences": [{"kind": "PipelineRollout"}]}`},
	{"numaflow.numaproj.io/Pipeline", "unpause-fast", `"spec": {"lifecycle": {"desiredPhase": "Paused"}}`, "", `{"metadata":{"annotations":{"numaflow.numaproj.io/resume-strategy":"fast"}},"spec":{"lifecycle":{"desiredPhase":"Running"}}}`, `"metadata": {"ownerReferences": [{"kind": "PipelineRollout"}]}, "spec": {"lifecycle": {"desiredPhase": "Paused"}}`},
	{"numaflow.numaproj.io/InterStepBufferService", "force-promote", `"metadata": {"labels": {"numaplane.numaproj.io/upgrade-state": "in-progress"}}`, "", `{"metadata":{"labels":{"numaplane.numaproj.io/force-promote":"true"}}}`, ""},
	{"numaplane.numaproj.io/PipelineRollout", "allow-data-loss", `"status": {"upgradeInProgress": "PipelinePauseAndDrain"}`, "", `{"metadata":{"annotations":{"numaplane.numaproj.io/allow-data-loss":"true"}}}`, ""},
	{"numaplane.numaproj.io/PipelineRollout", "disallow-data-loss", `"metadata": {"annotations": {"numaplane.numaproj.io/allow-data-loss": "true"}}`, "", `{"metadata":{"annotations":{"numaplane.numaproj.io/allow-data-loss":null}}}`, ""},
}

// families are the cases of kinds that have the same actions.
func families() (cases []builtinCase) {
	for _, kind := range []string{"helm.toolkit.fluxcd.io/HelmRelease", "kustomize.toolkit.fluxcd.io/Kustomization", "image.toolkit.fluxcd.io/ImageRepository", "image.toolkit.fluxcd.io/ImageUpdateAutomation", "notification.toolkit.fluxcd.io/Receiver",
		"notification.toolkit.fluxcd.io/Alert", "notification.toolkit.fluxcd.io/Provider", "source.toolkit.fluxcd.io/Bucket", "source.toolkit.fluxcd.io/GitRepository", "source.toolkit.fluxcd.io/HelmChart", "source.toolkit.fluxcd.io/HelmRepository", "source.toolkit.fluxcd.io/OCIRepository"} {
		add := func(action, obj, want, no string) {
			cases = append(cases, builtinCase{kind, action, obj, "", want, no})
		}
		add("suspend", "", `{"spec":{"suspend":true}}`, `"spec": {"suspend": true}`)
		add("resume", `"spec": {"suspend": true}`, `{"spec":{"suspend":false}}`, `"spec": {}`)
		if !strings.HasSuffix(kind, "/Alert") && !strings.HasSuffix(kind, "/Provider") {
			add("reconcile", "", `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"2026-08-01T12:00:00Z"}}}`, `"spec": {"suspend": true}`)
		}
	}
	for _, kind := range []string{"numaflow.numaproj.io/MonoVertex", "numaflow.numaproj.io/Pipeline", "numaplane.numaproj.io/MonoVertexRollout", "numaplane.numaproj.io/PipelineRollout"} {
		wrap := func(body string) string { return `"spec":{` + body + `}` }
		meta := `"metadata":{"annotations":{"numaflow.numaproj.io/resume-strategy":"%"}}`
		resumed := `{` + meta + `,` + wrap(`"lifecycle":{"desiredPhase":"Running"}`) + `}`
		if _, in, ok := strings.Cut(kind, "numaplane.numaproj.io/"); ok {
			field := map[string]string{"MonoVertexRollout": "monoVertex", "PipelineRollout": "pipeline"}[in]
			wrap = func(body string) string { return `"spec":{"` + field + `":{"spec":{` + body + `}}}` }
			resumed = `{"spec":{"` + field + `":{` + meta + `,"spec":{"lifecycle":{"desiredPhase":"Running"}}}}}`
		} else {
			cases = append(cases, builtinCase{kind, "force-promote", `"metadata": {"labels": {"numaplane.numaproj.io/upgrade-state": "trial"}}`, "", `{"metadata":{"labels":{"numaplane.numaproj.io/force-promote":"true"}}}`, `"metadata": {}`})
		}
		paused := wrap(`"lifecycle":{"desiredPhase":"Paused"}`)
		for action, want := range map[string]string{"unpause-fast": strings.Replace(resumed, "%", "fast", 1), "unpause-gradual": strings.Replace(resumed, "%", "slow", 1)} {
			cases = append(cases, builtinCase{kind, action, paused, "", want, `"spec": {}`})
		}
		cases = append(cases, builtinCase{kind, "pause", "", "", `{` + paused + `}`, paused})
	}
	return cases
}

func TestBuiltin(t *testing.T) {
	book, errs := NewBook(nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	seen := map[string]bool{}
	for _, tc := range slices.Concat(single, families()) {
		t.Run(tc.kind+"/"+tc.action, func(t *testing.T) {
			seen[tc.kind+"/"+tc.action] = true
			obj := thing(t, tc.kind, tc.obj)
			before, params := obj.DeepCopy(), Params{}
			if name, value, ok := strings.Cut(tc.params, "="); ok {
				params[name] = value
			}
			changes, err := book.Run(obj, tc.action, params, noon)
			if err != nil {
				t.Fatal(err)
			}
			if got := textOf(t, changes); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
			if !cmp.Equal(obj, before) {
				t.Error("the live object was changed")
			}
			if tc.no == "" {
				return
			}
			if _, err := book.Run(thing(t, tc.kind, tc.no), tc.action, params, noon); err == nil || !strings.Contains(err.Error(), "is disabled") {
				t.Errorf("%v, want it disabled for %s", err, tc.no)
			}
		})
	}
	for kind, list := range builtins() {
		for _, b := range list {
			if !seen[kind+"/"+b.name] {
				t.Errorf("%s/%s has no case", kind, b.name)
			}
		}
	}
}

// textOf is what changes are as JSON; what is created has a + before it.
func textOf(t *testing.T, changes []Change) string {
	t.Helper()
	texts := make([]string, 0, len(changes))
	for _, c := range changes {
		v, mark := any(c.Patch), ""
		if c.Create {
			v, mark = c.Object.Object, "+"
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, mark+string(data))
	}
	return strings.Join(texts, "\n")
}

func TestBuiltinRefuses(t *testing.T) {
	book, _ := NewBook(nil)
	postgres := `"status": {"instanceNames": ["a-1", "a-2"], "currentPrimary": "a-1"}`
	for name, tc := range map[string]struct {
		kind, obj, action string
		params            Params
		code              rutter.Code
		err               string
	}{
		"no such action":    {"apps/Deployment", "", "explode", nil, rutter.CodeNotFound, `Deployment ns/a has no action "explode": it has pause, restart, resume, scale`},
		"none at all":       {"example.com/Thing", "", "restart", nil, rutter.CodeNotFound, "it has none"},
		"no number":         {"apps/Deployment", "", "scale", nil, rutter.CodeInvalid, "--param replicas=3"},
		"a negative number": {"apps/Deployment", "", "scale", Params{"replicas": "-1"}, rutter.CodeInvalid, "whole number"},
		"another parameter": {"apps/Deployment", "", "restart", Params{"x": "1"}, rutter.CodeInvalid, `no parameter "x"`},
		"no such instance":  {"postgresql.cnpg.io/Cluster", postgres, "promote", Params{"instance": "b"}, rutter.CodeInvalid, "status.instanceNames"},
		"the primary":       {"postgresql.cnpg.io/Cluster", postgres, "promote", Params{"instance": "a-1"}, rutter.CodeInvalid, "not the primary"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := book.Run(thing(t, tc.kind, tc.obj), tc.action, tc.params, noon); rutter.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%v, want %q", err, tc.err)
			}
		})
	}
}

func names(list []Action) []string {
	var out []string
	for _, a := range list {
		if out = append(out, a.Name); a.Disabled {
			out[len(out)-1] += "-"
		}
	}
	return out
}

// TestOwn: an operator's actions, as they are written into argocd-cm.
func TestOwn(t *testing.T) {
	const discovery = `actions = {} actions["grow"] = {["disabled"] = obj.spec.replicas > 3, displayName = "Grow", params = {{name = "by"}}} actions["copy"] = {} actions["lost"] = {} return actions`
	scripts := []rutter.ActionScripts{{Group: "apps", Kind: "Deployment", Source: "cm: deployment", Discovery: discovery, Run: map[string]string{
		"grow": `if obj.metadata.annotations == nil then obj.metadata.annotations = {} end
			obj.spec.replicas = obj.spec.replicas + tonumber(actionParams["by"] or "1") obj.spec.gone = nil return obj`,
		"copy": `local made = {apiVersion = "v1", kind = "ConfigMap", metadata = {name = obj.metadata.name .. "-copy"}, data = obj.spec.template.none, empty = obj.spec.empty}
			obj.metadata.labels["copied"] = "yes" return {{operation = "create", resource = made}, {operation = "patch", resource = obj}}`,
	}}}
	const spec = `"metadata": {"labels": {"l": "1"}}, "spec": {"replicas": 2, "gone": "x", "empty": {}, "list": [1, 2.5], "template": {"none": {}}}`
	book, errs := NewBook(scripts)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	obj := thing(t, "apps/Deployment", spec)
	list, err := book.List(obj, noon)
	if err != nil || !slices.Equal(names(list), []string{"copy", "grow", "lost"}) || list[1].DisplayName != "Grow" || len(list[1].Params) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if list, _ := book.List(thing(t, "apps/Deployment", `"spec": {"replicas": 4}`), noon); !slices.Equal(names(list), []string{"copy", "grow-", "lost"}) {
		t.Errorf("%v", names(list))
	}
	for action, want := range map[string]string{
		"grow": `{"spec":{"gone":null,"replicas":5}}`,
		"copy": `+{"apiVersion":"v1","data":{},"empty":{},"kind":"ConfigMap","metadata":{"name":"a-copy","namespace":"ns"}}` + "\n" + `{"metadata":{"labels":{"copied":"yes"}}}`,
	} {
		changes, err := book.Run(obj, action, Params{"by": "3"}, noon)
		if err != nil || textOf(t, changes) != want {
			t.Errorf("%s: %s, %v; want %s", action, textOf(t, changes), err, want)
		}
	}
	if _, err := book.Run(obj, "lost", nil, noon); err == nil || !strings.Contains(err.Error(), "no action.lua") {
		t.Error(err)
	}
	scripts[0].MergeBuiltin = true
	book, _ = NewBook(scripts)
	if list, err := book.List(obj, noon); err != nil || !slices.Equal(names(list), []string{"copy", "grow", "pause", "restart", "resume-", "scale"}) {
		t.Errorf("%v, %v", names(list), err)
	}
}

// TestOwnRefuses: scripts that are wrong are named, and none runs for ever or fills the memory.
func TestOwnRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ discovery, run, err string }{
		"discovery does not parse": {"return {", "return obj", "cm: discovery.lua"},
		"discovery fails":          {`error("no luck")`, "return obj", "no luck"},
		"discovery of a text":      {`return "x"`, "return obj", "returns no table"},
		"discovery without end":    {`while true do end`, "return obj", "instructions"},
		"action does not parse":    {`return {go = {}}`, "return {", "cm: go: action.lua"},
		"action without end":       {`return {go = {}}`, "while true do end", "instructions"},
		"memory":                   {`return {go = {}}`, `local s = "xxxxxxxx" while true do s = s .. s end`, "bytes of text"},
		"a table in itself":        {`return {go = {}}`, `obj.self = obj return obj`, "lies in itself"},
		"tables by doubling":       {`return {go = {}}`, `local t = {"x"} for i = 1, 50 do t = {t, t} end obj.t = t return obj`, "more than an object may be"},
		"a function":               {`return {go = {}}`, `obj.f = function() end return obj`, "a function"},
		"nothing":                  {`return {go = {}}`, `x = 1`, "neither an object nor a list"},
		"a text":                   {`return {go = {}}`, `return "x"`, "neither an object nor a list"},
		"another object":           {`return {go = {}}`, `obj.metadata.name = "b" return obj`, "the object that it is given only"},
		"no whole object":          {`return {go = {}}`, `return {{operation = "create", resource = {kind = "Job"}}}`, "no whole object"},
		"no name":                  {`return {go = {}}`, `return {{operation = "create", resource = {apiVersion = "v1", kind = "Pod"}}}`, "metadata.generateName"},
		"another operation":        {`return {go = {}}`, `return {{operation = "delete", resource = obj}}`, `"create" or "patch"`},
	} {
		t.Run(name, func(t *testing.T) {
			book, _ := NewBook([]rutter.ActionScripts{{Group: "example.com", Kind: "Thing", Source: "cm", Discovery: tc.discovery, Run: map[string]string{"go": tc.run}}})
			changes, err := book.Run(thing(t, "example.com/Thing", `"spec": {}`), "go", nil, noon)
			if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%v, %v; want %q", changes, err, tc.err)
			}
		})
	}
}

// TestDifference: the patch makes before into after, whatever they are.
func TestDifference(t *testing.T) {
	for name, tc := range map[string]struct{ before, after, want map[string]any }{
		"nothing":         {map[string]any{"a": int64(1)}, map[string]any{"a": int64(1)}, map[string]any{}},
		"taken away":      {map[string]any{"a": int64(1)}, map[string]any{}, map[string]any{"a": nil}},
		"deep":            {map[string]any{"m": map[string]any{"a": "1", "b": "2"}}, map[string]any{"m": map[string]any{"a": "3"}}, map[string]any{"m": map[string]any{"a": "3", "b": nil}}},
		"emptied by Lua":  {map[string]any{"m": map[string]any{"a": "1"}}, map[string]any{"m": []any{}}, map[string]any{"m": map[string]any{"a": nil}}},
		"an empty list":   {map[string]any{}, map[string]any{"m": []any{}}, map[string]any{}},
		"a list":          {map[string]any{"l": []any{"a"}}, map[string]any{"l": []any{"a", "b"}}, map[string]any{"l": []any{"a", "b"}}},
		"an emptied list": {map[string]any{"l": []any{"a"}}, map[string]any{"l": []any{}}, map[string]any{"l": []any{}}},
	} {
		if got := difference(maps.Clone(tc.before), tc.after); !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
