package argo

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// vaultTTL is how long what was read is used again: one evaluation may look
// into thousands of branches, and each time logs in anew.
const vaultTTL = 5 * time.Second

// Vault looks up what generators log in to hosting services with.
type Vault struct {
	// Reader reads the control plane's objects, not from a cache that holds only some.
	Reader client.Reader
	// Namespace is the control plane's own.
	Namespace string
	// Strict gives out only Secrets that say they are for this: those with the label
	// argocd.argoproj.io/secret-type: scm-creds (reference 5.14).
	Strict bool
	// Now is the clock.
	Now func() time.Time

	mu   sync.Mutex
	read map[string]readObject
}

// readObject is an object that was read a moment ago.
type readObject struct {
	object client.Object
	at     time.Time
}

// get reads an object, or what was read of it a moment ago. That it is not there is
// CodeInvalid, never CodeNotFound: what logs in must not be mistaken for what
// is asked for, which may well not exist.
func get[T client.Object](ctx context.Context, v *Vault, kind string, at types.NamespacedName, into T) (T, error) {
	key, now := kind+" "+at.String(), v.Now()
	v.mu.Lock()
	known, ok := v.read[key]
	v.mu.Unlock()
	if ok && now.Sub(known.at) < vaultTTL {
		if object, ok := known.object.(T); ok {
			return object, nil
		}
	}
	err := v.Reader.Get(ctx, at, into)
	switch {
	case apierrors.IsNotFound(err):
		return into, rutter.Errorf(rutter.CodeInvalid, "there is no %s %s: create it, or correct the reference to it", kind, at)
	case err != nil:
		return into, lookedUp(err, kind, at)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.read == nil {
		v.read = map[string]readObject{}
	}
	for key, old := range v.read { // nothing is kept for longer than it is good for
		if now.Sub(old.at) >= vaultTTL {
			delete(v.read, key)
		}
	}
	v.read[key] = readObject{object: into, at: now}
	return into, nil
}

// Secret is what a key of a Secret holds.
func (v *Vault) Secret(ctx context.Context, ref rutter.SecretRef) (string, error) {
	at := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	secret, err := get(ctx, v, "Secret", at, &corev1.Secret{})
	if err != nil {
		return "", err
	}
	if v.Strict && secret.Labels[labelSecretType] != "scm-creds" {
		return "", rutter.Errorf(rutter.CodeForbidden, "Secret %s has no label %s: scm-creds, which --enable-tokenref-strict-mode asks for", at, labelSecretType)
	}
	value, ok := secret.Data[ref.Key]
	if !ok {
		return "", rutter.Errorf(rutter.CodeInvalid, "Secret %s has no key %q", at, ref.Key)
	}
	return string(value), nil
}

// ConfigMap is what a key of a ConfigMap holds.
func (v *Vault) ConfigMap(ctx context.Context, ref rutter.SecretRef) (string, error) {
	at := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	cm, err := get(ctx, v, "ConfigMap", at, &corev1.ConfigMap{})
	if err != nil {
		return "", err
	}
	value, ok := cm.Data[ref.Key]
	if !ok {
		return "", rutter.Errorf(rutter.CodeInvalid, "ConfigMap %s has no key %q", at, ref.Key)
	}
	return value, nil
}

// GitHubApp is the App that a repo-creds Secret of the control plane's namespace describes.
func (v *Vault) GitHubApp(ctx context.Context, name string) (*rutter.GitHubApp, error) {
	cred, err := v.appCredential(ctx, name)
	if err != nil {
		return nil, err
	}
	return cred.GitHubApp, nil
}

// PermitApp says whether a set of a project may log in as an App: one that
// belongs to a project serves that project alone.
func (v *Vault) PermitApp(ctx context.Context, name, project string) error {
	cred, err := v.appCredential(ctx, name)
	if err == nil && cred.Project != "" && cred.Project != project {
		err = rutter.Errorf(rutter.CodeForbidden, "Secret %s/%s belongs to project %q: only ApplicationSets whose template names that project may use it", v.Namespace, name, cred.Project)
	}
	if err != nil {
		return rutter.Errorf(rutter.CodeOf(err), "appSecretName: %w", err)
	}
	return nil
}

func (v *Vault) appCredential(ctx context.Context, name string) (rutter.RepoCredential, error) {
	at := types.NamespacedName{Namespace: v.Namespace, Name: name}
	secret, err := get(ctx, v, "Secret", at, &corev1.Secret{})
	if err != nil {
		return rutter.RepoCredential{}, err
	}
	if t := secret.Labels[labelSecretType]; t != argo.SecretTypeRepoCreds && t != argo.SecretTypeRepository {
		return rutter.RepoCredential{}, rutter.Errorf(rutter.CodeForbidden, "Secret %s is no login of repositories: it needs the label %s: %s", at, labelSecretType, argo.SecretTypeRepoCreds)
	}
	cred, err := argo.ParseRepository(secret)
	if err == nil && cred.GitHubApp == nil {
		err = rutter.Errorf(rutter.CodeInvalid, "Secret %s describes no GitHub App: it needs githubAppID and githubAppPrivateKey", at)
	}
	return cred, err
}
