// Package e2e proves the whole journey: a controller in this process, a real
// control plane, a real member cluster and Git over HTTP, driven as a user
// drives them, through manifests, commits and edits. It holds tests only.
package e2e
