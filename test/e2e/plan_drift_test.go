package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/preview"
)

// TestPlanShowsDrift: with a control plane, a plan says what is not as declared
// on the clusters now, field by field, what of it the change touches too, and
// whether self-heal undoes it; nothing of a Secret is shown, and a cluster that
// is away is a note.
func TestPlanShowsDrift(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, app := w.alpha.namespace(t, "drifted"), unique("drifted")
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: first}\n"
	v := vars{"NS": ns}
	declared := strings.Replace(application(app, "app", ""), "      selfHeal: true\n", "", 1) // it does not heal itself
	r := w.repo(t, "drifted", tree{"app/c.yaml": configMap("c", "1"), "app/s.yaml": secret, "app/gone.yaml": configMap("gone", "1")})
	v["REPO"] = r.url
	away, dead := unique("away"), unique("drifted-away")
	proxy := w.member(t, away, nil)
	v["NS2"] = w.alpha.namespace(t, "drifted-away")
	onDead := strings.NewReplacer("name: alpha", "name: "+away, "${NS}", "${NS2}").Replace(application(dead, "app", ""))
	r.push(t, tree{"declared/app.yaml": v.expand(declared), "declared/dead.yaml": v.expand(onDead)})
	w.create(t, declared, v)
	w.create(t, onDead, v)
	w.awaitSynced(t, app, "")
	w.awaitSynced(t, dead, "")
	proxy.Cut()

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

	w.unknown(t, dead)
	base := strings.TrimSpace(r.git(t, "rev-parse", "HEAD"))
	head := strings.TrimSpace(r.commit(t, tree{"app/c.yaml": configMap("c", "2")}))
	plan, err := daemon.Plan(t.Context(), daemon.PlanConfig{Repo: r.clone, Base: base, Head: head, URLs: []string{r.url}, Namespace: controlNamespace,
		REST: w.hub.rest, KubeVersion: "v1.37.0", CacheDir: filepath.Join(t.TempDir(), "plan")})
	if err != nil {
		t.Fatal(err)
	}
	text := preview.Text(plan, preview.TextOptions{Width: 400})
	for _, want := range []string{
		"ConfigMap " + ns + "/c on alpha (application " + app + "): differs; it stays until somebody syncs",
		`.data.value  declared "1", live "by hand"`, "(this change touches it too)", "ConfigMap " + ns + "/gone", ": missing", "Secret " + ns + "/s",
		"What is drifted of " + dead + " could not be looked at",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan does not say %q", want)
		}
	}
	if strings.Contains(text, "canary") || strings.Contains(text, "Y2FuYXJ5") {
		t.Error("the plan shows what is in a Secret")
	}
	if len(plan.Drift) != 3 || t.Failed() {
		t.Errorf("%d objects are drifted, wanted 3:\n%s", len(plan.Drift), text)
	}
}
