package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/explain"
)

// TestExplain: a live field that somebody edited is explained: by whom and when,
// where Git declares it, which cause it is, what to do, and why nobody puts it
// back; nothing of a Secret is shown.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, app := w.alpha.namespace(t, "explained"), unique("explained")
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: first}\n"
	v := vars{"NS": ns}
	r := w.repo(t, "explained", tree{"app/c.yaml": "# the first line is a comment\n" + configMap("c", "1"), "app/s.yaml": secret, "app/gone.yaml": configMap("gone", "1")})
	v["REPO"] = r.url
	w.create(t, strings.Replace(application(app, "app", ""), "      selfHeal: true\n", "", 1), v) // it does not heal itself
	w.awaitSynced(t, app, "")

	before := time.Now().Add(-2 * time.Second) // the server's times are of whole seconds
	w.alpha.patch(t, &corev1.ConfigMap{}, ns, "c", `{"data":{"value":"by hand"}}`)
	w.alpha.patch(t, &corev1.Secret{}, ns, "s", `{"stringData":{"password":"canary-7f3a"}}`)
	if err := w.alpha.client.Delete(t.Context(), get(t, w.alpha, ns, "gone", &corev1.ConfigMap{})); err != nil {
		t.Fatal(err)
	}
	w.awaitApp(t, app, func(a *v1alpha1.Application) error {
		for _, r := range a.Status.Resources {
			if r.Status != "OutOfSync" {
				return fmt.Errorf("%s %s is %s", r.Kind, r.Name, r.Status)
			}
		}
		return nil
	})

	answer, err := daemon.Explain(t.Context(), daemon.DiffConfig{REST: w.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}})
	if err != nil {
		t.Fatal(err)
	}
	text := explain.Text(answer)
	data, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text, string(data)} {
		if strings.Contains(out, "canary") || strings.Contains(out, "Y2FuYXJ5") {
			t.Error("the explanation shows what is in a Secret")
		}
	}
	for _, want := range []string{
		"ConfigMap " + ns + "/c: OutOfSync (Git: app/c.yaml:2)", `Git:  "1"`, `live: "by hand"`,
		"edited by hand: somebody edited it by hand with kubectl-edit at ", "write it in Git in app/c.yaml:2", "rutter app sync " + app,
		"ConfigMap " + ns + "/gone: OutOfSync", "missing: Git declares it", "Secret " + ns + "/s: OutOfSync", "self-heal is off: ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the explanation does not say %q", want)
		}
	}
	for _, d := range answer.Differences {
		for _, f := range d.Fields {
			at, err := time.Parse(time.RFC3339, f.WrittenAt)
			if f.Cause.Name != explain.ByHand || err != nil || at.Before(before) {
				t.Errorf("%s %s: %q, written at %q (%v)", d.Name, f.Path, f.Cause.Name, f.WrittenAt, err)
			}
		}
	}
	if len(answer.Differences) != 3 || t.Failed() {
		t.Errorf("%d objects differ, wanted 3:\n%s", len(answer.Differences), text)
	}
	w.wantDrift(t, app, map[string]string{"c": "differs", "s": "differs", "gone": "missing"})
}

// wantDrift wants rutter drift to list an Application with these objects.
func (w *world) wantDrift(t *testing.T, app string, want map[string]string) {
	t.Helper()
	var out, said strings.Builder
	args := []string{"drift", "-o", "json", "-n", controlNamespace, "--kubeconfig", writeKubeconfig(t, w.hub.rest)}
	if code := cli.Main(t.Context(), args, strings.NewReader(""), &out, &said, "test", cli.Deps{}); code != 0 {
		t.Fatalf("rutter drift: exit code %d: %s", code, said.String())
	}
	var rows []cli.DriftRow
	if err := json.Unmarshal([]byte(out.String()), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Application != app {
			continue // tests run side by side
		}
		got := map[string]string{}
		for _, o := range r.Objects {
			got[o.Name] = o.What
		}
		if !maps.Equal(got, want) || r.Heals || r.Cluster != "alpha" || time.Since(r.InSyncAt) > 10*time.Minute || r.InSyncAt.After(time.Now()) {
			t.Errorf("%+v, want %v", r, want)
		}
		return
	}
	t.Errorf("rutter drift does not list %s:\n%s", app, out.String())
}

// TestExplainHealth: what is not healthy is explained by the warnings about it,
// which are asked of the member.
func TestExplainHealth(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, app := w.alpha.namespace(t, "ailing"), unique("ailing")
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: door}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\n" // nobody gives it an address
	w.create(t, application(app, "app", ""), vars{"NS": ns, "REPO": w.repo(t, "ailing", tree{"app/door.yaml": service}).url})
	w.awaitApp(t, app, func(a *v1alpha1.Application) error {
		if a.Status.Sync.Status != "Synced" || a.Status.Health.Status == "Healthy" {
			return fmt.Errorf("%s, %s", a.Status.Sync.Status, a.Status.Health.Status)
		}
		return nil
	})
	door := get(t, w.alpha, ns, "door", &corev1.Service{})
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "e"}, Type: corev1.EventTypeWarning, Reason: "SyncLoadBalancerFailed", Message: "no address is free",
		InvolvedObject: corev1.ObjectReference{Kind: "Service", Namespace: ns, Name: "door", UID: door.UID}}
	if err := w.alpha.client.Create(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	answer, err := daemon.Explain(t.Context(), daemon.DiffConfig{REST: w.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}})
	if err != nil {
		t.Fatal(err)
	}
	text := explain.Text(answer)
	if want := "event of Service door: SyncLoadBalancerFailed: no address is free"; !strings.Contains(text, want) || len(answer.Differences) != 0 {
		t.Errorf("%d objects differ; wanted none, and %q:\n%s", len(answer.Differences), want, text)
	}
}
