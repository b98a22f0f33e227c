package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/gitserver"
)

const folderSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${SET}"}
spec:
  goTemplate: true
  generators:
    - git: {repoURL: "${REPO}", revision: main, directories: [{path: apps/*}]}
  template:
    metadata: {name: '${SET}-{{.path.basename}}'}
    spec:
      project: default
      source: {repoURL: "${APPS}", path: '{{.path.path}}', targetRevision: main}
      destination: {name: alpha, namespace: "${NS}"}
      syncPolicy: {automated: {prune: true}}
`

// TestSetSourceGone takes away the repository that a set's generator reads: the
// Applications and their objects stay, and the set says why it cannot tell.
func TestSetSourceGone(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns := w.alpha.namespace(t, "setgone")
	set := unique("setgone")
	files := tree{"apps/one/c.yaml": configMap("one", "1"), "apps/two/c.yaml": configMap("two", "1")}
	folders, apps := w.repo(t, "folders", files), w.repo(t, "apps", files)
	w.create(t, folderSet, vars{"SET": set, "REPO": folders.url, "APPS": apps.url, "NS": ns})
	w.awaitSynced(t, set+"-one", "")
	w.awaitSynced(t, set+"-two", "")

	if err := os.Rename(folders.bare, folders.bare+".away"); err != nil {
		t.Fatal(err)
	}
	pushed(t, w.addr, folders.url)
	await(t, w.hub.client, &v1alpha1.ApplicationSetList{}, controlNamespace, set, func(s *v1alpha1.ApplicationSet) error {
		for _, c := range s.Status.Conditions {
			if c.Type == "ErrorOccurred" && c.Status == "True" && strings.Contains(c.Message, folders.url) {
				return nil
			}
		}
		return fmt.Errorf("no condition names the repository: %+v", s.Status.Conditions)
	})
	commit := apps.push(t, tree{"apps/one/c.yaml": configMap("one", "2")}) // the Applications themselves go on
	w.awaitSynced(t, set+"-one", commit)
	w.awaitSynced(t, set+"-two", commit)
	get(t, w.alpha, ns, "two", &corev1.ConfigMap{})

	if err := os.Rename(folders.bare+".away", folders.bare); err != nil {
		t.Fatal(err)
	}
	folders.push(t, tree{"apps/two/c.yaml": "", "apps/three/c.yaml": configMap("three", "1")})
	w.awaitGone(t, set+"-two") // now it is known that it is not wanted
	w.awaitState(t, set+"-one", "Synced", "Healthy")
	w.awaitCondition(t, set+"-three", "ComparisonError", "apps/three") // the other repository has no such folder
}

// TestCredentials reads a repository behind a password: without one, with a
// wrong one and with the right one, from a Secret that is a template for a
// prefix. No message shows a password.
func TestCredentials(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("login")
	ns := w.alpha.namespace(t, "login")
	dir := t.TempDir()
	server, err := gitserver.Start(t.Context(), gitserver.Options{Dir: dir, Users: map[string]string{"bot": "s3cret-right"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	src := w.repo(t, "login", tree{"app/c.yaml": configMap("c", "1")})
	src.git(t, "push", "--quiet", initBare(t, dir+"/team/private.git"), "HEAD:refs/heads/main")
	url := server.URL() + "/team/private.git"
	w.create(t, application(app, "app", ""), vars{"REPO": url, "NS": ns})
	w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		if len(app.Status.Conditions) == 0 || !strings.Contains(app.Status.Conditions[0].Message, url) {
			return errors.New("no condition names the repository")
		}
		return inState(app, "Unknown", "Unknown")
	})

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: app,
		Labels: map[string]string{"argocd.argoproj.io/secret-type": "repo-creds"}},
		StringData: map[string]string{"type": "git", "url": server.URL() + "/team", "username": "bot", "password": "s3cret-wrong"}}
	if err := w.hub.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.discard(object(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+secret.Name+", namespace: "+controlNamespace+"}}"))
	})
	w.editApp(t, app, `{"metadata":{"annotations":{"argocd.argoproj.io/refresh":"hard"}}}`)
	w.awaitApp(t, app, func(app *v1alpha1.Application) error {
		for _, c := range app.Status.Conditions {
			if strings.Contains(c.Message, "s3cret") {
				t.Errorf("a condition shows the password: %s", c.Message)
			}
		}
		if app.Annotations["argocd.argoproj.io/refresh"] != "" || app.Status.Sync.Status != "Unknown" {
			return errors.New("not refused yet")
		}
		return nil
	})
	w.hub.patch(t, &corev1.Secret{}, controlNamespace, secret.Name, `{"stringData":{"password":"s3cret-right"}}`)
	w.awaitSynced(t, app, "")
	w.awaitNoConditions(t, app)
}

func initBare(t *testing.T, dir string) string {
	t.Helper()
	if err := gitserver.Init(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestShared has one object in two Applications: both say so, and they do not
// overwrite each other without end.
func TestShared(t *testing.T) {
	w := start(t) // not parallel: it counts what is sent
	first, second := unique("shared-a"), unique("shared-b")
	ns := w.alpha.namespace(t, "shared")
	r := w.repo(t, "shared", tree{"a/c.yaml": configMap("both", "a"), "b/c.yaml": configMap("both", "b")})
	v := vars{"REPO": r.url, "NS": ns}
	w.create(t, application(first, "a", ""), v)
	w.awaitSynced(t, first, "")
	w.create(t, application(second, "b", ""), v)
	w.awaitApp(t, second, func(app *v1alpha1.Application) error {
		if app.Status.OperationState == nil || app.Status.OperationState.Phase == "Running" {
			return errors.New("has not been tried")
		}
		return nil
	})
	w.awaitApp(t, first, func(app *v1alpha1.Application) error { return sharedWith(app, second) })
	before := counter(t, w.addr, "rutter_objects_applied_total")
	time.Sleep(3 * time.Second) // nothing may happen
	if n := counter(t, w.addr, "rutter_objects_applied_total") - before; n > 1 {
		t.Errorf("%v writes within 3 s of an object that two Applications declare", n)
	}
	refused := get(t, w.hub, controlNamespace, second, &v1alpha1.Application{})
	if m := refused.Status.OperationState.Message; refused.Status.Sync.Status != "OutOfSync" || !strings.Contains(m, "carries the mark of "+first) {
		t.Errorf("the second is %s: %s", refused.Status.Sync.Status, m)
	}
	if err := errors.Join(sharedWith(refused, first), holds("a")(get(t, w.alpha, ns, "both", &corev1.ConfigMap{}))); err != nil {
		t.Errorf("the object of the first is touched: %v", err)
	}
	if err := w.hub.client.Delete(t.Context(), get(t, w.hub, controlNamespace, second, &v1alpha1.Application{})); err != nil {
		t.Fatal(err)
	}
	w.awaitSynced(t, first, "")
	if err := holds("a")(get(t, w.alpha, ns, "both", &corev1.ConfigMap{})); err != nil {
		t.Error(err)
	}
}

// TestSharedGoesOver: the second of two Applications that declare an object gets it,
// as it is, when the first declares it no more.
func TestSharedGoesOver(t *testing.T) {
	t.Parallel()
	w := start(t)
	first, second := unique("over-a"), unique("over-b")
	ns := w.alpha.namespace(t, "over")
	r := w.repo(t, "over", tree{"a/c.yaml": configMap("both", "a"), "a/own.yaml": configMap("own", "a"), "b/c.yaml": configMap("both", "b")})
	v := vars{"REPO": r.url, "NS": ns}
	w.create(t, application(first, "a", ""), v)
	w.awaitSynced(t, first, "")
	uid := get(t, w.alpha, ns, "both", &corev1.ConfigMap{}).UID
	w.create(t, application(second, "b", ""), v)
	w.awaitApp(t, second, func(app *v1alpha1.Application) error { return sharedWith(app, first) })
	r.push(t, tree{"a/c.yaml": ""})
	w.awaitSynced(t, second, "")
	w.awaitSynced(t, first, "")
	both := get(t, w.alpha, ns, "both", &corev1.ConfigMap{})
	if err := holds("b")(both); err != nil || both.UID != uid {
		t.Errorf("it did not go over: %v, UID %s, was %s", err, both.UID, uid)
	}
}

func sharedWith(app *v1alpha1.Application, other string) error {
	for _, c := range app.Status.Conditions {
		if c.Type == "SharedResourceWarning" && strings.Contains(c.Message, other) {
			return nil
		}
	}
	return fmt.Errorf("no SharedResourceWarning names %s", other)
}

// TestDeleteWhileDown deletes an Application whose cluster does not answer: it
// waits, says so, and is done when the cluster is back.
func TestDeleteWhileDown(t *testing.T) {
	t.Parallel()
	w := start(t)
	member := unique("late")
	proxy := w.member(t, member, nil)
	ns := w.alpha.namespace(t, member)
	r := w.repo(t, member, tree{"app/c.yaml": configMap("c", "1")})
	text := strings.Replace(application(member, "app", ""), "name: alpha", "name: "+member, 1)
	w.create(t, strings.Replace(text, "metadata:\n", "metadata:\n  finalizers: ["+cascadeFinalizer+"]\n", 1), vars{"REPO": r.url, "NS": ns})
	app := w.awaitSynced(t, member, "")

	proxy.Cut()
	w.awaitCondition(t, member, "ComparisonError", "does not answer")
	if err := w.hub.client.Delete(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	w.awaitCondition(t, member, "DeletionError", "does not answer")
	get(t, w.alpha, ns, "c", &corev1.ConfigMap{})

	proxy.Restore()
	w.awaitGone(t, member)
	gone(t, w.alpha, ns, "c", &corev1.ConfigMap{})
}

// TestDeclarations has mistakes in what Applications declare: each is named,
// and nothing is touched.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns := w.alpha.namespace(t, "mistakes")
	r := w.repo(t, "mistakes", tree{"app/c.yaml": configMap("c", "1"), "bad/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  name: d\n",
		"nokind/c.yaml": "apiVersion: no.such.group/v1\nkind: Nothing\nmetadata: {name: n}\n"})
	for _, tt := range []struct {
		name, path, old, new string
		texts                []string
	}{
		{"no-cluster", "app", "name: alpha", "name: nowhere", []string{"nowhere"}},
		{"no-project", "app", "project: default", "project: absent", []string{"absent"}},
		{"no-path", "absent", "", "", []string{"absent"}},
		{"no-branch", "app", "targetRevision: main", "targetRevision: absent", []string{"absent"}},
		{"bad-yaml", "bad", "", "", []string{"bad/c.yaml:5", "name"}},
		{"no-kind", "nokind", "  syncPolicy:\n", "  syncPolicy:\n    retry: {limit: 0}\n", []string{"Nothing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			name := unique("mistake-" + tt.name)
			w.create(t, strings.Replace(application(name, tt.path, ""), tt.old, tt.new, 1), vars{"REPO": r.url, "NS": ns})
			app := w.awaitApp(t, name, func(app *v1alpha1.Application) error {
				for _, c := range app.Status.Conditions {
					if strings.HasSuffix(c.Type, "Error") && containsAll(c.Message, tt.texts) {
						return nil
					}
				}
				return fmt.Errorf("no error with %q", tt.texts)
			})
			if app.Status.Sync.Status == "Synced" {
				t.Errorf("%s says Synced", name)
			}
			gone(t, w.alpha, ns, "c", &corev1.ConfigMap{})
		})
	}
}

// TestEmpty empties a folder in Git, and then removes it: neither deletes what
// is live, and allowEmpty is what it takes.
func TestEmpty(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("empty")
	ns := w.alpha.namespace(t, "empty")
	r := w.repo(t, "empty", tree{"app/c.yaml": configMap("c", "1"), "app/README.md": "a folder\n"})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	uid := uidOf(t, w.alpha, ns)

	r.push(t, tree{"app/c.yaml": ""})
	w.awaitCondition(t, app, "SyncError", "allowEmpty")
	w.awaitState(t, app, "OutOfSync", "Healthy")
	if uidOf(t, w.alpha, ns) != uid {
		t.Error("the object was replaced when the folder became empty")
	}
	r.push(t, tree{"app/README.md": ""})
	w.unknown(t, app, "app")
	if uidOf(t, w.alpha, ns) != uid {
		t.Error("the object was replaced when the folder went")
	}
	commit := r.push(t, tree{"app/README.md": "empty on purpose\n"})
	w.editApp(t, app, `{"spec":{"syncPolicy":{"automated":{"allowEmpty":true}}}}`)
	gone(t, w.alpha, ns, "c", &corev1.ConfigMap{})
	w.awaitSynced(t, app, commit)
}

// TestClusterLogin takes the right of a member's login away and gives it back.
func TestClusterLogin(t *testing.T) {
	t.Parallel()
	w := start(t)
	member := unique("rotated")
	w.member(t, member, nil)
	ns := w.alpha.namespace(t, member)
	r := w.repo(t, member, tree{"app/c.yaml": configMap("c", "1")})
	w.create(t, strings.Replace(application(member, "app", ""), "name: alpha", "name: "+member, 1), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, member, "")
	uid := uidOf(t, w.alpha, ns)

	secret := w.secretOf(t, member)
	good := string(secret.Data["config"])
	setConfig := func(config string) {
		w.hub.patch(t, &corev1.Secret{}, controlNamespace, secret.Name, fmt.Sprintf(`{"stringData":{"config":%q}}`, config))
	}
	setConfig(`{"bearerToken":"s3cret-token","tlsClientConfig":{"insecure":true}}`)
	commit := r.push(t, tree{"app/c.yaml": configMap("c", "2")})
	app := w.awaitApp(t, member, func(app *v1alpha1.Application) error {
		if len(app.Status.Conditions) == 0 || app.Status.Sync.Status == "Synced" {
			return errors.New("shows no problem")
		}
		return nil
	})
	for _, c := range app.Status.Conditions {
		t.Logf("%s: %s", c.Type, c.Message)
		if strings.Contains(c.Message, "s3cret") {
			t.Error("a condition shows the token")
		}
	}
	if uidOf(t, w.alpha, ns) != uid {
		t.Error("the object was replaced")
	}
	setConfig(good)
	w.awaitSynced(t, member, commit)
	w.awaitNoConditions(t, member)
	if err := holds("2")(get(t, w.alpha, ns, "c", &corev1.ConfigMap{})); err != nil || uidOf(t, w.alpha, ns) != uid {
		t.Errorf("after the login is back: %v", err)
	}
}
