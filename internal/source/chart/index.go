package chart

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
	"github.com/rutterhq/rutter/internal/source/remote"
)

// index is what is kept of a repository's index.
type index struct {
	charts     map[string][]release
	validators remote.Validators
	// bytes is about what it takes up in memory; skipped counts entries that
	// cannot be used.
	bytes   int64
	skipped int
}

// release is a version of a chart.
type release struct {
	version string
	// url is as the index has it: relative, or of any host.
	url    string
	digest digest
}

// digest is a SHA-256; the zero value means that the index has none.
type digest [32]byte

// String is the digest as registries write it.
func (d digest) String() string {
	if d == (digest{}) {
		return ""
	}
	return "sha256:" + hex.EncodeToString(d[:])
}

// parseDigest reads 64 hex digits, with or without sha256: before them. What an
// index holds instead protects nothing and counts as none.
func parseDigest(text string) digest {
	var d digest
	text = strings.TrimPrefix(strings.TrimSpace(text), "sha256:")
	if len(text) == hex.EncodedLen(len(d)) {
		if b, err := hex.DecodeString(text); err == nil {
			copy(d[:], b)
		}
	}
	return d
}

func costOf(a *fresh.Answer[*index]) int64 {
	if i, ok := a.Last(); ok {
		return i.bytes
	}
	return 0
}

// repository is an HTTP repository for one asker.
type repository struct {
	request

	address remote.Address
	access  remote.Access
}

// fromIndex reads a chart that an HTTP index names.
func (r request) fromIndex(ctx context.Context) (rutter.Snapshot, error) {
	address, err := remote.ParseWeb(r.repo.URL)
	if err != nil {
		return nil, err
	}
	if err := checkName(r.repo.Chart); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", address, err)
	}
	repo := repository{request: r, address: address, access: r.keys.Choose(address, r.repo.Project)}
	found, err := repo.find(ctx, r.age)
	if err != nil {
		return nil, err
	}
	snap, err := repo.open(ctx, found)
	if stale, ok := errors.AsType[staleError](err); ok && r.age > 0 {
		// Perhaps index and chart have both changed, and an index of before was
		// good enough: one of after the chart was seen decides.
		again, bad := repo.find(ctx, min(r.age, time.Since(stale.at)))
		if bad == nil && again != found {
			return repo.open(ctx, again)
		}
	}
	return snap, err
}

// find looks the chart up in the index as it was at most age ago.
func (r repository) find(ctx context.Context, age time.Duration) (release, error) {
	idx, err := r.index(ctx, age)
	if err != nil {
		return release{}, rutter.Errorf(rutter.CodeOf(err), "Helm repository %s: %w", r.address, err)
	}
	return r.pick(idx)
}

// open fetches what the index names.
func (r repository) open(ctx context.Context, found release) (rutter.Snapshot, error) {
	if strings.HasPrefix(strings.ToLower(found.url), "oci://") {
		return r.fromLink(ctx, found.url, found.version)
	}
	return r.archive(ctx, found, r.age)
}

// pick chooses the version that is wished for.
func (r repository) pick(idx *index) (release, error) {
	releases, ok := idx.charts[r.repo.Chart]
	if !ok {
		return release{}, rutter.Errorf(rutter.CodeNotFound, "Helm repository %s has no chart %q%s", r.address, r.repo.Chart, idx.note())
	}
	i := r.wish.Choose(func(yield func(int, string) bool) {
		for i := range releases {
			if !yield(i, releases[i].version) {
				return
			}
		}
	})
	if i < 0 {
		return release{}, rutter.Errorf(rutter.CodeNotFound, "%s is none of the %d versions in the index%s; pre-releases are only taken by a constraint that has one (such as >=1.0.0-0)", r.title(r.wish.String()), len(releases), idx.note())
	}
	return releases[i], nil
}

// note tells of entries that were left out, in errors about what is missing.
func (i *index) note() string {
	if i.skipped == 0 {
		return ""
	}
	return " (entries of its index that cannot be used were left out)"
}

// title names the chart for people.
func (r request) title(version string) string {
	return "chart \"" + r.repo.Chart + "\" " + version + " of " + remote.Conceal(r.repo.URL)
}

// index returns the index as it was at most age ago.
func (r repository) index(ctx context.Context, age time.Duration) (*index, error) {
	key := r.address.Identity() + "\x00" + r.access.Scope() + "\x00" + r.access.Digest()
	answer := r.indexes.Get(key, func() *fresh.Answer[*index] { return &fresh.Answer[*index]{} })
	idx, err := answer.Ask(ctx, age, r.fetchIndex)
	r.indexes.Shrink()
	return idx, err
}

// fetchIndex asks for the index, or whether it has changed.
func (r repository) fetchIndex(ctx context.Context, last *index, ok bool) (*index, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.LookupTimeout)
	defer cancel()
	header := http.Header{"Accept": {"application/x-yaml, application/yaml, text/yaml, application/json;q=0.9, */*;q=0.8"}}
	if ok {
		last.validators.Set(header)
	}
	r.lookups.Add(1)
	resp, err := r.keys.Do(ctx, r.access, remote.Request{
		URL: r.address.Join("index.yaml").URL(), Header: header,
		Authorization: r.access.BasicAuth(), Bounds: []remote.Bound{r.access.Bound()},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified && ok:
		return last, nil
	case resp.StatusCode != http.StatusOK:
		return nil, remote.Refused("its index", r.access, resp)
	}
	r.parsed.Add(1)
	idx, err := parseIndex(remote.Body("its index", r.access, resp, r.opts.MaxIndexBytes))
	if err != nil {
		return nil, err
	}
	idx.validators = remote.ValidatorsOf(resp)
	if idx.skipped > 0 {
		r.opts.Logger.Warn("entries of a Helm index cannot be used", "repository", r.address.String(), "entries", idx.skipped)
	}
	return idx, nil
}
