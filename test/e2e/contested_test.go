package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/explain"
)

// TestB28Contested: somebody writes a field again each time that it is put back.
// After a few times it is left alone for a while, and that is said, with who;
// everything else is healed, in the same object too.
func TestB28Contested(t *testing.T) {
	t.Parallel()
	w := start(t)
	app, ns := unique("contested"), w.alpha.namespace(t, "contested")
	r := w.repo(t, "contested", tree{"app/web.yaml": deployment("web", 2), "app/c.yaml": configMap("c", "1")})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	writes := fightFor(t, w.alpha, ns, "web", 10)

	said := w.awaitCondition(t, app, "ContestedFieldWarning", "Deployment/"+ns+"/web", ".spec.replicas", "rival", "Everything else goes on being healed")
	if n := writes.Load(); n < 5 || n > 7 {
		t.Errorf("the rival wrote %d times before the field was left alone, wanted about 5", n)
	}
	if err := contestedIn(said, "web", ".spec.replicas", "rival"); err != nil {
		t.Error(err)
	}
	image := get(t, w.alpha, ns, "web", &appsv1.Deployment{}).Spec.Template.Spec.Containers[0].Image
	edit := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"by-hand:1"}]`))
	if err := w.alpha.client.Patch(t.Context(), get(t, w.alpha, ns, "web", &appsv1.Deployment{}), edit); err != nil {
		t.Fatal(err)
	}
	w.alpha.patch(t, &corev1.ConfigMap{}, ns, "c", `{"data":{"value":"by hand"}}`)
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "c", holds("1"))
	await(t, w.alpha.client, &appsv1.DeploymentList{}, ns, "web", func(d *appsv1.Deployment) error {
		if d == nil || d.Spec.Template.Spec.Containers[0].Image != image {
			return errors.New("the image is not put back")
		}
		if *d.Spec.Replicas != 9 {
			return fmt.Errorf("replicas is %d: the contested field was not left alone", *d.Spec.Replicas)
		}
		return nil
	})
	w.awaitCondition(t, app, "ContestedFieldWarning", ".spec.replicas")
	if text := string(fetch(t, w.addr, "/metrics")); !strings.Contains(text, fmt.Sprintf("rutter_app_contested_fields{dest_server=%q,name=%q,namespace=%q,project=\"default\"} 1", w.alpha.rest.Host, app, controlNamespace)) {
		t.Error("the metrics do not count the contested field")
	}
	w.explainsContested(t, app, ns)
}

// fightFor has a rival scale a Deployment to 9 whenever it is anything else, and
// counts how often; at most a number of times.
func fightFor(t *testing.T, c *cluster, ns, name string, most int64) *atomic.Int64 {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	events, err := c.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(ns), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	var writes atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ev := range events.ResultChan() {
			d, ok := ev.Object.(*appsv1.Deployment)
			if !ok || *d.Spec.Replicas == 9 || writes.Load() >= most {
				continue
			}
			if err := c.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":9}}`)), client.FieldOwner("rival")); err == nil {
				writes.Add(1)
			}
		}
	}()
	t.Cleanup(func() { stop(); events.Stop(); <-done })
	return &writes
}

// contestedIn wants the status of an Application to say of a field of an object
// that it is contested, and by whom.
func contestedIn(app *v1alpha1.Application, name, path, manager string) error {
	for _, res := range app.Status.Resources {
		if res.Name != name || res.Drift == nil {
			continue
		}
		for _, f := range res.Drift.Fields {
			if f.Path == path && f.ContestedUntil != nil && f.Manager == manager && f.Returned >= 4 && !f.Since.IsZero() {
				return nil
			}
		}
		return fmt.Errorf("%s: %+v", name, res.Drift)
	}
	return fmt.Errorf("the status records no drift of %s", name)
}

// explainsContested wants explain, drift and cede to lead to the rule.
func (w *world) explainsContested(t *testing.T, app, ns string) {
	t.Helper()
	answer, err := daemon.Explain(t.Context(), daemon.DiffConfig{REST: w.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}})
	if err != nil {
		t.Fatal(err)
	}
	cede := fmt.Sprintf("rutter cede %s apps/Deployment/%s/web '.spec.replicas'", app, ns)
	if text := explain.Text(answer); !strings.Contains(text, cede) || !strings.Contains(text, "written by rival") {
		t.Errorf("the explanation does not lead to %q:\n%s", cede, text)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"cede", app, "apps/Deployment/" + ns + "/web", ".spec.replicas"}, []string{`namespace: "` + ns + `"`, `jsonPointers: ["/spec/replicas"]`}},
		{[]string{"drift"}, []string{app, "differs, contested by rival"}},
	} {
		var out, said strings.Builder
		if code := cli.Main(t.Context(), append(c.args, "-n", controlNamespace, "--kubeconfig", writeKubeconfig(t, w.hub.rest)), strings.NewReader(""), &out, &said, "test", cli.Deps{}); code != 0 {
			t.Errorf("%v: exit %d: %s", c.args, code, said.String())
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v does not say %q:\n%s", c.args, want, out.String())
			}
		}
	}
}
