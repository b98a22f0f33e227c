package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/internal/source/registrytest"
)

const helmContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// dependencyChart packs a library of one ConfigMap that says its version.
func dependencyChart(t *testing.T, version string) registrytest.Layer {
	return registrytest.Layer{MediaType: helmContent, Data: registrytest.TarGzip(t, tree{
		"dep/Chart.yaml":       "apiVersion: v2\nname: dep\nversion: " + version + "\n",
		"dep/templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dep}\ndata: {value: {{ .Chart.Version | quote }}}\n",
	})}
}

// TestRenderingB20 has a chart in Git with a dependency in a private registry,
// whose credentials are registered for a path prefix without a scheme. Without
// them the error names what was considered; once they are there, and each time
// they are there again, everything works by itself.
func TestRenderingB20(t *testing.T) {
	t.Parallel()
	w := start(t)
	reg := registrytest.Start(t, registrytest.Options{TLS: true, User: "puller", Password: "hunter2-canary", Token: true})
	for _, v := range []string{"1.0.0", "1.1.0"} {
		reg.Push(t, "team/charts/dep", v, "application/vnd.cncf.helm.config.v1+json", dependencyChart(t, v))
	}
	trust := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: "argocd-tls-certs-cm"}, Data: map[string]string{}}
	for _, host := range []string{reg.Host, reg.TokenHost} {
		trust.Data[strings.Split(host, ":")[0]] = reg.CA
	}
	if err := w.hub.client.Create(t.Context(), trust); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.hub.client.Delete(t.Context(), trust) })
	parent := func(version string) string {
		return "apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n- {name: dep, version: " + version + ", repository: 'oci://" + reg.Host + "/team/charts'}\n"
	}
	name := unique("private")
	ns := w.alpha.namespace(t, "private")
	r := w.repo(t, "private", tree{"chart/Chart.yaml": parent("1.0.0")})
	w.create(t, application(name, "chart", ""), vars{"REPO": r.url, "NS": ns})
	app := w.awaitCondition(t, name, "ComparisonError", "dep", reg.Host)
	if text := describe(app); !strings.Contains(text, "credential") {
		t.Errorf("the error does not speak of credentials: %s", text)
	}

	login := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: name, Labels: map[string]string{"argocd.argoproj.io/secret-type": "repo-creds"}},
			StringData: map[string]string{"type": "helm", "enableOCI": "true", "url": reg.Host + "/team", "username": "puller", "password": "hunter2-canary"}}
	}
	add := func() {
		t.Helper()
		if err := w.hub.client.Create(t.Context(), login()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = w.hub.client.Delete(t.Context(), login()) })
	add()
	w.awaitSynced(t, name, "")
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "dep", holds("1.0.0"))

	if err := w.hub.client.Delete(t.Context(), login()); err != nil {
		t.Fatal(err)
	}
	head := r.push(t, tree{"chart/Chart.yaml": parent("~1.1")})
	app = w.awaitCondition(t, name, "ComparisonError", "dep", reg.Host)
	if text := describe(app); strings.Contains(text, "hunter2") {
		t.Errorf("the status shows the password: %s", text)
	}
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "dep", holds("1.0.0")) // what is live stays
	add()
	w.awaitSynced(t, name, head)
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "dep", holds("1.1.0"))
}

// TestChartAndArtifact deploys a chart of a registry and an OCI artifact, as
// sources of one application, and follows a range of versions.
func TestChartAndArtifact(t *testing.T) {
	t.Parallel()
	w := start(t)
	reg := registrytest.Start(t, registrytest.Options{})
	push := func(version string) {
		reg.Push(t, "charts/dep", version, "application/vnd.cncf.helm.config.v1+json", dependencyChart(t, version))
		reg.Push(t, "artifacts/app", version, "application/vnd.oci.empty.v1+json", registrytest.Layer{MediaType: "application/vnd.cncf.flux.content.v1.tar+gzip",
			Data: registrytest.TarGzip(t, tree{"deploy/c.yaml": configMap("art", version)})})
	}
	push("1.0.0")
	plain := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: controlNamespace, Name: unique("plain"), Labels: map[string]string{"argocd.argoproj.io/secret-type": "repo-creds"}},
		StringData: map[string]string{"type": "oci", "enableOCI": "true", "insecureOCIForceHttp": "true", "url": "oci://" + reg.Host}}
	if err := w.hub.client.Create(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.hub.client.Delete(t.Context(), plain) })
	name := unique("oci")
	ns := w.alpha.namespace(t, "oci")
	w.create(t, `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: "${NAME}"}
spec:
  project: default
  sources:
    - {repoURL: "${HOST}/charts", chart: dep, targetRevision: 1.*}
    - {repoURL: "oci://${HOST}/artifacts/app", path: deploy, targetRevision: ">=1.0.0 <2.0.0"}
  destination: {name: alpha, namespace: "${NS}"}
  syncPolicy: {automated: {}}
`, vars{"HOST": reg.Host, "NS": ns, "NAME": name})
	app := w.awaitSynced(t, name, "")
	if r := app.Status.Sync.Revisions; len(r) != 2 || r[0] != "1.0.0" || !strings.HasPrefix(r[1], "sha256:") {
		t.Errorf("revisions are %v, wanted the chart's version and a digest", r)
	}
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "dep", holds("1.0.0"))
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "art", holds("1.0.0"))
	push("1.2.0")
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "dep", holds("1.2.0"))
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "art", holds("1.2.0"))
}
