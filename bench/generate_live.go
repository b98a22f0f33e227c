package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// maxStatus is what a set's status stays under at any size.
const maxStatus = 256 << 10

// liveSet is the set at a real API server, with a controller that is a process
// of its own. Its Applications are not synced: their clusters do not exist.
type liveSet struct {
	*generateBench

	server *local.Cluster
	child  *child
	client client.Client
	// cpu is what the controller had used when the last phase was shown.
	cpu float64
	// bare is the time of a loop that makes the same Applications.
	bare time.Duration
}

// live makes the set for real, has it evaluated with nothing changed, and then
// with one label of one cluster changed.
func (b *generateBench) live(ctx context.Context) error {
	s := &liveSet{generateBench: b}
	defer s.stop(ctx)
	if err := s.bareCreates(ctx); err != nil {
		return fmt.Errorf("the bare loop: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	for _, phase := range []func(context.Context) error{s.create, s.again, s.changeOne} {
		if err := phase(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *liveSet) start(ctx context.Context) error {
	var err error
	if s.server, err = local.Start(ctx, local.Options{Name: "bench", Shape: local.Hub, Dir: filepath.Join(s.dir, "server")}); err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	if s.client, err = prepared(ctx, s.server); err != nil {
		return err
	}
	for _, c := range s.clusters("v1") {
		if err := s.member(ctx, c); err != nil {
			return err
		}
	}
	s.child, err = startController(ctx, s.server.Kubeconfig, s.mirror())
	return err
}

// prepared installs the kinds at a server and returns a client of it.
func prepared(ctx context.Context, server *local.Cluster) (client.Client, error) {
	rc, err := server.RESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	if err := daemon.Install(ctx, rc, namespace); err != nil {
		return nil, fmt.Errorf("install the CRDs: %w", err)
	}
	return daemon.NewClient(rc)
}

func (s *liveSet) stop(ctx context.Context) {
	if s.child != nil {
		s.child.stop()
	}
	if s.server != nil {
		_ = s.server.Stop(context.WithoutCancel(ctx)) // it dies with this process in any case
	}
}

// member declares a cluster that does not exist.
func (s *liveSet) member(ctx context.Context, c rutter.ClusterInfo) error {
	secret, err := cli.ClusterSecret(namespace, c.Name, &rest.Config{Host: c.Server, BearerToken: "of-nobody"})
	if err != nil {
		return fmt.Errorf("describe a cluster: %w", err)
	}
	maps.Copy(secret.Labels, c.Labels)
	if err := s.client.Create(ctx, secret); err != nil {
		return fmt.Errorf("declare a cluster: %w", err)
	}
	return nil
}

// bareCreates makes the same Applications, all prepared, at an API server of its own.
func (s *liveSet) bareCreates(ctx context.Context) error {
	server, err := local.Start(ctx, local.Options{Name: "bench-limit", Shape: local.Hub})
	if err != nil {
		return fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = server.Stop(context.WithoutCancel(ctx)) }() // it dies with this process in any case
	to, err := prepared(ctx, server)
	if err != nil {
		return err
	}
	var apps []*v1alpha1.Application
	spec := s.set.Spec.Template.Spec
	for _, c := range s.clusters("v1") {
		for i := range generateDirectories {
			app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.Name + "-" + appName(i), Labels: c.Labels}}
			app.Spec = *spec.DeepCopy()
			app.Spec.Source.Path, app.Spec.Destination.Name, app.Spec.Destination.Namespace = "apps/"+appName(i), c.Name, appName(i)
			apps = append(apps, app)
		}
	}
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loopWorkers)
	for _, app := range apps {
		g.Go(func() error { return to.Create(ctx, app) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("create Applications: %w", err)
	}
	s.bare = time.Since(began)
	return s.print(generateRow{Phase: "bare-creates", MS: s.bare.Milliseconds(), Ratio: 1, Apps: len(apps), Writes: len(apps)})
}

// create creates the set and waits for all of its Applications.
func (s *liveSet) create(ctx context.Context) error {
	began := time.Now()
	set := s.set.DeepCopy()
	if err := s.client.Create(ctx, set); err != nil {
		return fmt.Errorf("create the set: %w", err)
	}
	err := s.until(ctx, 100*time.Millisecond, func() (bool, error) {
		n, err := s.count(ctx)
		return n == s.apps, err
	})
	if err != nil {
		return fmt.Errorf("live-create: %w", err)
	}
	took := time.Since(began)
	if err := s.rest(ctx); err != nil {
		return err
	}
	return s.show(ctx, generateRow{Phase: "live-create", MS: took.Milliseconds(), Ratio: ratio(took, s.bare), Writes: s.apps})
}

// again has the set evaluated with the repository asked anew, and nothing changed.
func (s *liveSet) again(ctx context.Context) error {
	before, err := s.versions(ctx)
	if err != nil {
		return err
	}
	took, err := s.refresh(ctx)
	if err != nil {
		return fmt.Errorf("live-no-change: %w", err)
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	after, err := s.versions(ctx)
	if err != nil {
		return err
	}
	n := differing(before, after)
	if err := s.show(ctx, generateRow{Phase: "live-no-change", MS: took.Milliseconds(), Writes: n}); err != nil {
		return err
	}
	if n != 0 {
		return fmt.Errorf("%d Applications were written though nothing has changed", n)
	}
	return nil
}

// changeOne changes a label that one Application shows.
func (s *liveSet) changeOne(ctx context.Context) error {
	before, err := s.versions(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cluster-cluster-000"}}
	if err := s.client.Patch(ctx, secret, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"canary":"v2"}}}`))); err != nil {
		return fmt.Errorf("change a cluster: %w", err)
	}
	err = s.until(ctx, 20*time.Millisecond, func() (bool, error) {
		var app v1alpha1.Application
		err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "cluster-000-app-0042"}, &app)
		return app.Labels["canary"] == "v2", err
	})
	if err != nil {
		return fmt.Errorf("live-one-change: %w", err)
	}
	took := time.Since(began)
	if err := s.rest(ctx); err != nil {
		return err
	}
	after, err := s.versions(ctx)
	if err != nil {
		return err
	}
	n := differing(before, after)
	if err := s.show(ctx, generateRow{Phase: "live-one-change", MS: took.Milliseconds(), Writes: n}); err != nil {
		return err
	}
	if n != 1 {
		return fmt.Errorf("one changed element costs %d writes", n)
	}
	return nil
}

// refresh asks for an evaluation and waits until it is done.
func (s *liveSet) refresh(ctx context.Context) (time.Duration, error) {
	const annotation = "argocd.argoproj.io/application-set-refresh"
	set := &v1alpha1.ApplicationSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: s.set.Name}}
	began := time.Now()
	if err := s.client.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotation+`":"true"}}}`))); err != nil {
		return 0, fmt.Errorf("ask for a refresh: %w", err)
	}
	err := s.until(ctx, 20*time.Millisecond, func() (bool, error) {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ApplicationSet"))
		err := s.client.Get(ctx, client.ObjectKeyFromObject(set), meta)
		return meta.Annotations[annotation] == "", err
	})
	return time.Since(began), err
}

// until looks until ok, or until the controller ends.
func (s *liveSet) until(ctx context.Context, every time.Duration, ok func() (bool, error)) error {
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		if err := s.child.pause(ctx, every); err != nil {
			return err
		}
	}
}

// count is how many Applications the set has, which costs the server little.
func (s *liveSet) count(ctx context.Context) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ApplicationList"))
	if err := s.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return 0, fmt.Errorf("count the Applications: %w", err)
	}
	n := len(list.Items)
	if list.RemainingItemCount != nil {
		n += int(*list.RemainingItemCount)
	}
	return n, nil
}

// versions are the resourceVersions of all Applications of the set.
func (s *liveSet) versions(ctx context.Context) (map[string]string, error) {
	out := make(map[string]string, s.apps)
	for more := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ApplicationList"))
		if err := s.client.List(ctx, list, client.InNamespace(namespace), client.Limit(5000), client.Continue(more)); err != nil {
			return nil, fmt.Errorf("list the Applications: %w", err)
		}
		for i := range list.Items {
			out[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		if more = list.Continue; more == "" {
			return out, nil
		}
	}
}

// differing counts what is not the same in both.
func differing(a, b map[string]string) int {
	n := 0
	for name, version := range a {
		if b[name] != version {
			n++
		}
	}
	for name := range b {
		if _, known := a[name]; !known {
			n++
		}
	}
	return n
}

// rest waits until the controller sends nothing.
func (s *liveSet) rest(ctx context.Context) error {
	return (&bench{child: s.child, server: s.server}).rest(ctx)
}

// show prints a phase with the controller's peak of memory and the size of the
// set's status, which is an error where it is too large.
func (s *liveSet) show(ctx context.Context, r generateRow) error {
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("ApplicationSet"))
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.set.Name}, raw); err != nil {
		return fmt.Errorf("read the set: %w", err)
	}
	status, err := json.Marshal(raw.Object["status"])
	if err != nil {
		return fmt.Errorf("measure the status: %w", err)
	}
	if r.Apps, err = s.count(ctx); err != nil {
		return err
	}
	cpu, _, peak, err := usage(s.child.pid)
	if err != nil {
		return err
	}
	r.CPU, r.Peak, s.cpu = round(cpu-s.cpu), peak, cpu
	r.Status = len(status)
	if err := s.print(r); err != nil {
		return err
	}
	if r.Status >= maxStatus {
		return fmt.Errorf("%s: the status has %d bytes, wanted less than %d", r.Phase, r.Status, maxStatus)
	}
	return nil
}
