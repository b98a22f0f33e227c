package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/local"
	"github.com/rutterhq/rutter/internal/testenv"
)

// patience is how long anything may take on a machine that is busy with other
// tests. What is usually the case is logged, not asserted.
const patience = 90 * time.Second

// cluster is a cluster and a client of its administrator.
type cluster struct {
	process *local.Cluster
	rest    *rest.Config
	client  client.WithWatch
}

func startCluster(ctx context.Context, name string, shape local.Shape) (*cluster, error) {
	process, err := local.Start(ctx, local.Options{Name: name, Shape: shape})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	rc, err := process.RESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", name, err)
	}
	c, err := newClient(rc)
	return &cluster{process: process, rest: rc, client: c}, err
}

func newClient(rc *rest.Config) (client.WithWatch, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), apiextensionsv1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	c, err := client.NewWithWatch(rc, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// serial makes names unique when a test runs more than once.
var serial atomic.Int64

// unique returns a name of the test's own.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, serial.Add(1)) }

// namespace makes a namespace of the test's own on a cluster.
func (c *cluster) namespace(t *testing.T, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: unique(prefix)}}
	if err := c.client.Create(t.Context(), ns); err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	return ns.Name
}

// vars replaces names in manifests, such as REPO by a URL.
type vars map[string]string

func (v vars) expand(text string) string {
	pairs := make([]string, 0, 2*len(v))
	for name, value := range v {
		pairs = append(pairs, "${"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// create makes the objects of a YAML text in the control plane. The server
// refuses unknown fields. Applications and sets go when the test ends.
func (w *world) create(t *testing.T, text string, v vars) {
	t.Helper()
	for doc := range strings.SplitSeq(v.expand(text), "\n---\n") {
		obj := object(t, doc)
		if obj.GetNamespace() == "" {
			obj.SetNamespace(controlNamespace)
		}
		if err := w.hub.client.Create(t.Context(), obj, client.FieldValidation("Strict")); err != nil {
			t.Fatalf("create %s %s: %v\n%s", obj.GetKind(), obj.GetName(), err, doc)
		}
		t.Cleanup(func() { w.discard(obj) })
	}
}

// discard removes an object without what it manages, so that the controller
// does not go on working for a test that has ended.
func (w *world) discard(obj *unstructured.Unstructured) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	raw := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	_ = w.hub.client.Patch(ctx, obj, raw) // best effort: the hub is thrown away
	_ = w.hub.client.Delete(ctx, obj)
}

func object(t *testing.T, doc string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(doc), &obj.Object); err != nil {
		t.Fatalf("decode: %v\n%s", err, doc)
	}
	return obj
}

// get reads an object of a member and fails the test when it cannot be read.
func get[T client.Object](t *testing.T, c *cluster, namespace, name string, into T) T {
	t.Helper()
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatalf("read %T %s/%s: %v", into, namespace, name, err)
	}
	return into
}

// gone fails the test unless an object comes not to exist.
func gone(t *testing.T, c *cluster, namespace, name string, obj client.Object) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		err := c.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%T %s/%s still exists (%w)", obj, namespace, name, err)
	})
}

// patch changes an object as a person with kubectl would.
func (c *cluster) patch(t *testing.T, obj client.Object, namespace, name, merge string) {
	t.Helper()
	obj.SetNamespace(namespace)
	obj.SetName(name)
	raw := client.RawPatch("application/merge-patch+json", []byte(merge))
	if err := c.client.Patch(t.Context(), obj, raw, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatalf("patch %T %s/%s: %v", obj, namespace, name, err)
	}
}

// editApp changes an Application as a person with kubectl would.
func (w *world) editApp(t *testing.T, name, merge string) {
	t.Helper()
	w.hub.patch(t, &v1alpha1.Application{}, controlNamespace, name, merge)
}
