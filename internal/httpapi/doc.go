// Package httpapi is the controller's HTTP side: push webhooks, health,
// readiness, metrics, and a read-only list of units for tools and tests.
// Driver ring: it imports no Kubernetes client and no adapter.
package httpapi
