package rutter

import "fmt"

// Snapshots asks for every source of a unit, for those that name one
// repository and revision once, however its URL is spelled: they see the same
// commit (scenario B16). An error names the source by its field.
func (u Unit) Snapshots(ask func(repo Repo) (Snapshot, error)) ([]Snapshot, error) {
	seen := map[Repo]Snapshot{}
	var snaps []Snapshot
	for i, src := range u.Sources {
		repo := src.Repo(u.Project)
		same := repo
		if repo.Kind() == RepoGit {
			same.URL = NormalizeGitURL(repo.URL)
		}
		snap := seen[same]
		if snap == nil {
			var err error
			if snap, err = ask(repo); err != nil {
				return nil, fmt.Errorf("%s: %w", u.SourceField(i), err)
			}
			seen[same] = snap
		}
		snaps = append(snaps, snap)
	}
	return snaps, nil
}

// Request is the render of source i of a unit, whose sources are at snaps. What
// depends on who asks (the cluster's version, permissions) is the caller's to add.
func (u Unit) Request(i int, snaps []Snapshot) RenderRequest {
	req := RenderRequest{Source: u.Sources[i], Snapshot: snaps[i], AppName: u.ID.Name, Instance: u.Instance,
		Project: u.Project, Namespace: u.Target.Namespace}
	for j, src := range u.Sources {
		if src.Ref != "" {
			if req.Refs == nil {
				req.Refs = map[string]Snapshot{}
			}
			req.Refs[src.Ref] = snaps[j]
		}
	}
	return req
}

// SourceField is the path of source i in the declaration.
func (u Unit) SourceField(i int) string {
	if len(u.Sources) == 1 {
		return "spec.source"
	}
	return fmt.Sprintf("spec.sources[%d]", i)
}
