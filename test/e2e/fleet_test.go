package e2e

import (
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/local"
)

// member registers alpha once more, under a name and a URL of its own, as a
// member that the test may break or remove.
func (w *world) member(t *testing.T, name string, labels map[string]string) *local.Proxy {
	t.Helper()
	proxy, err := local.NewProxy(t.Context(), w.alpha.rest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	secret, err := cli.ClusterSecret(controlNamespace, name, proxy.RESTConfig(w.alpha.rest))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(secret.Labels, labels)
	if err := w.hub.client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.discard(object(t, "{apiVersion: v1, kind: Secret, metadata: {name: "+secret.Name+", namespace: "+controlNamespace+"}}"))
	})
	return proxy
}

// secretOf finds the Secret of a member.
func (w *world) secretOf(t *testing.T, member string) *corev1.Secret {
	t.Helper()
	var list corev1.SecretList
	if err := w.hub.client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if s := &list.Items[i]; s.Labels["argocd.argoproj.io/secret-type"] == "cluster" && string(s.Data["name"]) == member {
			return s
		}
	}
	t.Fatalf("there is no Secret of cluster %s", member)
	return nil
}

const clusterSet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${SET}"}
spec:
  goTemplate: true
  goTemplateOptions: [missingkey=error]
  generators:
    - clusters:
        selector: {matchLabels: {fleet: "${SET}"}}
        values: {tier: '{{index .metadata.labels "tier"}}'}
  syncPolicy: {preserveResourcesOnDeletion: ${PRESERVE}}
  template:
    metadata:
      name: '${SET}-{{.name}}'
    spec:
      project: default
      source: {repoURL: "${REPO}", targetRevision: main, path: 'tiers/{{.values.tier}}'}
      destination: {server: '{{.server}}', namespace: '${SET}-{{.name}}'}
      syncPolicy:
        automated: {prune: true, selfHeal: true}
        syncOptions: [CreateNamespace=true]
`

// TestClusterGenerator adds members to a set, takes their label away and
// removes them, with and without preserveResourcesOnDeletion.
func TestClusterGenerator(t *testing.T) {
	t.Parallel()
	w := start(t)
	r := w.repo(t, "fleet", tree{"tiers/gold/web.yaml": deployment("web", 2), "tiers/base/web.yaml": deployment("web", 1)})

	for name, preserve := range map[string]bool{"cascade": false, "preserve": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := unique(name)
			a, b, c := set+"-a", set+"-b", set+"-c"
			w.member(t, a, map[string]string{"fleet": set, "tier": "gold"})
			w.member(t, b, map[string]string{"fleet": set, "tier": "base"})
			w.create(t, clusterSet, vars{"SET": set, "REPO": r.url, "PRESERVE": fmt.Sprint(preserve)})
			appOf := func(member string) string { return set + "-" + member }
			w.awaitSynced(t, appOf(a), "")
			w.awaitSynced(t, appOf(b), "")
			checkReplicas(t, w.alpha, appOf(a), 2)
			checkReplicas(t, w.alpha, appOf(b), 1)

			w.member(t, c, map[string]string{"fleet": set, "tier": "gold"}) // a third one comes
			w.awaitSynced(t, appOf(c), "")

			w.hub.patch(t, &corev1.Secret{}, controlNamespace, w.secretOf(t, c).Name, `{"metadata":{"labels":{"fleet":null}}}`)
			w.awaitGone(t, appOf(c))
			if preserve {
				checkReplicas(t, w.alpha, appOf(c), 2)
			} else {
				gone(t, w.alpha, appOf(c), "web", &appsv1.Deployment{})
			}

			if err := w.hub.client.Delete(t.Context(), w.secretOf(t, b)); err != nil { // the member itself goes
				t.Fatal(err)
			}
			w.awaitGone(t, appOf(b))
			checkReplicas(t, w.alpha, appOf(b), 1) // its workloads are out of reach, and stay

			w.awaitSynced(t, appOf(a), "") // untouched by all that
			checkHeld(t, w, set, a)
			deleteSet(t, w, set)
			w.awaitGone(t, appOf(a))
			if preserve {
				checkReplicas(t, w.alpha, appOf(a), 2)
			} else {
				gone(t, w.alpha, appOf(a), "web", &appsv1.Deployment{})
			}
		})
	}
}

// checkHeld takes the last member's label away: a set that comes to generate
// nothing deletes nothing, says so, and goes on when the member is back.
func checkHeld(t *testing.T, w *world, set, member string) {
	t.Helper()
	secret := w.secretOf(t, member).Name
	w.hub.patch(t, &corev1.Secret{}, controlNamespace, secret, `{"metadata":{"labels":{"fleet":null}}}`)
	await(t, w.hub.client, &v1alpha1.ApplicationSetList{}, controlNamespace, set, func(s *v1alpha1.ApplicationSet) error {
		if s == nil {
			return fmt.Errorf("set %s is gone", set)
		}
		for _, c := range s.Status.Conditions {
			if containsAll(c.Message, []string{"generates nothing"}) {
				return nil
			}
		}
		return fmt.Errorf("no condition says that the removal is held: %+v", s.Status.Conditions)
	})
	get(t, w.hub, controlNamespace, set+"-"+member, &v1alpha1.Application{})
	w.hub.patch(t, &corev1.Secret{}, controlNamespace, secret, fmt.Sprintf(`{"metadata":{"labels":{"fleet":%q}}}`, set))
	w.awaitSynced(t, set+"-"+member, "")
}

func deleteSet(t *testing.T, w *world, set string) {
	t.Helper()
	s := &v1alpha1.ApplicationSet{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: set}}
	if err := w.hub.client.Delete(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func checkReplicas(t *testing.T, c *cluster, ns string, want int32) {
	t.Helper()
	if got := *get(t, c, ns, "web", &appsv1.Deployment{}).Spec.Replicas; got != want {
		t.Errorf("%s/web has %d replicas, wanted %d", ns, got, want)
	}
}
