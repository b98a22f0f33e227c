package daemon

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/policy"
	"github.com/rutterhq/rutter/internal/signature"
)

// surroundings are what counts for projects besides themselves.
type surroundings struct {
	globals []policy.GlobalProject
	// repositories are those that are scoped to a project.
	repositories map[string][]string
}

// readSurroundings asks a control plane.
func readSurroundings(ctx context.Context, c client.Client, namespace string) (surroundings, error) {
	var out surroundings
	var cm corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argo.ConfigMapName}, &cm); client.IgnoreNotFound(err) != nil {
		return out, fmt.Errorf("read ConfigMap %s: %w", argo.ConfigMapName, err)
	}
	var err error
	if out.globals, err = argo.GlobalProjects(&cm); err != nil {
		return out, err
	}
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(namespace), client.MatchingLabels{argo.LabelSecretType: "repository"}); err != nil {
		return out, fmt.Errorf("list repository Secrets: %w", err)
	}
	out.repositories = argo.ScopedRepositories(secrets.Items)
	return out, nil
}

// readProjects are the projects of a control plane as they are in force there.
func readProjects(ctx context.Context, c client.Client, namespace string) (argo.Projects, error) {
	around, err := readSurroundings(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	var list v1alpha1.AppProjectList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list AppProjects: %w", err)
	}
	inForce, _ := argo.InForce(list.Items, around.globals, around.repositories) // the controller says what is wrong with them
	return func(name string) (*policy.Project, bool) { p, ok := inForce[name]; return p, ok }, nil
}

// readTracking is how a control plane marks managed objects for others.
func readTracking(ctx context.Context, c client.Client, namespace string) (rutter.Tracking, error) {
	var cm corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argo.ConfigMapName}, &cm); client.IgnoreNotFound(err) != nil {
		return rutter.Tracking{}, fmt.Errorf("read ConfigMap %s: %w", argo.ConfigMapName, err)
	}
	tracking, _ := argo.ParseTracking(&cm) // the controller warns of what cannot be read
	return tracking, nil
}

// readIdentities is whose rights syncs use.
func readIdentities(ctx context.Context, c client.Client, namespace string) (policy.Impersonation, error) {
	var cm corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argo.ConfigMapName}, &cm); client.IgnoreNotFound(err) != nil {
		return policy.Impersonation{}, fmt.Errorf("read ConfigMap %s: %w", argo.ConfigMapName, err)
	}
	how, _ := argo.ParseImpersonation(&cm) // the controller warns of what cannot be read
	return how, nil
}

// readSigners are the keys with which commits are verified.
func readSigners(ctx context.Context, c client.Client, namespace string) (*signature.Keyring, error) {
	var cm corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argo.KeysMapName}, &cm); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ConfigMap %s: %w", argo.KeysMapName, err)
	}
	keys := &signature.Keyring{}
	_ = keys.SetKeys(cm.Data) // the controller warns of what cannot be read
	return keys, nil
}

// permitRepo asks projects whether they may read a repository. One that is not
// there permits all: the unit itself says that its project is missing.
func permitRepo(projects argo.Projects) func(string, rutter.Repo) error {
	return func(name string, repo rutter.Repo) error {
		if project, ok := projects(name); ok {
			return project.CheckSource(repo.URL)
		}
		return nil
	}
}

// permitObject asks projects whether a unit may manage an object, likewise.
func permitObject(projects argo.Projects) func(rutter.Unit, rutter.ClusterInfo, rutter.Ref, bool) error {
	return func(unit rutter.Unit, cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) error {
		if project, ok := projects(unit.Project); ok {
			return project.CheckResource(cluster, ref, namespaced)
		}
		return nil
	}
}
