package argo_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/render"
	"github.com/rutterhq/rutter/internal/testenv"
)

func TestMain(m *testing.M) {
	render.MaybeChild()
	os.Exit(m.Run())
}

// patience is how long anything may take on a busy machine.
const patience = 60 * time.Second

// plane is a namespace of a real control plane, and a controller that works in
// it alone.
type plane struct {
	*testing.T

	ns     string
	env    *testenv.Env
	client client.WithWatch
	writes *writes
	// log is the controller's, shown when the test fails; all tests end before it.
	log *bytes.Buffer
}

// install is held by who brings the CRDs up to date.
var install sync.Mutex

func newPlane(t *testing.T) *plane {
	t.Helper()
	t.Parallel()
	env := testenv.Hub(t)
	p := &plane{T: t, env: env, ns: env.Namespace(t), writes: &writes{}, log: &bytes.Buffer{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	install.Lock()
	err := daemon.Install(t.Context(), env.RESTConfig(), p.ns)
	install.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	c, err := daemon.NewClient(env.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	p.client = c
	return p
}

// start runs a controller until stop is called, or the test ends. Each has a
// folder of its own, as after the loss of the disk.
func (p *plane) start(sets daemon.SetConfig) (stop func()) {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	rc := p.env.RESTConfig()
	rc.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, p.writes} })
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, daemon.Config{REST: rc, Namespace: p.ns, DataDir: p.TempDir(), Sets: sets,
			Logger: slog.New(slog.NewTextHandler(p.log, nil))})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			p.Errorf("the controller ended with: %v", err)
		}
	})
	p.Cleanup(stop)
	return stop
}

// writes are the requests of a controller that change something.
type writes struct {
	mu  sync.Mutex
	all []string
}

type counting struct {
	next http.RoundTripper
	to   *writes
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.to.mu.Lock()
		c.to.all = append(c.to.all, r.Method+" "+r.URL.Path)
		c.to.mu.Unlock()
	}
	return c.next.RoundTrip(r)
}

// of are the writes to some resource, without those of statuses.
func (w *writes) of(resource string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, one := range w.all {
		if strings.Contains(one, "/"+resource) && !strings.HasSuffix(one, "/status") {
			out = append(out, one)
		}
	}
	return out
}

// reset forgets what was written.
func (w *writes) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = nil
}

// setText is a set of Applications that nothing can be rendered of.
const setText = `
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: fleet}
spec:
  goTemplate: true
  generators: [%s]
  template:
    metadata:
      name: '{{.name}}'
      labels: {tier: one}
    spec:
      project: default
      source: {repoURL: 'https://git.invalid/fleet.git', path: '{{.name}}'}
      destination: {server: 'https://kubernetes.default.svc', namespace: shop}
      syncPolicy: {automated: {}}
`

// set is one with that generator.
func (p *plane) set(generator string, change ...func(*v1alpha1.ApplicationSet)) *v1alpha1.ApplicationSet {
	p.Helper()
	set := &v1alpha1.ApplicationSet{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, setText, generator), set); err != nil {
		p.Fatal(err)
	}
	set.Namespace = p.ns
	for _, c := range change {
		c(set)
	}
	return set
}

// names is a list generator.
func names(of ...string) string {
	elements := make([]string, 0, len(of))
	for _, n := range of {
		elements = append(elements, "{name: "+n+"}")
	}
	return "{list: {elements: [" + strings.Join(elements, ", ") + "]}}"
}

func (p *plane) create(o client.Object) {
	p.Helper()
	if err := p.client.Create(p.Context(), o); err != nil {
		p.Fatal(err)
	}
}

// change writes the set anew.
func (p *plane) change(change func(*v1alpha1.ApplicationSet)) {
	p.Helper()
	set := p.live()
	before := set.DeepCopy()
	change(set)
	if err := p.client.Patch(p.Context(), set, client.MergeFrom(before)); err != nil {
		p.Fatal(err)
	}
}

// generators changes those of the set.
func (p *plane) generators(generator string) {
	p.Helper()
	next := p.set(generator)
	p.change(func(set *v1alpha1.ApplicationSet) { set.Spec.Generators = next.Spec.Generators })
}

func (p *plane) live() *v1alpha1.ApplicationSet {
	p.Helper()
	set := &v1alpha1.ApplicationSet{}
	if err := p.client.Get(p.Context(), types.NamespacedName{Namespace: p.ns, Name: "fleet"}, set); err != nil {
		p.Fatal(err)
	}
	return set
}

// apps are the Applications that are there and are not being deleted, by name.
func (p *plane) apps() map[string]*v1alpha1.Application {
	p.Helper()
	var list v1alpha1.ApplicationList
	if err := p.client.List(p.Context(), &list, client.InNamespace(p.ns)); err != nil {
		p.Fatal(err)
	}
	out := map[string]*v1alpha1.Application{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out[list.Items[i].Name] = &list.Items[i]
		}
	}
	return out
}

// await waits for exactly these Applications, all of which must pass.
func (p *plane) await(want []string, pass ...func(*v1alpha1.Application) error) {
	p.Helper()
	testenv.Eventually(p, patience, func() error {
		var got []string
		for name, app := range p.apps() {
			got = append(got, name)
			for _, ok := range pass {
				if err := ok(app); err != nil {
					return fmt.Errorf("Application %s: %w", name, err)
				}
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			return fmt.Errorf("the Applications are %q, want %q", got, want)
		}
		return nil
	})
}

// awaitCondition waits until a condition of the set is as said.
func (p *plane) awaitCondition(of v1alpha1.ApplicationSetConditionType, status, reason string, texts ...string) *v1alpha1.ApplicationSet {
	p.Helper()
	var set *v1alpha1.ApplicationSet
	testenv.Eventually(p, patience, func() error {
		set = p.live()
		for _, c := range set.Status.Conditions {
			if c.Type != of || c.Status != status || c.Reason != reason {
				continue
			}
			if !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(c.Message, t) }) {
				return nil
			}
		}
		return fmt.Errorf("no condition is %s=%s %s with %q: %+v", of, status, reason, texts, set.Status.Conditions)
	})
	return set
}

// rutter runs the command line, and returns what it printed and its exit code.
func (p *plane) rutter(args ...string) (string, int) {
	p.Helper()
	var out bytes.Buffer
	args = append([]string{"--kubeconfig", p.env.Kubeconfig, "-n", p.ns}, args...)
	code := cli.Main(p.Context(), args, strings.NewReader(""), &out, &out, "test", cli.Deps{})
	return out.String(), code
}

// says runs the command line, which must end so and print these texts.
func (p *plane) says(code int, args string, texts ...string) {
	p.Helper()
	out, got := p.rutter(strings.Split(args, " ")...)
	if got != code {
		p.Errorf("rutter %s: ended with %d, want %d: %s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			p.Errorf("rutter %s: does not say %q: %s", args, text, out)
		}
	}
}

// repository is a Git repository with folders.
func repository(t *testing.T, folders ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repo")
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(dir, f), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f, "x.yaml"), []byte("x: 1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "-q", "-b", "main")
	commit(t, dir)
	return dir
}

// write changes a file of a repository.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commit commits all that is there.
func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "add", ".")
	git(t, dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", args, err, out)
	}
}
