package daemon

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/forge"
	"github.com/rutterhq/rutter/internal/httpapi"
)

// pushed looks at the sources that a push may have moved, and at the sets that
// asked the service for its lists.
func (d *daemon) pushed(p httpapi.Push) int {
	n := d.engine.Repos().Pushed(p.Concerns)
	return n + d.hosted(p.Lists)
}

// pulled looks at the sets that asked for the pull requests of a repository.
func (d *daemon) pulled(p httpapi.PullRequest) int { return d.hosted(p.Concerns) }

// hosted wakes the sets whose answers a hosting service says may be others now.
func (d *daemon) hosted(concerns func(q rutter.ForgeQuery, pullRequests bool) bool) int {
	if c, ok := d.sets.Forges.(*forge.Client); ok {
		c.Heard() // what is being read already may be from before
	}
	return d.controllers.ForgeChanged(concerns)
}

// secretTTL is how long the webhook secrets are remembered, so that a flood of
// requests does not become a flood of reads.
const secretTTL = 5 * time.Second

// webhookSecrets reads the webhook keys of the Secret argocd-secret.
type webhookSecrets struct {
	reader    client.Reader
	namespace string
	ctx       context.Context //nolint:containedctx // the process's own, to read with

	mu   sync.Mutex
	at   time.Time
	keys map[string]string
}

func (w *webhookSecrets) get() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.at) < secretTTL && w.keys != nil {
		return w.keys
	}
	ctx, cancel := context.WithTimeout(w.ctx, secretTTL)
	defer cancel()
	var secret corev1.Secret
	keys := map[string]string{}
	if err := w.reader.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: "argocd-secret"}, &secret); err == nil {
		for k, v := range secret.Data {
			keys[k] = string(v)
		}
	} else if client.IgnoreNotFound(err) != nil && w.keys != nil {
		return w.keys // not reachable just now: what was known stays in force
	}
	w.keys, w.at = keys, time.Now()
	return keys
}
