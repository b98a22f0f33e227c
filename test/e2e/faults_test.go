package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/local"
)

// bystander is an Application in a repository of its own that must go on
// whatever happens to the others.
type bystander struct {
	w    *world
	repo *repo
	name string
	ns   string
	n    int
}

func (w *world) bystander(t *testing.T, prefix string) *bystander {
	t.Helper()
	b := &bystander{w: w, name: unique(prefix), ns: w.alpha.namespace(t, prefix)}
	b.repo = w.repo(t, prefix, tree{"app/c.yaml": configMap("c", "0")})
	w.create(t, application(b.name, "app", ""), vars{"REPO": b.repo.url, "NS": b.ns})
	w.awaitSynced(t, b.name, "")
	return b
}

// goesOn pushes a commit and sees it arrive.
func (b *bystander) goesOn(t *testing.T) {
	t.Helper()
	b.n++
	value := fmt.Sprint(b.n)
	app := b.w.awaitSynced(t, b.name, b.repo.push(t, tree{"app/c.yaml": configMap("c", value)}))
	if got := get(t, b.w.alpha, b.ns, "c", &corev1.ConfigMap{}).Data["value"]; got != value {
		t.Errorf("the bystander holds %q, wanted %q", got, value)
	}
	if len(app.Status.Conditions) > 0 {
		t.Errorf("the bystander shows %+v", app.Status.Conditions)
	}
}

// uidOf is the identity of the ConfigMap c, to see that it is never replaced.
func uidOf(t *testing.T, c *cluster, ns string) types.UID {
	t.Helper()
	return get(t, c, ns, "c", &corev1.ConfigMap{}).UID
}

// unknown waits for a condition; no state that cannot be known may be shown as Synced.
func (w *world) unknown(t *testing.T, name string, texts ...string) {
	t.Helper()
	app := w.awaitCondition(t, name, "ComparisonError", texts...)
	if app.Status.Sync.Status != "Unknown" {
		t.Errorf("%s is %s, wanted Unknown", name, app.Status.Sync.Status)
	}
}

// TestRepositoryGone takes a repository away and brings it back.
func TestRepositoryGone(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("gone")
	b := w.bystander(t, "gone-other")
	ns := w.alpha.namespace(t, "gone")
	r := w.repo(t, "gone", tree{"app/c.yaml": configMap("c", "1")})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	uid := uidOf(t, w.alpha, ns)

	if err := os.Rename(r.bare, r.bare+".away"); err != nil {
		t.Fatal(err)
	}
	pushed(t, w.addr, r.url)
	w.unknown(t, app, r.url)
	b.goesOn(t)
	if uidOf(t, w.alpha, ns) != uid {
		t.Error("the object was replaced while the repository was away")
	}

	if err := os.Rename(r.bare+".away", r.bare); err != nil {
		t.Fatal(err)
	}
	w.awaitSynced(t, app, r.push(t, tree{"app/c.yaml": configMap("c", "2")}))
	w.awaitNoConditions(t, app)
	if uidOf(t, w.alpha, ns) != uid {
		t.Error("the object was replaced when the repository came back")
	}
}

// TestChartBroken pushes a template that does not render, and then a good one.
func TestChartBroken(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("broken")
	b := w.bystander(t, "broken-other")
	ns := w.alpha.namespace(t, "broken")
	const good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {value: {{ .Values.value | quote }}}\n"
	r := w.repo(t, "broken", tree{"chart/Chart.yaml": chart, "chart/values.yaml": "value: one\n", "chart/templates/c.yaml": good})
	w.create(t, application(app, "chart", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	uid := uidOf(t, w.alpha, ns)

	r.push(t, tree{"chart/templates/c.yaml": "# a comment\n" + strings.Replace(good, ".Values.value", `required "value2 must be set" .Values.value2`, 1)})
	w.unknown(t, app, "templates/c.yaml", "value2 must be set")
	b.goesOn(t)
	if uidOf(t, w.alpha, ns) != uid {
		t.Error("the object was replaced while the chart was broken")
	}

	w.awaitSynced(t, app, r.push(t, tree{"chart/values.yaml": "value: one\nvalue2: two\n"}))
	w.awaitNoConditions(t, app)
	if got := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}); got.Data["value"] != "two" || got.UID != uid {
		t.Errorf("the mended chart gives %q (replaced: %t)", got.Data["value"], got.UID != uid)
	}
}

// TestClusterDown breaks the way to a member: once it refuses, once it is silent.
func TestClusterDown(t *testing.T) {
	t.Parallel()
	w := start(t)
	for name, breakIt := range map[string]func(*local.Proxy){"refuses": (*local.Proxy).Cut, "silent": (*local.Proxy).Hang} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := w.bystander(t, "down-other")
			member := unique("down-" + name)
			proxy := w.member(t, member, nil)
			ns := w.alpha.namespace(t, member)
			r := w.repo(t, member, tree{"app/c.yaml": configMap("c", "1"), "app/d.yaml": configMap("d", "1")})
			w.create(t, strings.Replace(application(member, "app", ""), "name: alpha", "name: "+member, 1), vars{"REPO": r.url, "NS": ns})
			w.awaitSynced(t, member, "")
			uid := uidOf(t, w.alpha, ns)

			breakIt(proxy)
			begun := time.Now()
			w.unknown(t, member, proxy.URL(), "does not answer")
			t.Logf("shown after %s", time.Since(begun).Round(time.Millisecond))
			b.goesOn(t)
			commit := r.push(t, tree{"app/c.yaml": configMap("c", "2"), "app/d.yaml": ""}) // for when it is back
			b.goesOn(t)
			if uidOf(t, w.alpha, ns) != uid {
				t.Error("the object was replaced while the cluster was away")
			}
			get(t, w.alpha, ns, "d", &corev1.ConfigMap{})

			proxy.Restore()
			begun = time.Now()
			w.awaitSynced(t, member, commit)
			w.awaitNoConditions(t, member)
			t.Logf("Synced again %s after the cluster is back", time.Since(begun).Round(time.Millisecond))
			if got := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}); got.Data["value"] != "2" || got.UID != uid {
				t.Errorf("the object holds %q (replaced: %t)", got.Data["value"], got.UID != uid)
			}
			gone(t, w.alpha, ns, "d", &corev1.ConfigMap{})
		})
	}
}

// TestBrokenObject has one object among good ones that the server refuses: the
// bad one is named, nothing is half done, and nothing says Synced.
func TestBrokenObject(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("object")
	ns := w.alpha.namespace(t, "object")
	bad := strings.Replace(service("bad"), "port: 80\n", "port: 99999\n", 1)
	r := w.repo(t, "object", tree{"app/a.yaml": configMap("a", "1"), "app/bad.yaml": bad, "app/z.yaml": deployment("z", 1)})
	w.create(t, application(name, "app", "    retry: {limit: 0}\n"), vars{"REPO": r.url, "NS": ns})
	app := w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if op := app.Status.OperationState; op == nil || op.Phase != "Failed" {
			return errors.New("the sync has not failed")
		}
		return nil
	})
	if app.Status.Sync.Status == "Synced" {
		t.Error("an Application with a refused object says Synced")
	}
	w.awaitCondition(t, name, "SyncError", "99999")
	gone(t, w.alpha, ns, "a", &corev1.ConfigMap{})
	checkResult(t, app, "bad", "SyncFailed", "99999")

	w.awaitSynced(t, name, r.push(t, tree{"app/bad.yaml": service("bad")}))
	w.awaitNoConditions(t, name)
}

// checkResult looks for the outcome of one object in the operation.
func checkResult(t *testing.T, app *v1alpha1.Application, name, status, text string) {
	t.Helper()
	if app.Status.OperationState == nil || app.Status.OperationState.SyncResult == nil {
		t.Errorf("there is no result for %s", name)
		return
	}
	for _, res := range app.Status.OperationState.SyncResult.Resources {
		if res.Name == name {
			if res.Status != status || !strings.Contains(res.Message, text) {
				t.Errorf("%s is %s: %s", name, res.Status, res.Message)
			}
			return
		}
	}
	t.Errorf("there is no result for %s: %+v", name, app.Status.OperationState.SyncResult.Resources)
}
