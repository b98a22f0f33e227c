package argo

import (
	"time"

	"github.com/rutterhq/rutter"
)

// KeysMapName is the ConfigMap with the armored OpenPGP public keys by their ids
// (reference 6.7).
const KeysMapName = "argocd-gpg-keys-cm"

// Verifier finds out by whom a commit object is signed.
type Verifier interface {
	Verify(id string, commit []byte, now time.Time) rutter.Signature
}

// Verify says why a unit's project does not take what a source is at. Charts and
// artifacts are not signed so; what has no snapshot has nobody's signature.
func Verify(unit rutter.Unit, source rutter.Source, snap rutter.Snapshot, projects Projects, by Verifier, now time.Time) error {
	p, ok := projects(unit.Project)
	if !ok || source.Repo("").Kind() != rutter.RepoGit {
		return nil
	}
	rule, err := p.SignatureRule(source.RepoURL)
	if err != nil || !rule.Demands() {
		return err
	}
	if snap == nil {
		return rule.Check(rutter.Signature{Object: "an object that comes with the sync itself"})
	}
	committed, ok := snap.(rutter.Committed)
	if !ok {
		return rule.Check(rutter.Signature{Object: "revision " + snap.Revision()})
	}
	commit, err := committed.Commit()
	if err != nil {
		return rutter.Errorf(rutter.CodeOf(err), "read the commit to verify its signature: %w", err)
	}
	return rule.Check(by.Verify(snap.Revision(), commit, now))
}
