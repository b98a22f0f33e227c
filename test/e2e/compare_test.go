package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// watching is an Application that only looks.
func watching(name, path, extra string) string {
	return strings.Replace(application(name, path, extra), "  syncPolicy:\n    automated:\n      prune: true\n      selfHeal: true\n", "", 1)
}

// TestB27IgnoredByExpressionAndByManager: a commit changes other fields of a
// workload whose ignored fields keep what is live.
func TestB27IgnoredByExpressionAndByManager(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("ignore-jq")
	ns := w.alpha.namespace(t, "ignore-jq")
	r := w.repo(t, "ignore-jq", tree{"app/web.yaml": deployment("web", 2)})
	w.create(t, application(app, "app", "  ignoreDifferences:\n"+
		"    - {group: apps, kind: Deploy*, jqPathExpressions: ['.spec.template.spec.containers[] | select(.name == \"web\") | .image']}\n"+
		"    - {group: '*', kind: '*', managedFieldsManagers: [tuner]}\n"), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	w.alpha.patch(t, &appsv1.Deployment{}, ns, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example/web:mutated"}]}}}}`)
	d := get(t, w.alpha, ns, "web", &appsv1.Deployment{})
	if err := w.alpha.client.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`)), client.FieldOwner("tuner")); err != nil {
		t.Fatal(err)
	}
	commit := r.push(t, tree{"app/web.yaml": strings.Replace(deployment("web", 3), "spec:\n", "spec:\n  revisionHistoryLimit: 4\n", 1)})
	w.awaitSynced(t, app, commit)
	d = get(t, w.alpha, ns, "web", &appsv1.Deployment{})
	if *d.Spec.RevisionHistoryLimit != 4 || *d.Spec.Replicas != 5 || d.Spec.Template.Spec.Containers[0].Image != "registry.example/web:mutated" {
		t.Errorf("history limit %d, replicas %d, image %s", *d.Spec.RevisionHistoryLimit, *d.Spec.Replicas, d.Spec.Template.Spec.Containers[0].Image)
	}
}

// TestAutoscalersKeepReplicas: an autoscaler that is declared with a workload,
// and one that is declared nowhere, own its replicas without any rule; whatever
// else changes is put back.
func TestAutoscalersKeepReplicas(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("scaler")
	ns := w.alpha.namespace(t, "scaler")
	hpa := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: declared, annotations: {argocd.argoproj.io/ignore-healthcheck: \"true\"}}\n" +
		"spec: {minReplicas: 1, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: declared}}\n"
	r := w.repo(t, "scaler", tree{"app/declared.yaml": deployment("declared", 2), "app/hpa.yaml": hpa, "app/other.yaml": deployment("other", 2)})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	w.alpha.patch(t, &appsv1.Deployment{}, ns, "declared", `{"spec":{"replicas":6}}`)
	other := get(t, w.alpha, ns, "other", &appsv1.Deployment{})
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	if err := w.alpha.client.SubResource("scale").Update(t.Context(), other, client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"declared", "other"} {
		w.alpha.patch(t, &appsv1.Deployment{}, ns, name, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"registry.example/web:by-hand"}]}}}}`)
	}
	for name, want := range map[string]int32{"declared": 6, "other": 7} {
		d := await(t, w.alpha.client, &appsv1.DeploymentList{}, ns, name, func(d *appsv1.Deployment) error {
			if d == nil || d.Spec.Template.Spec.Containers[0].Image != "registry.example/web:1.0.0" {
				return errors.New("the image is not put back")
			}
			return nil
		})
		if *d.Spec.Replicas != want {
			t.Errorf("%s: the scaler's %d replicas were undone: %d", name, want, *d.Spec.Replicas)
		}
	}
	w.awaitSynced(t, app, "")
}

// settings merges keys into argocd-cm; nil takes a key away.
func (w *world) settings(ctx context.Context, t *testing.T, data map[string]*string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "argocd-cm", Namespace: controlNamespace, Labels: map[string]string{"app.kubernetes.io/part-of": "argocd"}}}
	if err := w.hub.client.Create(ctx, cm); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	if err := w.hub.client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// TestSettingsJudgeAnew: a rule for all units and an exclusion hold as soon as
// argocd-cm has them, and no longer than that. What is excluded is left alone.
func TestSettingsJudgeAnew(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("settings")
	ns := w.alpha.namespace(t, "settings")
	job := "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: job}\nspec: {schedule: '0 0 1 1 *', suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.example/c}]}}}}}\n"
	pod := "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: pod}\ntemplate: {spec: {containers: [{name: c, image: registry.example/c}]}}\n"
	r := w.repo(t, "settings", tree{"app/job.yaml": job, "app/pod.yaml": pod})
	w.create(t, watching(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.editApp(t, app, `{"operation":{"sync":{}}}`)
	w.awaitSynced(t, app, "")
	w.alpha.patch(t, &batchv1.CronJob{}, ns, "job", `{"spec":{"schedule":"0 1 1 1 *"}}`)
	state := func(want string) {
		t.Helper()
		w.awaitApp(t, app, func(app *v1alpha1.Application) error {
			if app.Status.Sync.Status != want {
				return fmt.Errorf("it is %s, not %s", app.Status.Sync.Status, want)
			}
			return nil
		})
	}
	state("OutOfSync")

	const rule, exclusions = "resource.customizations.ignoreDifferences.batch_CronJob", "resource.exclusions"
	t.Cleanup(func() { w.settings(context.Background(), t, map[string]*string{rule: nil, exclusions: nil}) })
	w.settings(t.Context(), t, map[string]*string{rule: new("jqPathExpressions: [.spec.schedule]\n")})
	state("Synced")
	w.settings(t.Context(), t, map[string]*string{rule: nil})
	state("OutOfSync")
	w.settings(t.Context(), t, map[string]*string{rule: new("jsonPointers: [/spec/schedule]\n"), exclusions: new("- {apiGroups: [''], kinds: [PodTemplate], clusters: ['*']}\n")})
	w.awaitCondition(t, app, "ExcludedResourceWarning", "PodTemplate")
	state("Synced")
	r.push(t, tree{"app/pod.yaml": ""})
	w.editApp(t, app, `{"operation":{"sync":{"prune":true}}}`)
	w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		if app.Operation != nil || app.Status.OperationState == nil || app.Status.OperationState.Phase != "Succeeded" {
			return errors.New("the sync is not over")
		}
		return nil
	})
	time.Sleep(300 * time.Millisecond) // nothing is to happen
	get(t, w.alpha, ns, "pod", &corev1.PodTemplate{})
}

// TestB26ComparisonFails: an object that the server does not take is no basis
// for Synced. Its name and the server's words are the reason.
func TestB26ComparisonFails(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("b26")
	ns := w.alpha.namespace(t, "b26")
	r := w.repo(t, "b26", tree{"app/web.yaml": deployment("web", 1), "app/c.yaml": configMap("c", "1")})
	w.create(t, watching(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.editApp(t, app, `{"operation":{"sync":{}}}`)
	w.awaitSynced(t, app, "")
	r.push(t, tree{"app/web.yaml": strings.ReplaceAll(deployment("web", 1), "app: web", "app: another")})
	w.awaitCondition(t, app, "ComparisonError", "field is immutable")
	got := w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		for _, res := range app.Status.Resources {
			if res.Name == "c" && res.Status != "Synced" {
				return fmt.Errorf("c is %s: it is held back by another", res.Status)
			}
		}
		return nil
	})
	if got.Status.Sync.Status != "Unknown" {
		t.Errorf("it is %s", got.Status.Sync.Status)
	}
	if conditions := fmt.Sprint(got.Status.Conditions); !strings.Contains(conditions, "web") {
		t.Errorf("the object is not named: %s", conditions)
	}
}

// TestAdoption: what kubectl applied becomes the Application's without a change,
// and what Git drops later goes.
func TestAdoption(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("adopt")
	ns := w.alpha.namespace(t, "adopt")
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {value: \"1\", later: x}\n"
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: ns, Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"value":"1","later":"x"}}`,
		}},
		Data: map[string]string{"value": "1", "later": "x"},
	}
	if err := w.alpha.client.Create(t.Context(), cm, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
	events, err := w.alpha.client.Watch(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{Namespace: ns, Raw: &metav1.ListOptions{
		ResourceVersion: cm.ResourceVersion, FieldSelector: "metadata.name=c"}})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	scaled := &appsv1.Deployment{}
	if err := yaml.Unmarshal([]byte(deployment("web", 2)), scaled); err != nil {
		t.Fatal(err)
	}
	scaled.Namespace = ns
	if err := w.alpha.client.Create(t.Context(), scaled, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}, Spec: autoscalingv1.ScaleSpec{Replicas: 7}}
	if err := w.alpha.client.SubResource("scale").Update(t.Context(), scaled, client.WithSubResourceBody(scale), client.FieldOwner("kube-controller-manager")); err != nil {
		t.Fatal(err)
	}
	r := w.repo(t, "adopt", tree{"app/c.yaml": text, "app/web.yaml": deployment("web", 2)})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	if web := get(t, w.alpha, ns, "web", &appsv1.Deployment{}); *web.Spec.Replicas != 7 {
		t.Errorf("its autoscaler wants 7 replicas, and it has %d", *web.Spec.Replicas)
	}
	live := get(t, w.alpha, ns, "c", &corev1.ConfigMap{})
	if _, there := live.Annotations["kubectl.kubernetes.io/last-applied-configuration"]; there {
		t.Error("it still says what kubectl applied last")
	}
	writes := 0
	for seen := ""; seen != live.ResourceVersion; writes++ {
		ev := <-events.ResultChan()
		c, ok := ev.Object.(*corev1.ConfigMap)
		if !ok {
			t.Fatalf("the watch ended: %v", ev.Object)
		}
		seen = c.ResourceVersion
	}
	if writes != 1 {
		t.Errorf("it was written %d times", writes)
	}
	w.awaitSynced(t, app, r.push(t, tree{"app/c.yaml": strings.Replace(text, ", later: x", "", 1)}))
	if _, there := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}).Data["later"]; there {
		t.Error("what Git has dropped is still there")
	}
}
