package engine

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// asked is what a sync is of: what Git declares now, or, where a person asks for
// something else once, another revision, other sources or objects at hand.
func (e *Engine) asked(ctx context.Context, u *state, unit rutter.Unit, c rutter.Cluster, req rutter.SyncRequest, d *desired) (*desired, error) {
	if len(req.Manifests) > 0 {
		return e.inline(ctx, unit, c, req.Manifests, d.revisions)
	}
	at := unit
	if len(req.Sources) > 0 {
		at.Sources = req.Sources
		for _, s := range req.Sources {
			if err := e.opts.PermitRepo(unit.Project, s.Repo(unit.Project)); err != nil {
				return nil, fmt.Errorf("operation.sync: its source is not allowed: %w", err)
			}
		}
	}
	other := len(req.Sources) > 0 || req.Revision != "" && !slices.Contains(d.revisions, req.Revision) ||
		len(req.Revisions) > 0 && !slices.Equal(d.revisions, req.Revisions)
	if !other {
		return d, nil
	}
	at.Sources = slices.Clone(at.Sources)
	for i := range at.Sources {
		s := &at.Sources[i]
		switch {
		case len(req.Revisions) == len(at.Sources):
			s.TargetRevision = req.Revisions[i]
		case req.Revision != "" && s.Repo("").Kind() == rutter.RepoGit:
			s.TargetRevision = req.Revision
		}
	}
	once, err := e.render(ctx, u, at, c, true, true)
	if err != nil {
		return nil, fmt.Errorf("render what the sync asks for: %w", err)
	}
	return once, nil
}

// inline are objects that came with the sync itself.
func (e *Engine) inline(ctx context.Context, unit rutter.Unit, c rutter.Cluster, manifests, revisions []string) (*desired, error) {
	if e.opts.Verify != nil { // nobody has signed them
		for _, src := range unit.Sources {
			if err := e.opts.Verify(unit, src, nil); err != nil {
				return nil, fmt.Errorf("operation.sync.manifests: %w", err)
			}
		}
	}
	var m rutter.Manifests
	for i, text := range manifests {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(text)); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "operation.sync.manifests[%d] is no object in JSON with apiVersion and kind: %w", i, err)
		}
		m.Objects = append(m.Objects, rutter.Object{Unstructured: obj})
	}
	d := &desired{index: map[rutter.Ref]int{}, ignore: slices.Clip(unit.Ignore), webhooks: unit.Policy.IncludeWebhooks,
		revisions: revisions, digests: []string{""}, inline: []rutter.Manifests{m}}
	d.key = desiredKey(unit, manifests)
	return d, e.build(ctx, unit, c, d, d.inline)
}
