package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/explain"
	"github.com/rutterhq/rutter/internal/preview"
	"github.com/rutterhq/rutter/internal/testenv"
)

// canaries are strings that are nowhere else, by where they were put.
type canaries map[string]string

func (c canaries) in(place string) string {
	if c[place] == "" {
		c[place] = fmt.Sprintf("canary-%s-%x", place, time.Now().UnixNano())
	}
	return c[place]
}

// check fails the test for every canary that an output has, plain or encoded.
func (c canaries) check(t *testing.T, output, text string) {
	t.Helper()
	for place, value := range c {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value))} {
			if i := strings.Index(text, form); i >= 0 {
				t.Errorf("%s shows the canary of %s: …%s…", output, place, text[max(0, i-200):min(len(text), i+len(form)+60)])
			}
		}
	}
}

// logBuffer is a log that is read while it is written.
type logBuffer struct {
	sync.Mutex

	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) text() string {
	b.Lock()
	defer b.Unlock()
	return b.buf.String()
}

// logged starts a controller in this process on the plane and returns its log.
func (p *plane) logged(t *testing.T) *logBuffer {
	t.Helper()
	secret, err := cli.ClusterSecret(controlNamespace, "alpha", p.alpha.rest)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.hub.client.Create(t.Context(), secret); err != nil && client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	logs, bound, done := &logBuffer{}, make(chan string, 1), make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	cfg := daemon.Config{REST: p.hub.rest, Namespace: controlNamespace, DataDir: p.data, Poll: pollEvery, AllowUnsigned: true,
		Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})), Listening: func(addr string) { bound <- addr }}
	go func() { done <- daemon.Run(ctx, cfg) }()
	select {
	case p.addr = <-bound:
	case err := <-done:
		stop()
		t.Fatalf("the controller ended: %v", err)
	}
	t.Cleanup(func() { stop(); <-done })
	if err := awaitReady(ctx, p.addr); err != nil {
		t.Fatal(err)
	}
	return logs
}

const canarySet = `apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: "${SET}"}
spec:
  goTemplate: true
  generators: [{list: {elements: [{dir: app}, {dir: invalid}, {dir: echoed}]}}]
  template:
    metadata: {name: "${SET}-{{.dir}}"}
    spec:
      project: default
      source: {repoURL: "${REPO}", targetRevision: main, path: "{{.dir}}"}
      destination: {name: alpha, namespace: "${NS}"}
      syncPolicy: {automated: {}}
`

// TestCanaries: what is in a Secret is in Git and in the Secret on the member,
// and in nothing that Rutter writes or says.
func TestCanaries(t *testing.T) {
	p := borrow(t)
	logs := p.logged(t)
	c := canaries{}
	v := vars{"NS": p.alpha.namespace(t, "canary"), "SET": unique("canary")}
	encoded := base64.StdEncoding.EncodeToString([]byte(c.in("data")))
	r := p.repo(t, "canary", tree{
		"app/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, annotations: {example.com/note: " + c.in("annotation") + "}}\n" +
			"data: {token: " + encoded + "}\nstringData: {password: " + c.in("stringData") + "}\n",
		"invalid/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: invalid}\nstringData: {port: 5432, token: [" + c.in("invalid") + "]}\ndata: {token: '" + c.in("no-base64") + "'}\n",
		"echoed/s.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: echoed, annotations: {example.com/note: " + c.in("echoed-annotation") + "}}\nstringData: {token: " + c.in("echoed") + "}\n",
		"echoed/c.yaml":  configMap("beside", "1"),
	})
	v["REPO"] = r.url
	p.alpha.echo(t, v["NS"])
	r.push(t, tree{"declared/set.yaml": v.expand(canarySet)})
	p.create(t, canarySet, v)
	app := v["SET"] + "-app"
	p.awaitSynced(t, app, "")
	p.alpha.patch(t, &corev1.Secret{}, v["NS"], "s", fmt.Sprintf(`{"stringData":{"password":%q,"new":%q},"metadata":{"annotations":{"example.com/note":%q,"kubectl.kubernetes.io/last-applied-configuration":%q}}}`,
		c.in("live"), c.in("live-new"), c.in("live-annotation"), `{"stringData":{"password":"`+c.in("last-applied")+`"}}`))
	p.awaitState(t, app, "OutOfSync", "Healthy")
	for _, dir := range []string{"invalid", "echoed"} {
		p.awaitApp(t, v["SET"]+"-"+dir, func(a *v1alpha1.Application) error {
			if op := a.Status.OperationState; len(a.Status.Conditions) == 0 && (op == nil || op.Phase == "Running" || op.Phase == "Succeeded") {
				return errors.New("says nothing of what is wrong")
			}
			return nil
		})
	}
	base := r.git(t, "rev-parse", "HEAD")
	head := r.commit(t, tree{"app/s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: " + c.in("planned") + "}\n"})
	for _, dir := range []string{"app", "invalid", "echoed"} {
		p.checkAnswers(t, c, v["SET"]+"-"+dir)
	}
	p.checkPlan(t, c, r, base, head)
	p.checkWritten(t, c)
	if logs.text() == "" {
		t.Error("nothing is logged")
	}
	c.check(t, "the log", logs.text())
}

// echo has the cluster refuse a Secret, also in a dry run, with words that quote it.
func (c *cluster) echo(t *testing.T, ns string) {
	t.Helper()
	for _, text := range []string{`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NS}, spec: {failurePolicy: Fail,
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}]},
  validations: [{expression: "object.metadata.name != 'echoed'", messageExpression: "'the token is ' + string(object.data['token']) + ', noted ' + object.metadata.annotations['example.com/note']"}]}}`,
		`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: NS}, spec: {policyName: NS, validationActions: [Deny],
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NS}}}}}`} {
		obj := object(t, strings.ReplaceAll(text, "NS", ns))
		if err := c.client.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.client.Delete(context.Background(), obj) })
	}
	testenv.Eventually(t, patience, func() error {
		probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "echoed", Namespace: ns, Annotations: map[string]string{"example.com/note": "n"}}, Data: map[string][]byte{"token": []byte("probe")}}
		err := c.client.Create(t.Context(), probe, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "the token is cHJvYmU=") {
			return fmt.Errorf("is not refused with its own words: %w", err)
		}
		return nil
	})
}

// checkAnswers looks at what rutter app diff and explain answer.
func (p *plane) checkAnswers(t *testing.T, c canaries, app string) {
	t.Helper()
	cfg := daemon.DiffConfig{REST: p.hub.rest, Namespace: controlNamespace, App: client.ObjectKey{Namespace: controlNamespace, Name: app}}
	report, err := daemon.Diff(t.Context(), cfg)
	c.check(t, "diff of "+app, marshalled(t, report)+fmt.Sprint(err))
	answer, err := daemon.Explain(t.Context(), cfg)
	c.check(t, "explain of "+app, marshalled(t, answer)+explain.Text(answer)+fmt.Sprint(err))
}

func (p *plane) checkPlan(t *testing.T, c canaries, r *repo, base, head string) {
	t.Helper()
	plan, err := daemon.Plan(t.Context(), daemon.PlanConfig{Repo: r.clone, Base: base, Head: head, URLs: []string{r.url}, Namespace: controlNamespace,
		REST: p.hub.rest, KubeVersion: "v1.37.0", CacheDir: filepath.Join(t.TempDir(), "plan")})
	c.check(t, "the plan", preview.Text(plan, preview.TextOptions{Width: 400})+marshalled(t, plan)+fmt.Sprint(err))
}

// checkWritten looks at what the controller wrote to the clusters, and its metrics.
func (p *plane) checkWritten(t *testing.T, c canaries) {
	t.Helper()
	for name, list := range map[string]client.ObjectList{"Applications": &v1alpha1.ApplicationList{}, "sets": &v1alpha1.ApplicationSetList{}, "events": &corev1.EventList{}} {
		if err := p.hub.client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		c.check(t, "the control plane's "+name, marshalled(t, list))
	}
	var events corev1.EventList
	if err := p.alpha.client.List(t.Context(), &events); err != nil {
		t.Fatal(err)
	}
	c.check(t, "the member's events", marshalled(t, events))
	c.check(t, "/metrics", string(fetch(t, p.addr, "/metrics")))
}

func marshalled(t *testing.T, x any) string {
	t.Helper()
	data, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
