package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
)

// recorder notes with whose rights each call to a member is made.
type recorder struct {
	mu    sync.Mutex
	calls []recorded
}

type recorded struct {
	method, path, user string
	query              url.Values
}

// record registers alpha once more, behind a server that notes every call.
func (p *plane) record(t *testing.T, name string) *recorder {
	t.Helper()
	rec := &recorder{}
	b := breakAPI(t, p.alpha.rest)
	b.inject(always, func(r *http.Request) bool {
		rec.mu.Lock()
		defer rec.mu.Unlock()
		rec.calls = append(rec.calls, recorded{r.Method, r.URL.Path, r.Header.Get("Impersonate-User"), r.URL.Query()})
		return false // nothing is broken
	}, nil)
	secret, err := cli.ClusterSecret(controlNamespace, name, b.rest())
	if err == nil {
		err = p.hub.client.Create(t.Context(), secret)
	}
	if err != nil {
		t.Fatalf("register the member: %v", err)
	}
	return rec
}

// shared reports whether a call is for no tenant: what the API serves, and the
// listings and watches of whatever carries our mark.
func (c recorded) shared() bool {
	if c.method != http.MethodGet {
		return false
	}
	for _, p := range []string{"/version", "/openapi/", "/readyz", "/livez", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"} {
		if strings.HasPrefix(c.path, p) {
			return true
		}
	}
	served := strings.Count(strings.Trim(c.path, "/"), "/") < 2 || strings.HasPrefix(c.path, "/apis/") && strings.Count(c.path, "/") == 3
	return served && c.query.Get("labelSelector") == "" || c.query.Get("labelSelector") == "rutter.dev/unit"
}

// tenantRights lets a service account manage ConfigMaps of its namespace.
func tenantRights(t *testing.T, c *cluster, ns, account string) {
	t.Helper()
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "create", "patch", "update", "delete"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: account}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: ns}}},
	} {
		if err := c.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

const lookupChart = `apiVersion: v1
kind: ConfigMap
metadata: {name: looked-up}
data:
  value: {{ (lookup "v1" "ConfigMap" .Release.Namespace "seen").data.value | quote }}
`

// TestImpersonation: every call that is made for a tenant - dry runs, applies,
// reads, prunes, repairs, the deletion, lookups of charts - is made with the
// rights of the account that its project names, and with no others. What that
// account may not do is refused by the cluster; and where the project names none
// nothing is done at all.
func TestImpersonation(t *testing.T) {
	p := borrow(t)
	member := unique("recorded")
	rec := p.record(t, member)
	p.configure(t, "argocd-cm", map[string]string{"application.sync.impersonation.enabled": "true"})
	ns, nobody := p.alpha.namespace(t, "tenant"), p.alpha.namespace(t, "tenant-nobody")
	tenantRights(t, p.alpha, ns, "deployer")
	if err := p.alpha.client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "seen"}, Data: map[string]string{"value": "looked up"}}); err != nil {
		t.Fatal(err)
	}
	project, app, chart, secretive, homeless := unique("tenants"), unique("tenant"), unique("tenant-chart"), unique("tenant-secret"), unique("tenant-none")
	r := p.repo(t, "tenant", tree{
		"app/c.yaml": configMap("c", "1"), "app/d.yaml": configMap("d", "1"), "app/hook.yaml": annotated(configMap("hook", "1"), "hook", "PreSync"),
		"secret/s.yaml":    "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {a: b}}\n",
		"chart/Chart.yaml": "{apiVersion: v2, name: chart, version: 1.0.0}\n", "chart/templates/c.yaml": lookupChart,
	})
	p.create(t, `apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: "${PROJECT}"}
spec:
  sourceRepos: ["*"]
  destinations: [{server: "*", namespace: "*"}]
  destinationServiceAccounts: [{server: "*", namespace: "${NS}", defaultServiceAccount: deployer}]
`, vars{"PROJECT": project, "NS": ns})
	p.start(t)
	of := func(name, path string) string {
		m := strings.Replace(inProject(project, name, path), "name: alpha", "name: "+member, 1)
		return strings.Replace(m, "metadata:\n", "metadata:\n  finalizers: [resources-finalizer.argocd.argoproj.io]\n", 1)
	}
	v := vars{"REPO": r.url, "NS": ns}
	p.create(t, of(app, "app"), v)
	p.create(t, of(chart, "chart"), v)
	p.create(t, of(secretive, "secret"), v)
	p.create(t, of(homeless, "app"), vars{"REPO": r.url, "NS": nobody})
	p.awaitSynced(t, app, "")
	p.awaitSynced(t, chart, "")
	if got := get(t, p.alpha, ns, "looked-up", &corev1.ConfigMap{}).Data["value"]; got != "looked up" {
		t.Errorf("the chart looked up %q", got)
	}
	p.awaitApp(t, secretive, func(a *v1alpha1.Application) error {
		if op := a.Status.OperationState; op == nil || op.FinishedAt == nil || !containsAll(fmt.Sprint(op.Message, op.SyncResult), []string{"secrets", "system:serviceaccount:" + ns + ":deployer"}) {
			return errors.New("the cluster has not refused the account")
		}
		return nil
	})
	p.awaitCondition(t, homeless, "InvalidSpecError", "no matching service account found", project)

	p.alpha.patch(t, &corev1.ConfigMap{}, ns, "c", `{"data":{"value":"by hand"}}`) // repaired
	await(t, p.alpha.client, &corev1.ConfigMapList{}, ns, "c", holds("1"))
	commit := r.push(t, tree{"app/d.yaml": "", "app/c.yaml": configMap("c", "2")}) // changed and pruned
	p.awaitSynced(t, app, commit)
	gone(t, p.alpha, ns, "d", &corev1.ConfigMap{})
	if err := p.hub.client.Delete(t.Context(), &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: app}}); err != nil {
		t.Fatal(err)
	}
	p.awaitGone(t, app)
	gone(t, p.alpha, ns, "c", &corev1.ConfigMap{})
	rec.check(t, "system:serviceaccount:"+ns+":deployer", nobody)
}

// check holds the calls against the only user that may have made them; none may
// concern the namespace for which there is no account.
func (rec *recorder) check(t *testing.T, user, nobody string) {
	t.Helper()
	rec.mu.Lock()
	defer rec.mu.Unlock()
	verbs := map[string]int{}
	for _, c := range rec.calls {
		switch {
		case c.user == user:
			verb := c.method
			if c.query.Get("dryRun") != "" {
				verb = "dry run"
			}
			verbs[verb]++
		case c.user != "" || !c.shared():
			t.Errorf("%s %s?%s is made as %q", c.method, c.path, c.query.Encode(), c.user)
		}
		if strings.Contains(c.path, "/namespaces/"+nobody) {
			t.Errorf("%s %s is made for a namespace without an account", c.method, c.path)
		}
	}
	for _, verb := range []string{http.MethodPatch, "dry run", http.MethodGet, http.MethodDelete} {
		if verbs[verb] == 0 {
			t.Errorf("the tenant made no call %s: %v", verb, verbs)
		}
	}
	t.Logf("%d calls, of the tenant's: %v", len(rec.calls), verbs)
}
