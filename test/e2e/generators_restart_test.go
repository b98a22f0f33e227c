package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/testenv"
)

// listsOf matches the requests for all objects of some kinds, be it by a list
// or by a watch that begins with one.
func listsOf(kinds ...string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasSuffix(r.URL.Path, "/"+kind) })
	}
}

// members makes a set of the clusters with a label, of which there are three,
// and waits until their Applications are synced.
func (p *plane) members(t *testing.T, prefix string) (s *scene, names []string) {
	t.Helper()
	names = []string{prefix + "-one", prefix + "-two", prefix + "-three"}
	s = p.scene(t, prefix, names...)
	for _, name := range names {
		s.join(t, name, map[string]string{"fleet": s.set, "round": "r0"})
	}
	s.create(t, strings.NewReplacer("labels: {", `labels: {round: "{{.metadata.labels.round}}", `, `name: "`+s.member+`"`, `name: "{{.name}}"`).
		Replace(s.text(`    - clusters: {selector: {matchLabels: {fleet: "${SET}"}}}`, "", "")))
	s.awaitSynced(t, names...)
	return s, names
}

// round changes a label of every member, and relabelled waits until the set's
// Applications show it: the members are seen again.
func (s *scene) round(t *testing.T, names []string, round string) {
	t.Helper()
	for _, name := range names {
		s.w.hub.patch(t, &corev1.Secret{}, controlNamespace, s.w.secretOf(t, name).Name, fmt.Sprintf(`{"metadata":{"labels":{"round":%q}}}`, round))
	}
}

func (s *scene) relabelled(t *testing.T, names []string, round string) {
	t.Helper()
	for _, name := range names {
		s.w.awaitApp(t, s.app(name), func(app *v1alpha1.Application) error {
			if got := app.Labels["round"]; got != round {
				return fmt.Errorf("it is of round %q, wanted %q", got, round)
			}
			return nil
		})
	}
}

// TestGeneratorsB1ClusterListFails ends the watch of cluster credentials and
// has the lists that follow fail, each in another way.
func TestGeneratorsB1ClusterListFails(t *testing.T) {
	t.Parallel()
	p := borrow(t)
	p.start(t)
	s, names := p.members(t, "b1")
	secrets := listsOf("secrets")
	var faults []*fault
	for _, broken := range []act{fail(http.StatusInternalServerError), cutAfter(700), page, hangUp} {
		faults = append(faults, p.api.inject(1, secrets, broken))
	}
	p.api.drop(secrets) // the watch ends, and what was missed must be listed
	s.round(t, names, "r1")
	for _, f := range faults {
		f.await(t, 1)
		s.awaitApps(t, names...)
		s.deleted(t)
	}
	s.relabelled(t, names, "r1")
	s.deleted(t)
	s.awaitWell(t)
	s.awaitSynced(t, names...)
}

// TestGeneratorsB1ClusterListFailsAtTheStart has every list fail that the
// controller begins with: what it does not know yet is not nothing.
func TestGeneratorsB1ClusterListFailsAtTheStart(t *testing.T) {
	t.Parallel()
	p := borrow(t)
	p.start(t)
	s, names := p.members(t, "b1start")
	for _, kinds := range [][]string{{"secrets"}, {"applications"}, {"appprojects", "applicationsets", "configmaps"}} {
		p.kill(t)
		for _, kind := range kinds {
			p.api.inject(1, listsOf(kind), fail(http.StatusInternalServerError))
			p.api.inject(1, listsOf(kind), cutAfter(900))
			p.api.inject(1, listsOf(kind), page)
		}
		s.round(t, names, kinds[0])
		p.start(t)
		s.relabelled(t, names, kinds[0])
		p.api.mend()
		s.awaitApps(t, names...)
		s.deleted(t)
	}
	s.awaitSynced(t, names...)
}

// TestGeneratorsB13LocalCluster is a fresh install, of which the only member is
// the control plane itself.
func TestGeneratorsB13LocalCluster(t *testing.T) {
	t.Parallel()
	p := borrow(t)
	p.start(t)
	all, labelled := p.stage(t, "b13", "in-cluster", "hub"), p.stage(t, "b13-labelled", "in-cluster", "hub")
	for _, s := range []*scene{all, labelled} {
		s.ns = p.hub.namespace(t, "b13")
	}
	generated := func(s *scene, selector string) string {
		return strings.Replace(s.text("    - clusters: {"+selector+"}", "", ""), `name: ""`, `name: "{{.name}}"`, 1)
	}
	all.create(t, generated(all, ""))
	all.awaitSynced(t, "in-cluster")
	labelled.create(t, generated(labelled, "selector: {matchLabels: {env: hub}}"))
	labelled.awaitWell(t)
	labelled.awaitApps(t)

	const secret = `apiVersion: v1
kind: Secret
metadata: {name: local, labels: {argocd.argoproj.io/secret-type: cluster, env: hub}}
stringData: {name: in-cluster, server: https://kubernetes.default.svc, config: '{"tlsClientConfig":{"insecure":false}}'}
`
	p.create(t, secret, nil) // it gets labels
	labelled.awaitSynced(t, "in-cluster")
	all.awaitApps(t, "in-cluster")
	if err := p.hub.client.Delete(t.Context(), object(t, strings.Replace(secret, "name: local,", "name: local, namespace: "+controlNamespace+",", 1))); err != nil {
		t.Fatal(err)
	}
	labelled.awaitHeld(t, 1, "generates nothing")
	all.awaitApps(t, "in-cluster")
	all.awaitSynced(t, "in-cluster")
	for _, s := range []*scene{all, labelled} {
		if gone := s.seen.deleted(); len(gone) > 0 {
			t.Errorf("Applications were deleted: %v", gone)
		}
	}
}

// placementKind is a kind of placement decisions, such as people have.
const placementKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: placements.fleet.example.com}
spec:
  group: fleet.example.com
  names: {kind: Placement, plural: placements}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// placement makes a placement that decides for some members, and the generator
// that asks it.
func (p *plane) placement(t *testing.T, s *scene, members ...string) (generator string, decide func(members ...string)) {
	t.Helper()
	crd := object(t, placementKind)
	if err := p.hub.client.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.discard(crd) })
	testenv.Eventually(t, patience, func() error {
		got := get(t, p.hub, "", crd.GetName(), &apiextensionsv1.CustomResourceDefinition{})
		for _, c := range got.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == "True" {
				return nil
			}
		}
		return errors.New("the kind is not served yet")
	})
	s.create(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${SET}-placement'}\ndata: {apiVersion: fleet.example.com/v1, kind: placements, statusListKey: decisions, matchKey: clusterName}\n")
	s.create(t, "apiVersion: fleet.example.com/v1\nkind: Placement\nmetadata: {name: '${SET}'}\n")
	decide = func(members ...string) {
		list := []any{}
		for _, m := range members {
			list = append(list, map[string]any{"clusterName": m})
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "fleet.example.com/v1", "kind": "Placement"}}
		get(t, p.hub, controlNamespace, s.set, obj)
		obj.Object["status"] = map[string]any{"decisions": list}
		if err := p.hub.client.Status().Update(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	decide(members...)
	return s.vars().expand(`    - clusterDecisionResource: {configMapRef: "${SET}-placement", name: "${SET}", requeueAfterSeconds: 1, values: {id: 'place-{{.name}}'}}`), decide
}

// TestGeneratorsAllInputsFailOverARestart has one set that asks everything that
// can be asked. All of it breaks, and then the controller is killed: the one
// that is started then never saw an answer.
func TestGeneratorsAllInputsFailOverARestart(t *testing.T) {
	t.Parallel()
	p := borrow(t)
	g := sharedGitea(t)
	frozen := []string{"git-a", "git-b", "place-m1", "place-m2", "plugin-p", "plugin-q", "pr-1", "pr-2", "scm-r1", "scm-r2", "scm-r3"}
	fresh := []string{"git-c", "plugin-r", "place-m3", "scm-r4"}
	s := p.scene(t, "all", append(append(listed(4), frozen...), fresh...)...)
	for _, name := range []string{"m1", "m2", "m3"} {
		s.join(t, name, nil)
	}
	folders := p.repo(t, "all-folders", tree{"env/a/x": "1", "env/b/x": "1"})
	server := breakHTTP(t, p.git.URL())
	url := strings.Replace(folders.url, p.git.URL(), server.server.URL, 1)
	org := unique("org")
	g.organization(t, org, 2, "r1", "r2", "r3")
	forge := breakHTTP(t, g.url)
	s.create(t, g.tokenSecret(s.set+"-token"))
	service, plugins := s.service(t, "p", "q")
	placement, decide := p.placement(t, s, "m1", "m2")
	p.start(t)
	generators := strings.Join([]string{`    - git: {repoURL: "` + url + `", revision: main, directories: [{path: env/*}], values: {id: 'git-{{.path.basename}}'}}`,
		s.scmProvider(forge.server.URL, org), s.pullRequest(forge.server.URL, org, "r1"), s.plugin(), placement}, "\n")
	s.create(t, s.byID(generators, "l0"))
	s.awaitSynced(t, append(slices.Clone(frozen), "l0")...)
	before := s.objects(t)

	for _, b := range []*breaker{server, forge, plugins} {
		b.swap(anything, page)
	}
	refused := p.api.swap(listsOf("placements/"+s.set), fail(http.StatusInternalServerError))
	folders.commit(t, tree{"env/b/x": "", "env/c/x": "1"})
	g.repository(t, org, "r4")
	service.set("p", "r")
	decide("m1", "m3")
	pushed(t, p.addr, url)
	s.awaitInputsFailed(t)
	refused.await(t, 1)
	s.change(t, s.byID(generators, "l0", "l1"))
	s.awaitSynced(t, "l1")
	s.deleted(t)

	p.kill(t)
	s.change(t, s.byID(generators, "l0", "l1", "l2"))
	p.data = t.TempDir() // nothing but the control plane remembers
	p.start(t)
	s.awaitSynced(t, "l2")
	s.awaitInputsFailed(t)
	s.awaitApps(t, append(slices.Clone(frozen), "l0", "l1", "l2")...)
	s.remakes(t, "git-b") // what is lost meanwhile comes back from memory
	s.change(t, s.byID(generators, "l0", "l1", "l2", "l3"))
	s.awaitSynced(t, "l3")
	for name, uid := range s.objects(t) {
		if old, known := before[name]; known && old != uid && name != "git-b" {
			t.Errorf("object %s was replaced", name)
		}
	}

	for _, b := range []*breaker{server, forge, plugins, p.api} {
		b.mend()
	}
	s.awaitSynced(t, fresh...)
	for _, e := range []string{"git-b", "plugin-q", "place-m2"} {
		s.w.awaitGone(t, s.app(e))
	}
	s.awaitWell(t)
	s.deleted(t, "git-b", "place-m2", "plugin-q")
}

// remakes deletes an Application, as a person might, and waits until the set has
// made it again.
func (s *scene) remakes(t *testing.T, element string) {
	t.Helper()
	app := get(t, s.w.hub, controlNamespace, s.app(element), &v1alpha1.Application{})
	uid := app.UID
	if err := s.w.hub.client.Delete(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	s.w.awaitApp(t, s.app(element), func(app *v1alpha1.Application) error {
		if app.UID == uid {
			return errors.New("it is still the old one")
		}
		return syncedAt(app, "")
	})
}
