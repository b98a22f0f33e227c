package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/deploy"
)

// fieldOwner is the manager of what is installed into a control plane.
const fieldOwner = client.FieldOwner("rutter-install")

// NewClient builds a client that knows every kind that is installed.
func NewClient(rc *rest.Config) (client.WithWatch, error) {
	s := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(s), apiextensionsv1.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	rc = rest.CopyConfig(rc)
	rc.QPS = -1
	c, err := client.NewWithWatch(rc, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("reach the control plane: %w", err)
	}
	return c, nil
}

// Install makes a cluster a control plane: the CRDs and the namespace. What is
// there already is brought up to date.
func Install(ctx context.Context, rc *rest.Config, namespace string) error {
	c, err := NewClient(rc)
	if err != nil {
		return err
	}
	names, err := fs.Glob(deploy.CRDs, "crds/*.yaml")
	if err != nil {
		return fmt.Errorf("find the CRDs: %w", err)
	}
	var crds []string
	for _, name := range names {
		crd, err := installCRD(ctx, c, name)
		if err != nil {
			return err
		}
		crds = append(crds, crd)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Create(ctx, ns, fieldOwner); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", namespace, err)
	}
	return awaitEstablished(ctx, c, crds)
}

func installCRD(ctx context.Context, c client.Client, file string) (string, error) {
	data, err := deploy.CRDs.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return "", fmt.Errorf("decode %s: %w", file, err)
	}
	var live apiextensionsv1.CustomResourceDefinition
	err = c.Get(ctx, client.ObjectKeyFromObject(&crd), &live)
	if apierrors.IsNotFound(err) {
		err = c.Create(ctx, &crd, fieldOwner)
	} else if err == nil {
		crd.ResourceVersion = live.ResourceVersion
		err = c.Update(ctx, &crd, fieldOwner)
	}
	if err != nil {
		return "", fmt.Errorf("install %s: %w", crd.Name, err)
	}
	return crd.Name, nil
}

// awaitEstablished returns when the API server serves the kinds.
func awaitEstablished(ctx context.Context, c client.Client, crds []string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		open := 0
		for _, name := range crds {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
				return fmt.Errorf("read %s: %w", name, err)
			}
			if !established(&crd) {
				open++
			}
		}
		if open == 0 {
			if served, err := serves(ctx, c); served || err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("stopped while installing: %w", ctx.Err())
		}
	}
}

// serves reports whether the API server has told of all kinds: it does so a moment
// after they are established.
func serves(ctx context.Context, c client.Client) (bool, error) {
	for _, list := range []client.ObjectList{&v1alpha1.ApplicationList{}, &v1alpha1.ApplicationSetList{}, &v1alpha1.AppProjectList{}} {
		switch err := c.List(ctx, list, client.Limit(1)); {
		case apimeta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("look whether the kinds are served: %w", err)
		}
	}
	return true, nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, cond := range crd.Status.Conditions {
		if cond.Type == apiextensionsv1.Established {
			return cond.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}
