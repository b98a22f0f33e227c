package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/actions"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
)

const cronJob = `apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  suspend: true
  jobTemplate:
    metadata: {labels: {made-of: nightly}}
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: example.com/c}]
          volumes: [{name: v, emptyDir: {}}]
`

// TestActions has built-in actions and an operator's own done to objects of an
// Application: they change what Git does not declare, and so nothing is out of sync; what
// the project does not permit, and what is not the Application's, is refused.
func TestActions(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, app := w.alpha.namespace(t, "acted"), unique("acted")
	r := w.repo(t, "acted", tree{"app/web.yaml": deployment("web", 1), "app/nightly.yaml": cronJob, "app/c.yaml": configMap("c", "1") + "---\n" + configMap("d", "1")})
	w.create(t, application(app, "app", ""), vars{"NS": ns, "REPO": r.url})
	w.awaitSynced(t, app, "")
	key := "resource.customizations.actions._ConfigMap"
	w.settings(t.Context(), t, map[string]*string{key: new(`discovery.lua: |
  return {note = {disabled = obj.data.note ~= nil}, keep = {}}
definitions:
- name: note
  action.lua: |
    obj.data.note = actionParams.text
    return obj
- name: keep
  action.lua: |
    return {{operation = "create", resource = {apiVersion = "v1", kind = "ConfigMap", metadata = {generateName = "kept-", labels = obj.metadata.labels}, data = obj.data}}}
`)})
	t.Cleanup(func() { w.settings(context.Background(), t, map[string]*string{key: nil}) })
	run := func(which actions.Which, action string, params actions.Params, all bool) ([]actions.Done, error) {
		return daemon.RunAction(t.Context(), daemon.ActionConfig{REST: w.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}, Which: which}, action, params, all)
	}
	must := func(which actions.Which, action string, params actions.Params, want string) {
		t.Helper()
		done, err := run(which, action, params, false)
		if err != nil || len(done) != 1 || done[0].What != want {
			t.Fatalf("%s: %+v, %v", action, done, err)
		}
	}
	wantOffers(t, w, app)

	must(actions.Which{Kind: "Deployment"}, "restart", nil, "changed")
	web := get(t, w.alpha, ns, "web", &appsv1.Deployment{})
	if web.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Errorf("the template has no time of a restart: %v", web.Spec.Template.Annotations)
	}
	must(actions.Which{Kind: "CronJob", Name: "nightly"}, "create-job", nil, "created")
	wantJob(t, w, ns)
	must(actions.Which{Kind: "ConfigMap", Name: "c"}, "note", actions.Params{"text": "by hand"}, "changed")
	if c := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}); c.Data["note"] != "by hand" || c.Data["value"] != "1" {
		t.Errorf("%v", c.Data)
	}
	must(actions.Which{Kind: "ConfigMap", Name: "d"}, "keep", nil, "created")

	for name, tc := range map[string]struct {
		which  actions.Which
		action string
		code   rutter.Code
		err    string
	}{
		"disabled":       {actions.Which{Kind: "ConfigMap", Name: "c"}, "note", rutter.CodeInvalid, "is disabled"},
		"two of them":    {actions.Which{Kind: "ConfigMap"}, "keep", rutter.CodeInvalid, "--all"},
		"none of them":   {actions.Which{Kind: "Secret"}, "keep", rutter.CodeNotFound, "--kind Secret"},
		"no such action": {actions.Which{Kind: "Deployment"}, "explode", rutter.CodeNotFound, "it has pause, restart"},
	} {
		if done, err := run(tc.which, tc.action, nil, false); rutter.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.err) || len(done) > 0 {
			t.Errorf("%s: %v, %v; want %q", name, done, err, tc.err)
		}
	}
	// Nothing of it is drift, nothing is pruned, and the next commit keeps it.
	commit := r.push(t, tree{"app/c.yaml": configMap("c", "2") + "---\n" + configMap("d", "1")})
	w.awaitSynced(t, app, commit)
	if c := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}); c.Data["note"] != "by hand" || c.Data["value"] != "2" {
		t.Errorf("after a sync: %v", c.Data)
	}
	var kept corev1.ConfigMapList
	if err := w.alpha.client.List(t.Context(), &kept, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range kept.Items {
		found = found || strings.HasPrefix(c.Name, "kept-") && c.Data["value"] == "1" && c.Labels[rutter.LabelUnit] == ""
	}
	if !found {
		t.Error("what an action created is gone, or has our mark")
	}
}

// wantOffers wants the actions of each object to be listed.
func wantOffers(t *testing.T, w *world, app string) {
	t.Helper()
	offers, err := daemon.Actions(t.Context(), daemon.ActionConfig{REST: w.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}})
	if err != nil || len(offers.Problems) > 0 {
		t.Fatal(offers.Problems, err)
	}
	wantCommand(t, w, app)
	got := map[string]string{}
	for _, o := range offers.Objects {
		for _, a := range o.Actions {
			got[o.Name] += fmt.Sprintf("%s %t ", a.Name, a.Disabled)
		}
		got[o.Name] += o.Problem
	}
	notes := "keep false note false "
	for name, want := range map[string]string{"web": "pause false restart false resume true scale false ", "nightly": "create-job false resume false suspend true ", "c": notes, "d": notes} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}

// wantCommand wants the command line to tell the namespace of the objects from that of
// the Application.
func wantCommand(t *testing.T, w *world, app string) {
	t.Helper()
	deps := cli.Deps{
		Actions: func(ctx context.Context, o cli.ActionOptions) (cli.ActionOffers, error) {
			return daemon.Actions(ctx, daemon.ActionConfig{REST: o.REST, Namespace: o.Namespace, App: client.ObjectKey{Namespace: o.App.Namespace, Name: o.App.Name}, Which: o.Which})
		},
	}
	for namespace, want := range map[string]bool{"": true, "nowhere": false} {
		var out, said strings.Builder
		args := []string{"app", "actions", "list", app, "-n", controlNamespace, "--namespace", namespace, "--kind", "CronJob", "--kubeconfig", writeKubeconfig(t, w.hub.rest)}
		if code := cli.Main(t.Context(), args, strings.NewReader(""), &out, &said, "test", deps); code != 0 {
			t.Fatalf("rutter app actions list: exit code %d: %s", code, said.String())
		}
		if strings.Contains(out.String(), "create-job") != want || strings.Contains(out.String(), "Deployment") {
			t.Errorf("--namespace %q: %s", namespace, out.String())
		}
	}
}

// wantJob wants one Job of the CronJob, and nothing in it of what marks ours.
func wantJob(t *testing.T, w *world, ns string) {
	t.Helper()
	var jobs batchv1.JobList
	if err := w.alpha.client.List(t.Context(), &jobs, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	if len(jobs.Items) != 1 {
		t.Fatalf("%d Jobs", len(jobs.Items))
	}
	job := jobs.Items[0]
	if owner := metav1.GetControllerOf(&job); owner == nil || owner.Name != "nightly" || job.Labels["made-of"] != "nightly" || job.Labels[rutter.LabelUnit] != "" || job.Annotations["cronjob.kubernetes.io/instantiate"] != "manual" {
		t.Errorf("%+v", job.ObjectMeta)
	}
}

// TestActionsProject: the project of an Application has the word on what is acted on.
func TestActionsProject(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, app, project := w.alpha.namespace(t, "kept"), unique("kept"), unique("kept")
	w.create(t, "apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: "+project+"}\nspec:\n  sourceRepos: ['*']\n  destinations: [{server: '*', namespace: '*'}]\n", nil)
	r := w.repo(t, "kept", tree{"app/web.yaml": deployment("web", 1), "app/door.yaml": service("door")})
	w.create(t, strings.Replace(application(app, "app", ""), "project: default", "project: "+project, 1), vars{"NS": ns, "REPO": r.url})
	w.awaitSynced(t, app, "")
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"namespaceResourceBlacklist": []any{map[string]any{"group": "apps", "kind": "Deployment"}}}})
	if err != nil {
		t.Fatal(err)
	}
	key := "resource.customizations.actions._Service"
	w.settings(t.Context(), t, map[string]*string{key: new(`discovery.lua: 'return {["let-in"] = {}, mark = {}}'
definitions:
- name: mark
  action.lua: |
    obj.metadata.labels.marked = "yes"
    obj.status.conditions = {{type = "Marked", status = "True", reason = "ByHand", message = "", lastTransitionTime = os.date("!%Y-%m-%dT%H:%M:%SZ")}}
    return obj
- name: let-in
  action.lua: |
    obj.metadata.labels["let-in"] = "yes"
    return {{operation = "patch", resource = obj}, {operation = "create", resource = {apiVersion = "v1", kind = "Namespace", metadata = {name = "let-in"}}}}
`)})
	t.Cleanup(func() { w.settings(context.Background(), t, map[string]*string{key: nil}) })
	w.hub.patch(t, &v1alpha1.AppProject{}, controlNamespace, project, string(patch))
	cfg := daemon.ActionConfig{REST: w.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}, Which: actions.Which{Kind: "Deployment"}}
	if _, err := daemon.RunAction(t.Context(), cfg, "restart", nil, false); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), project) {
		t.Errorf("%v, want it refused by the project", err)
	}
	door := cfg
	door.Which = actions.Which{Kind: "Service"}
	if done, err := daemon.RunAction(t.Context(), door, "let-in", nil, false); rutter.CodeOf(err) != rutter.CodeForbidden || len(done) > 0 {
		t.Errorf("%v, %v: want the Namespace that the action creates refused, before anything is done", done, err)
	}
	if done, err := daemon.RunAction(t.Context(), door, "mark", nil, false); err != nil || len(done) != 1 {
		t.Errorf("%v, %v", done, err)
	}
	svc := get(t, w.alpha, ns, "door", &corev1.Service{})
	if svc.Labels["let-in"] != "" {
		t.Error("a part of what was refused was done")
	}
	if svc.Labels["marked"] != "yes" || len(svc.Status.Conditions) != 1 || svc.Status.Conditions[0].Reason != "ByHand" {
		t.Errorf("an action that writes the status too: %v, %+v", svc.Labels, svc.Status)
	}
	door.Which.Name = "no-such-door"
	if _, err := daemon.RunAction(t.Context(), door, "mark", nil, false); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("%v, want it not found", err)
	}
	if offers, err := daemon.Actions(t.Context(), cfg); err != nil || len(offers.Objects) != 1 || len(offers.Objects[0].Actions) != 0 || !strings.Contains(offers.Objects[0].Problem, project) {
		t.Errorf("%+v, %v", offers, err)
	}
	if web := get(t, w.alpha, ns, "web", &appsv1.Deployment{}); len(web.Spec.Template.Annotations) > 0 {
		t.Errorf("it was done all the same: %v", web.Spec.Template.Annotations)
	}
}

// TestHealthExprs: an expression in argocd-cm says how a kind does as soon as it is
// there, and no longer than that.
func TestHealthExprs(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, app := w.alpha.namespace(t, "judged"), unique("judged")
	role := "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: p, annotations: {phase: down}}\ntemplate: {spec: {containers: [{name: c, image: example.com/c}]}}\n"
	r := w.repo(t, "judged", tree{"app/p.yaml": role})
	w.create(t, application(app, "app", ""), vars{"NS": ns, "REPO": r.url})
	w.awaitState(t, app, "Synced", "Healthy")
	key := "resource.customizations.healthCheckExprs._PodTemplate"
	w.settings(t.Context(), t, map[string]*string{key: new("apiVersion: v1\nkind: PodTemplate\nfailed: metadata.annotations.phase == 'down'\ncurrent: metadata.annotations.phase == 'up'\n")})
	t.Cleanup(func() { w.settings(context.Background(), t, map[string]*string{key: nil}) })
	w.awaitState(t, app, "Synced", "Degraded")
	r.push(t, tree{"app/p.yaml": strings.Replace(role, "down", "coming", 1)})
	w.awaitState(t, app, "Synced", "Progressing")
	r.push(t, tree{"app/p.yaml": strings.Replace(role, "down", "up", 1)})
	w.awaitState(t, app, "Synced", "Healthy")
	w.settings(t.Context(), t, map[string]*string{key: new("current: metadata.annotations.none == 'up'\n")})
	w.awaitState(t, app, "Synced", "Unknown")
	w.settings(t.Context(), t, map[string]*string{key: nil})
	w.awaitState(t, app, "Synced", "Healthy")
}
