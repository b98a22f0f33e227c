package argo

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// Vault looks up what generators log in to hosting services with.
type Vault struct {
	// Reader reads the control plane's objects, not from a cache that holds only some.
	Reader client.Reader
	// Namespace is the control plane's own.
	Namespace string
	// Strict gives out only Secrets that say they are for this: those with the label
	// argocd.argoproj.io/secret-type: scm-creds (reference 5.14).
	Strict bool
}

// Secret is what a key of a Secret holds.
func (v Vault) Secret(ctx context.Context, ref rutter.SecretRef) (string, error) {
	var secret corev1.Secret
	at := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if err := v.Reader.Get(ctx, at, &secret); err != nil {
		return "", lookedUp(err, "Secret", at)
	}
	if v.Strict && secret.Labels[labelSecretType] != "scm-creds" {
		return "", rutter.Errorf(rutter.CodeForbidden, "Secret %s has no label %s: scm-creds, which --enable-tokenref-strict-mode asks for", at, labelSecretType)
	}
	value, ok := secret.Data[ref.Key]
	if !ok {
		return "", rutter.Errorf(rutter.CodeNotFound, "Secret %s has no key %q", at, ref.Key)
	}
	return string(value), nil
}

// ConfigMap is what a key of a ConfigMap holds.
func (v Vault) ConfigMap(ctx context.Context, ref rutter.SecretRef) (string, error) {
	var cm corev1.ConfigMap
	at := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	if err := v.Reader.Get(ctx, at, &cm); err != nil {
		return "", lookedUp(err, "ConfigMap", at)
	}
	value, ok := cm.Data[ref.Key]
	if !ok {
		return "", rutter.Errorf(rutter.CodeNotFound, "ConfigMap %s has no key %q", at, ref.Key)
	}
	return value, nil
}

// GitHubApp is the App that a repo-creds Secret of the control plane's namespace describes.
func (v Vault) GitHubApp(ctx context.Context, name string) (*rutter.GitHubApp, error) {
	var secret corev1.Secret
	at := types.NamespacedName{Namespace: v.Namespace, Name: name}
	if err := v.Reader.Get(ctx, at, &secret); err != nil {
		return nil, lookedUp(err, "Secret", at)
	}
	cred, err := argo.ParseRepository(&secret)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "Secret %s: %w", at, err)
	}
	if cred.GitHubApp == nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "Secret %s describes no GitHub App: it needs githubAppID and githubAppPrivateKey", at)
	}
	return cred.GitHubApp, nil
}
