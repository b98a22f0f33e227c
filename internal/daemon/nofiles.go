package daemon

import (
	"context"
	"strings"

	"github.com/rutterhq/rutter"
)

// noFiles refuses repositories on the controller's own disk.
type noFiles struct{ rutter.Sources }

// Snapshot implements rutter.Sources.
func (s noFiles) Snapshot(ctx context.Context, repo rutter.Repo, opts rutter.ResolveOptions) (rutter.Snapshot, error) {
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(repo.URL)), "file:") {
		return nil, rutter.Errorf(rutter.CodeForbidden, "repository %q: file:// repositories are not enabled: start the controller with --allow-file-repositories", repo.URL)
	}
	return s.Sources.Snapshot(ctx, repo, opts) //nolint:wrapcheck // a pass-through
}

// Resolve implements resolver.
func (s noFiles) Resolve(repo rutter.Repo) (rutter.Repo, error) { return resolve(s.Sources, repo) }
