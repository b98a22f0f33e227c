package e2e

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/explain"
)

// inProject is an Application of a project that never tries a failed sync again.
func inProject(project, name, path string) string {
	return strings.Replace(application(name, path, "    retry: {limit: 0}\n"), "project: default", "project: "+project, 1)
}

// in puts an object into a namespace of its own.
func in(namespace, manifest string) string {
	return strings.Replace(manifest, "metadata:\n", "metadata:\n  namespace: "+namespace+"\n", 1)
}

// awaitSaid waits until some condition of an Application has all of the texts.
func (w *world) awaitSaid(t *testing.T, name string, texts ...string) {
	t.Helper()
	app := w.awaitApp(t, name, func(app *v1alpha1.Application) error {
		for _, c := range app.Status.Conditions {
			if containsAll(c.Message, texts) {
				return nil
			}
		}
		return fmt.Errorf("no condition with %q", texts)
	})
	if app.Status.Sync.Status == "Synced" {
		t.Errorf("%s says Synced", name)
	}
}

// TestB54DenyNeverWidens: a project allows one namespace and denies two. A fourth
// one is denied, when the Application is admitted and for each object.
func TestB54DenyNeverWidens(t *testing.T) {
	t.Parallel()
	w := start(t)
	allowed, denied, other := w.alpha.namespace(t, "b54-a"), w.alpha.namespace(t, "b54-b"), w.alpha.namespace(t, "b54-d")
	project := unique("b54")
	good, admitted, applied := unique("b54-good"), unique("b54-admitted"), unique("b54-applied")
	r := w.repo(t, "b54", tree{"app/c.yaml": configMap("c", "1"), "stray/c.yaml": configMap("s", "1"), "stray/d.yaml": in(other, configMap("d", "1"))})
	v := vars{"REPO": r.url, "NS": allowed, "PROJECT": project, "SERVER": w.alpha.rest.Host, "DENIED": denied}
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: "${PROJECT}"}
spec:
  sourceRepos: ["*"]
  destinations:
    - {server: "${SERVER}", namespace: "${NS}"}
    - {server: "${SERVER}", namespace: "!${DENIED}"}
    - {server: "${SERVER}", namespace: "!b54-c"}
`, v)
	w.create(t, inProject(project, good, "app"), v)
	w.create(t, inProject(project, admitted, "app"), vars{"REPO": r.url, "NS": other})
	w.create(t, inProject(project, applied, "stray"), v)
	w.awaitSynced(t, good, "")
	w.awaitCondition(t, admitted, "InvalidSpecError", "spec.destination", other, "no entry of spec.destinations allows it")
	w.awaitSaid(t, applied, other, "no entry of spec.destinations allows it")
	gone(t, w.alpha, other, "c", &corev1.ConfigMap{})
	gone(t, w.alpha, other, "d", &corev1.ConfigMap{})
	gone(t, w.alpha, allowed, "s", &corev1.ConfigMap{}) // nothing is applied when a part may not be

	w.hub.patch(t, &v1alpha1.AppProject{}, controlNamespace, project, // one more denial is not one more permission
		fmt.Sprintf(`{"spec":{"destinations":[{"server":%q,"namespace":%q},{"server":%[1]q,"namespace":"!b"},{"server":"!https://nowhere","namespace":"*"}]}}`, w.alpha.rest.Host, allowed))
	w.editApp(t, admitted, `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`)
	w.awaitApp(t, admitted, func(app *v1alpha1.Application) error {
		if app.Annotations["argocd.argoproj.io/refresh"] != "" {
			return errors.New("it has not been looked at again")
		}
		return nil
	})
	w.awaitCondition(t, admitted, "InvalidSpecError", "no entry of spec.destinations allows it")
	gone(t, w.alpha, other, "c", &corev1.ConfigMap{})
}

// TestB55PrivateCluster: a cluster that is registered for a project alone is no
// way around the namespaces that the project allows.
func TestB55PrivateCluster(t *testing.T) {
	t.Parallel()
	w := start(t)
	allowed, other := w.alpha.namespace(t, "b55-a"), w.alpha.namespace(t, "b55-b")
	project, member := unique("b55"), unique("b55-member")
	w.member(t, member, nil)
	secret := w.secretOf(t, member)
	w.hub.patch(t, &corev1.Secret{}, controlNamespace, secret.Name, fmt.Sprintf(`{"stringData":{"project":%q}}`, project))
	r := w.repo(t, "b55", tree{"app/c.yaml": configMap("c", "1"), "stray/d.yaml": in(other, configMap("d", "1"))})
	v := vars{"REPO": r.url, "PROJECT": project, "NS": allowed}
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: "${PROJECT}"}
spec:
  sourceRepos: ["*"]
  destinations: [{server: "https://somewhere-else", namespace: "${NS}"}]
`, v)
	strangers := w.project(t, "b55-strangers")
	good, admitted, applied, foreign := unique("b55-good"), unique("b55-admitted"), unique("b55-applied"), unique("b55-foreign")
	at := func(project, name, path string) string {
		return strings.Replace(inProject(project, name, path), "name: alpha", "name: "+member, 1)
	}
	w.create(t, at(project, good, "app"), v)
	w.create(t, at(project, admitted, "app"), vars{"REPO": r.url, "NS": other})
	w.create(t, at(project, applied, "stray"), v)
	w.create(t, at(strangers, foreign, "app"), v)
	w.awaitSynced(t, good, "")
	w.awaitCondition(t, admitted, "InvalidSpecError", "spec.destination", other)
	w.awaitSaid(t, applied, other)
	w.awaitCondition(t, foreign, "InvalidSpecError", "registered for project "+project+" only")
	gone(t, w.alpha, other, "c", &corev1.ConfigMap{})
	gone(t, w.alpha, other, "d", &corev1.ConfigMap{})
}

// windows replaces the sync windows of a project.
func (w *world) windows(t *testing.T, project string, entries ...string) {
	t.Helper()
	w.hub.patch(t, &v1alpha1.AppProject{}, controlNamespace, project, `{"spec":{"syncWindows":[`+strings.Join(entries, ",")+`]}}`)
}

func syncWindow(kind, schedule, duration, more string) string {
	return fmt.Sprintf(`{"kind":%q,"schedule":%q,"duration":%q,"applications":["*"]%s}`, kind, schedule, duration, more)
}

// project makes a project that allows everything.
func (w *world) project(t *testing.T, prefix string) string {
	t.Helper()
	name := unique(prefix)
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: "${PROJECT}"}
spec:
  sourceRepos: ["*"]
  destinations: [{server: "*", namespace: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`, vars{"PROJECT": name})
	return name
}

// TestB37Windows: (a) of two windows that allow syncs one is active: they run.
// (b) What was pushed while they were denied is synced by itself at the moment at
// which a window opens; until then a person is refused and it is said until when.
func TestB37Windows(t *testing.T) {
	t.Parallel()
	w := start(t)
	project, app := w.project(t, "b37"), unique("b37")
	ns := w.alpha.namespace(t, "b37")
	r := w.repo(t, "b37", tree{"app/c.yaml": configMap("c", "1")})
	never := syncWindow("allow", "0 0 29 2 *", "1m", `,"description":"leap days"`)
	w.windows(t, project, never, syncWindow("allow", "* * * * *", "1h", ""))
	w.create(t, inProject(project, app, "app"), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "") // (a)

	w.windows(t, project, never, syncWindow("deny", "* * * * *", "1h", `,"description":"freeze"`))
	w.awaitApp(t, app, func(*v1alpha1.Application) error { return nil })
	time.Sleep(500 * time.Millisecond) // the project is in force; there is nothing to see of it yet
	commit := r.push(t, tree{"app/c.yaml": configMap("c", "2")})
	w.awaitCondition(t, app, "SyncWindowWarning", "no sync now: denied by", "freeze")
	w.editApp(t, app, `{"operation":{"initiatedBy":{"username":"ann"},"sync":{}}}`)
	w.awaitApp(t, app, ended("Failed", "blocked by sync window: denied by"))
	answer, err := daemon.Explain(t.Context(), daemon.DiffConfig{REST: w.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}})
	if text := explain.Text(answer); err != nil || !containsAll(text, []string{"sync window", "freeze"}) {
		t.Errorf("%v\n%s", err, text)
	}
	if v := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}).Data["value"]; v != "1" {
		t.Errorf("the value is %q though syncs are denied", v)
	}

	opens := time.Now().UTC().Truncate(time.Minute).Add(time.Minute)
	if time.Until(opens) < 5*time.Second {
		opens = opens.Add(time.Minute)
	}
	w.windows(t, project, never, syncWindow("allow", fmt.Sprintf("%d %d * * *", opens.Minute(), opens.Hour()), "1h", ""))
	w.awaitCondition(t, app, "SyncWindowWarning", "outside of", "until "+opens.Format(time.RFC3339))
	done := w.awaitSynced(t, app, commit) // (b)
	if began := done.Status.OperationState.StartedAt.Time; began.Before(opens) || began.After(opens.Add(20*time.Second)) {
		t.Errorf("the sync began at %s, the window opened at %s", began, opens)
	}
}

// TestB37WindowCloses: (c) a window closes while a sync waits. It goes on, ends at
// once when somebody terminates it, and the Application can be deleted.
func TestB37WindowCloses(t *testing.T) {
	t.Parallel()
	w := start(t)
	project, app := w.project(t, "b37c"), unique("b37c")
	ns := w.alpha.namespace(t, "b37c")
	stuck := annotated(strings.Replace(suspendedJob("stuck", "a"), "      restartPolicy", "      nodeSelector: {nowhere: \"true\"}\n      restartPolicy", 1), "hook", "PreSync")
	stuck = strings.Replace(stuck, "  suspend: true\n", "", 1)
	r := w.repo(t, "b37c", tree{"app/c.yaml": configMap("c", "1"), "app/stuck.yaml": stuck})
	w.windows(t, project, syncWindow("allow", "* * * * *", "1h", ""))
	manifest := strings.Replace(inProject(project, app, "app"), "metadata:\n", "metadata:\n  finalizers: [resources-finalizer.argocd.argoproj.io]\n", 1)
	w.create(t, manifest, vars{"REPO": r.url, "NS": ns})
	w.awaitApp(t, app, running("waiting for"))
	w.windows(t, project, syncWindow("deny", "* * * * *", "1h", ""))
	time.Sleep(time.Second) // nothing is to happen, which has no event to wait for
	begun := time.Now()
	w.terminate(t, app)
	w.awaitApp(t, app, ended("Failed", "Operation terminated"))
	if d := time.Since(begun); d > 15*time.Second {
		t.Errorf("it was terminated after %s", d)
	}
	gone(t, w.alpha, ns, "stuck", &batchv1.Job{})
	if err := w.hub.client.Delete(t.Context(), &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: app}}); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, app)
}

// TestAnyNamespace: an Application outside the control plane's namespace is acted
// on where the operator and the project let it, under a name of its own.
func TestAnyNamespace(t *testing.T) {
	t.Parallel()
	w := start(t)
	home := w.hub.namespace(t, "tenant-apps")
	stranger := w.hub.namespace(t, "tenant-apps-stranger")
	project, app := unique("any"), unique("any")
	ns, own := w.alpha.namespace(t, "any"), w.alpha.namespace(t, "any-own")
	r := w.repo(t, "any", tree{"app/c.yaml": configMap("c", "1")})
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: "${PROJECT}"}
spec:
  sourceRepos: ["*"]
  sourceNamespaces: ["${HOME}"]
  destinations: [{server: "*", namespace: "*"}]
`, vars{"PROJECT": project, "HOME": home})
	w.create(t, in(home, inProject(project, app, "app")), vars{"REPO": r.url, "NS": ns})
	w.create(t, inProject(project, app, "app"), vars{"REPO": r.url, "NS": own}) // the same name, at home
	w.create(t, in(stranger, inProject(project, app, "app")), vars{"REPO": r.url, "NS": ns})
	at := func(namespace string, ok func(*v1alpha1.Application) error) {
		t.Helper()
		await(t, w.hub.client, &v1alpha1.ApplicationList{}, namespace, app, func(a *v1alpha1.Application) error {
			if a == nil {
				return errors.New("does not exist")
			}
			return ok(a)
		})
	}
	for namespace, want := range map[string]struct{ ns, id string }{
		home: {ns, home + "_" + app}, controlNamespace: {own, app},
	} {
		at(namespace, func(a *v1alpha1.Application) error { return syncedAt(a, "") })
		id := get(t, w.alpha, want.ns, "c", &corev1.ConfigMap{}).Annotations["argocd.argoproj.io/tracking-id"]
		if id != want.id+":/ConfigMap:"+want.ns+"/c" {
			t.Errorf("in namespace %s: the tracking id is %q", namespace, id)
		}
	}
	at(stranger, func(a *v1alpha1.Application) error {
		for _, c := range a.Status.Conditions {
			if c.Type == "InvalidSpecError" && strings.Contains(c.Message, fmt.Sprintf("application '%s' in namespace '%s' is not permitted to use project '%s'", app, stranger, project)) {
				return nil
			}
		}
		return errors.New("it is not refused")
	})
}

// signed makes commits of a clone signed by a new SSH key, and returns its fingerprint.
func (r *repo) signed(t *testing.T) string {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-l", "-f", key+".pub").Output()
	if err != nil {
		t.Fatal(err)
	}
	r.git(t, "config", "gpg.format", "ssh")
	r.git(t, "config", "user.signingkey", key+".pub")
	r.git(t, "config", "commit.gpgsign", "true")
	return strings.Fields(string(out))[1]
}

// TestSignedCommits: under signatureKeys a commit is rendered only if it is signed
// with one of the keys. What is live stays meanwhile, and objects that come with a
// sync itself are refused.
func TestSignedCommits(t *testing.T) {
	t.Parallel()
	w := start(t)
	project, app := w.project(t, "signed"), unique("signed")
	ns := w.alpha.namespace(t, "signed")
	r := w.repo(t, "signed", tree{"README": "unsigned"})
	key := r.signed(t)
	first := r.push(t, tree{"app/c.yaml": configMap("c", "1")})
	w.hub.patch(t, &v1alpha1.AppProject{}, controlNamespace, project, fmt.Sprintf(`{"spec":{"signatureKeys":[{"keyID":%q}]}}`, key))
	w.create(t, inProject(project, app, "app"), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, first)

	r.git(t, "config", "commit.gpgsign", "false")
	bad := r.push(t, tree{"app/c.yaml": configMap("c", "2")})
	w.awaitCondition(t, app, "ComparisonError", "spec.source", "commit "+bad, "is not signed", key, project)
	if v := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}).Data["value"]; v != "1" {
		t.Errorf("the value is %q by an unsigned commit", v)
	}
	r.signed(t) // by another key
	other := r.push(t, tree{"app/c.yaml": configMap("c", "3")})
	w.awaitCondition(t, app, "ComparisonError", "commit "+other, "is signed with key SHA256:", "none of the keys "+key)
	if v := get(t, w.alpha, ns, "c", &corev1.ConfigMap{}).Data["value"]; v != "1" {
		t.Errorf("the value is %q by somebody else's commit", v)
	}
	w.hub.patch(t, &v1alpha1.AppProject{}, controlNamespace, project, `{"spec":{"signatureKeys":null}}`)
	w.awaitSynced(t, app, other)
}

// TestOrphanedResources: objects in the namespace of a destination that nobody
// declares are counted, but for those that are ignored, owned, made by Kubernetes
// or another Application's.
func TestOrphanedResources(t *testing.T) {
	t.Parallel()
	w := start(t)
	project, app, other := w.project(t, "orphans"), unique("orphans"), unique("orphans-other")
	ns := w.alpha.namespace(t, "orphans")
	w.hub.patch(t, &v1alpha1.AppProject{}, controlNamespace, project,
		`{"spec":{"orphanedResources":{"warn":true,"ignore":[{"kind":"ConfigMap","name":"ignored-*"}]},"namespaceResourceBlacklist":[{"group":"","kind":"Secret"}]}}`)
	r := w.repo(t, "orphans", tree{"app/c.yaml": deployment("web", 1), "other/d.yaml": configMap("d", "1")})
	w.create(t, inProject(project, app, "app"), vars{"REPO": r.url, "NS": ns})
	w.create(t, application(other, "other", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, other, "")
	for _, name := range []string{"stray", "ignored-1"} {
		if err := w.alpha.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.alpha.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "not-ours"}}); err != nil {
		t.Fatal(err)
	}
	w.awaitSynced(t, app, "")
	refresh := func() {
		w.editApp(t, app, `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"normal"}}}`)
	}
	refresh()
	w.awaitCondition(t, app, "OrphanedResourceWarning", "Application has 1 orphaned resources", "ConfigMap/"+ns+"/stray")
	if err := w.alpha.client.Delete(t.Context(), get(t, w.alpha, ns, "stray", &corev1.ConfigMap{})); err != nil {
		t.Fatal(err)
	}
	refresh()
	w.awaitNoConditions(t, app)
}

// TestProjectCommands: projects are listed with what is wide in them, and their
// sync windows are added, listed and deleted; a window that cannot be read is refused.
func TestProjectCommands(t *testing.T) {
	t.Parallel()
	w := start(t)
	project := w.project(t, "commands")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"proj", "list"}, 0, project},
		{[]string{"proj", "get", project}, 0, "Warning:               spec.sourceRepos[0]: * allows every repository"},
		{[]string{"proj", "windows", "add", project, "--kind", "deny", "--schedule", "* * * * *", "--duration", "1h", "--applications", "*", "--description", "freeze"}, 0, "window 0 is added"},
		{[]string{"proj", "windows", "add", project, "--kind", "deny", "--schedule", "never", "--duration", "1h", "--applications", "*"}, 2, "spec.syncWindows[1]"},
		{[]string{"proj", "windows", "list", project}, 0, "Active"},
		{[]string{"proj", "windows", "list", project, "-o", "json"}, 0, `"description": "freeze"`},
		{[]string{"proj", "windows", "delete", project, "1"}, 2, "has 1 windows"},
		{[]string{"proj", "windows", "delete", project, "0"}, 0, "is deleted"},
		{[]string{"proj", "get", project, "-o", "json"}, 0, `"problems": []`},
		{[]string{"proj", "get", "nobody"}, 2, "nobody"},
	} {
		if code, said := w.rutter(t, c.args...); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%v: exit %d, wanted %d and %q:\n%s", c.args, code, c.code, c.want, said)
		}
	}
}
