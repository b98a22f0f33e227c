package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
)

// TestDeleteAfterItsCluster is scenario B45: a cluster is deregistered, then an
// Application with a PostDelete hook there is deleted. It goes, and what it leaves
// is written down.
func TestDeleteAfterItsCluster(t *testing.T) {
	t.Parallel()
	w := start(t)
	name, member := unique("gone"), unique("gone-member")
	ns := w.alpha.namespace(t, "gone")
	w.member(t, member, nil)
	r := w.repo(t, "gone", tree{"app/c.yaml": configMap("c", "1"), "app/post.yaml": annotated(job("post", "Never"), "hook", "PostDelete")})
	w.create(t, strings.Replace(doomedApp(name, "app", ""), "name: alpha", "name: "+member, 1), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, name, "")
	w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if len(app.Finalizers) != 3 {
			return fmt.Errorf("has the finalizers %q", app.Finalizers)
		}
		return nil
	})
	if err := w.hub.client.Delete(t.Context(), w.secretOf(t, member)); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, name, "ComparisonError", member)
	w.delete(t, name)
	w.awaitGone(t, name)
	w.awaitEvent(t, name, "ClusterGone")
	get(t, w.alpha, ns, "c", &corev1.ConfigMap{})
	code, out := w.rutter(t, "cluster", "leftovers", member, "-o", "wide")
	if code != 0 || !containsAll(out, []string{member, controlNamespace + "/" + name, "ConfigMap/" + ns + "/c"}) {
		t.Errorf("leftovers: %d %s", code, out)
	}
	if code, out = w.rutter(t, "cluster", "leftovers", member, "--forget"); code != 0 {
		t.Error(out)
	}
	if _, out = w.rutter(t, "cluster", "leftovers"); strings.Contains(out, member) {
		t.Errorf("not forgotten: %s", out)
	}
}

// TestDeleteWaitsForItsCluster: where the operator wants so, an Application whose
// cluster is gone stays until it is back, and is deleted there.
func TestDeleteWaitsForItsCluster(t *testing.T) {
	p := borrow(t)
	name := unique("wait-cluster")
	ns := p.alpha.namespace(t, "wait-cluster")
	p.settings(t.Context(), t, map[string]*string{"rutter.deletion.cluster-gone": new("wait")})
	t.Cleanup(func() {
		p.settings(context.WithoutCancel(t.Context()), t, map[string]*string{"rutter.deletion.cluster-gone": nil})
	})
	p.registerAlpha(t)
	p.start(t)
	r := p.repo(t, "wait-cluster", tree{"app/c.yaml": configMap("c", "1")})
	p.create(t, doomedApp(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	p.awaitSynced(t, name, "")
	if err := p.hub.client.Delete(t.Context(), p.secretOf(t, "alpha")); err != nil {
		t.Fatal(err)
	}
	p.awaitCondition(t, name, "ComparisonError", "alpha")
	p.delete(t, name)
	p.awaitCondition(t, name, "DeletionError", "there are no clusters with the name")
	p.registerAlpha(t)
	p.awaitGone(t, name)
	gone(t, p.alpha, ns, "c", &corev1.ConfigMap{})
}

// TestDeleteWithItsProject is scenario B46: one commit takes a project and the
// Application of it away. The Application finishes first, by the project's rules.
func TestDeleteWithItsProject(t *testing.T) {
	t.Parallel()
	w := start(t)
	root, child, project := unique("project-root"), unique("project-child"), unique("team")
	ns := w.alpha.namespace(t, "project")
	r := w.repo(t, "project", tree{"app/c.yaml": configMap("c", "1")})
	v := vars{"REPO": r.url, "NS": ns}
	app := strings.Replace(strings.Replace(v.expand(doomedApp(child, "app", "")), "project: default", "project: "+project, 1), "metadata:\n", "metadata:\n  namespace: "+controlNamespace+"\n", 1)
	r.push(t, tree{"root/app.yaml": app, "root/keep.yaml": strings.Replace(configMap(root, "1"), "metadata:\n", "metadata:\n  namespace: "+controlNamespace+"\n", 1),
		"root/project.yaml": annotated(`apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata:
  name: `+project+`
  namespace: `+controlNamespace+`
spec:
  sourceRepos: ['*']
  destinations: [{server: '*', namespace: '*'}]
`, "sync-wave", "-1")})
	w.create(t, strings.Replace(application(root, "root", ""), "name: alpha", "server: https://kubernetes.default.svc", 1), v)
	w.awaitSynced(t, child, "")
	w.awaitSynced(t, root, "")
	if f := get(t, w.hub, controlNamespace, project, &v1alpha1.AppProject{}).Finalizers; len(f) != 1 {
		t.Errorf("the project has the finalizers %q", f)
	}
	w.alpha.lock(t, &corev1.ConfigMap{}, ns, "c", "lock.acme.dev/x", "kubectl-edit")
	r.push(t, tree{"root/app.yaml": "", "root/project.yaml": ""})
	w.awaitCondition(t, child, "DeletionBlockedWarning", "lock.acme.dev/x")
	// The project is deleted too, by hand if the wave order has it wait for the other.
	if err := w.hub.client.Delete(t.Context(), get(t, w.hub, controlNamespace, project, &v1alpha1.AppProject{})); err != nil {
		t.Fatal(err)
	}
	w.awaitEvent(t, project, "Retained")
	if p := get(t, w.hub, controlNamespace, project, &v1alpha1.AppProject{}); p.DeletionTimestamp == nil {
		t.Error("the project is not going")
	}
	w.alpha.unlock(t, &corev1.ConfigMap{}, ns, "c")
	w.awaitGone(t, child)
	gone(t, w.alpha, ns, "c", &corev1.ConfigMap{})
	gone(t, w.hub, controlNamespace, project, &v1alpha1.AppProject{})
	w.awaitSynced(t, root, "")
}

// gated is a chart of one ConfigMap that is always there and one for which an API
// has to be served, which no commit says.
func gated(group string) tree {
	return tree{"app/Chart.yaml": chart, "app/templates/c.yaml": configMap("always", "1") +
		`{{ if .Capabilities.APIVersions.Has "` + group + `/v1" }}` + "\n---\n" + configMap("sometimes", "1") + "{{ end }}\n"}
}

// TestPruneNeedsCommits is scenario B43: the same commit comes to render fewer
// objects, also over a restart that has lost all renders. What is missing is named
// and stays until a person, or a commit, takes it out; what is pruned says which
// commits took it out.
func TestPruneNeedsCommits(t *testing.T) {
	p := borrow(t)
	name, group := unique("flaky"), unique("gated")+".acme.dev"
	ns := p.alpha.namespace(t, "flaky")
	crd := p.alpha.define(t, group)
	p.registerAlpha(t)
	p.start(t)
	r := p.repo(t, "flaky", gated(group))
	p.create(t, application(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	p.awaitSynced(t, name, "")
	get(t, p.alpha, ns, "sometimes", &corev1.ConfigMap{})

	p.kill(t)
	if err := p.alpha.client.Delete(t.Context(), &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + crd.Group}}); err != nil {
		t.Fatal(err)
	}
	gone(t, p.alpha, "", "widgets."+crd.Group, &apiextensionsv1.CustomResourceDefinition{})
	if err := os.RemoveAll(p.data); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start has what the first one wrote down
		p.start(t)
		p.awaitCondition(t, name, "DeterminismWarning", "the same commit", "declared ConfigMap/"+ns+"/sometimes before", "Helm")
		p.awaitEvent(t, name, "DeterminismWarning")
		time.Sleep(time.Second)
		get(t, p.alpha, ns, "sometimes", &corev1.ConfigMap{})
		p.kill(t)
	}
	p.start(t)
	r.addr = p.addr
	head := r.push(t, tree{"app/templates/c.yaml": configMap("always", "2")})
	app := p.awaitSynced(t, name, head)
	gone(t, p.alpha, ns, "sometimes", &corev1.ConfigMap{})
	for _, res := range app.Status.OperationState.SyncResult.Resources {
		if res.Name == "sometimes" && !regexp.MustCompile(`^pruned: declared at [0-9a-f]{7}, and not at `+head[:7]+`$`).MatchString(res.Message) {
			t.Errorf("the prune says %q", res.Message)
		}
	}
	p.awaitNoConditions(t, name)
}

// registerAlpha makes the full member one of the plane.
func (p *plane) registerAlpha(t *testing.T) {
	t.Helper()
	secret, err := cli.ClusterSecret(controlNamespace, "alpha", p.alpha.rest)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.hub.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// TestPruneBudget takes more out of Git than may go without being asked: it waits,
// says so, and exactly what was approved goes.
func TestPruneBudget(t *testing.T) {
	t.Parallel()
	w := start(t)
	name := unique("budget")
	ns := w.alpha.namespace(t, "budget")
	all := tree{"app/keep.yaml": configMap("keep", "1")}
	for i := range 4 {
		all[fmt.Sprintf("app/c%d.yaml", i)] = configMap(fmt.Sprintf("c%d", i), "1")
	}
	r := w.repo(t, "budget", all)
	w.create(t, strings.Replace(application(name, "app", ""), "metadata:\n", "metadata:\n  annotations: {rutter.dev/deletion-budget: 50% min 2}\n", 1), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, name, "")
	r.push(t, tree{"app/c0.yaml": "", "app/c1.yaml": "", "app/c2.yaml": "", "app/keep.yaml": configMap("keep", "2")})
	digest := w.awaitHeldPrunes(t, name, "3 of 5 objects would be pruned, at most 2 go", "ConfigMap/"+ns+"/c0")
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "keep", func(c *corev1.ConfigMap) error { return wantValue(c, "2") }) // the rest of the commit is synced
	get(t, w.alpha, ns, "c0", &corev1.ConfigMap{})

	r.push(t, tree{"app/c3.yaml": ""}) // more is to go than what was shown
	second := w.awaitHeldPrunes(t, name, "4 of 5 objects")
	if code, out := w.rutter(t, "approve", name, "--digest", digest); code != 3 || !strings.Contains(out, second) {
		t.Errorf("approving another plan: %d %s", code, out)
	}
	if code, out := w.rutter(t, "approve", "app/"+name); code != 3 || !strings.Contains(out, second) {
		t.Errorf("a look: %d %s", code, out)
	}
	if code, out := w.rutter(t, "approve", "app/"+name, second); code != 0 {
		t.Fatalf("approve: %d %s", code, out)
	}
	for i := range 4 {
		gone(t, w.alpha, ns, fmt.Sprintf("c%d", i), &corev1.ConfigMap{})
	}
	w.awaitSynced(t, name, "")
	w.awaitNoConditions(t, name)
}

func wantValue(c *corev1.ConfigMap, value string) error {
	if c == nil || c.Data["value"] != value {
		return errors.New("has another value")
	}
	return nil
}

// awaitHeldPrunes waits until prunes are held, and returns their digest.
func (w *world) awaitHeldPrunes(t *testing.T, name string, texts ...string) string {
	t.Helper()
	app := w.awaitCondition(t, name, "PruneHeldWarning", texts...)
	for _, c := range app.Status.Conditions {
		if m := regexp.MustCompile(`rutter approve app/\S+ ([0-9a-f]{16})`).FindStringSubmatch(c.Message); m != nil {
			return m[1]
		}
	}
	t.Fatalf("no digest: %+v", app.Status.Conditions)
	return ""
}

// TestDeleteKilled kills the controller while a PreDelete hook runs and while the
// objects go: each hook runs once, and all of it comes to its end.
func TestDeleteKilled(t *testing.T) {
	p := borrow(t)
	name := unique("delete-killed")
	ns := p.alpha.namespace(t, "delete-killed")
	p.registerAlpha(t)
	p.start(t)
	waiting := strings.Replace(annotated(job("pre", "Never"), "hook", "PreDelete"), "    spec:\n", "    spec:\n      nodeSelector: {"+name+": here}\n", 1)
	r := p.repo(t, "delete-killed", tree{"app/c.yaml": configMap("c", "1"), "app/pre.yaml": waiting,
		"app/post.yaml": annotated(job("post", "Never"), "hook", "PostDelete", "hook-delete-policy", "HookFailed")})
	p.create(t, doomedApp(name, "app", ""), vars{"REPO": r.url, "NS": ns})
	p.awaitSynced(t, name, "")
	p.awaitApp(t, name, func(app *v1alpha1.Application) error {
		if len(app.Finalizers) != 5 {
			return fmt.Errorf("has the finalizers %q", app.Finalizers)
		}
		return nil
	})
	p.alpha.lock(t, &corev1.ConfigMap{}, ns, "c", "lock.acme.dev/x", "kubectl-edit")
	p.delete(t, name)
	p.awaitCondition(t, name, "DeletionBlockedWarning", "waits for the PreDelete hooks batch/Job/"+ns+"/pre")
	pre := get(t, p.alpha, ns, "pre", &batchv1.Job{})
	p.kill(t)
	p.start(t)
	p.awaitCondition(t, name, "DeletionBlockedWarning", "waits for the PreDelete hooks batch/Job/"+ns+"/pre")
	if again := get(t, p.alpha, ns, "pre", &batchv1.Job{}); again.UID != pre.UID {
		t.Error("the PreDelete hook was run again")
	}
	var nodes corev1.NodeList
	if err := p.alpha.client.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items { // now it can run
		p.alpha.patch(t, &corev1.Node{}, "", nodes.Items[i].Name, `{"metadata":{"labels":{"`+name+`":"here"}}}`)
	}
	p.awaitCondition(t, name, "DeletionBlockedWarning", "ConfigMap/"+ns+"/c is terminating", "lock.acme.dev/x")
	p.kill(t)
	p.alpha.unlock(t, &corev1.ConfigMap{}, ns, "c")
	p.start(t)
	p.awaitGone(t, name)
	gone(t, p.alpha, ns, "pre", &batchv1.Job{}) // no policy: it is cleaned up
	if post := get(t, p.alpha, ns, "post", &batchv1.Job{}); post.Status.Succeeded != 1 {
		t.Errorf("the PostDelete hook is %+v", post.Status)
	}
}
