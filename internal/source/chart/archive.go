package chart

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/fresh"
	"github.com/rutterhq/rutter/internal/source/remote"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

// archive is what the address of a chart without a digest held when it was
// last asked for.
type archive struct {
	key        string
	validators remote.Validators
}

// staleError marks a chart that was found not to be what the index says.
type staleError struct {
	error

	at time.Time
}

// Unwrap returns the user's error.
func (e staleError) Unwrap() error { return e.error }

// archive opens a release. With a digest in the index, what is stored under
// that is the release; without one, its address is asked as the index is.
func (r repository) archive(ctx context.Context, found release, age time.Duration) (rutter.Snapshot, error) {
	address, err := r.resolve(found.url)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the index has an address that cannot be used: %w", r.title(found.version), err)
	}
	tree, err := r.tree(ctx, address, found.digest, age)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "%s: %w", r.title(found.version), err)
	}
	return tree.Snapshot("chart "+r.repo.Chart+" of "+r.address.String(), found.version), nil
}

// resolve makes an address of what the index has: below the repository unless
// it is a whole URL.
func (r repository) resolve(link string) (remote.Address, error) {
	u, err := url.Parse(link)
	if err != nil {
		return remote.Address{}, rutter.Errorf(rutter.CodeInvalid, "%q cannot be parsed", remote.Conceal(link))
	}
	if u.IsAbs() {
		return remote.ParseWeb(link)
	}
	base := r.address.URL()
	base.Path = strings.TrimSuffix(base.Path, "/") + "/"
	full := base.ResolveReference(u)
	if u.RawQuery == "" {
		// A query with which the repository is asked is its way of logging in.
		full.RawQuery = base.RawQuery
	}
	return remote.ParseWeb(full.String())
}

// tree returns the unpacked chart at an address.
func (r repository) tree(ctx context.Context, address remote.Address, want digest, age time.Duration) (*unpack.Tree, error) {
	if want == (digest{}) {
		return r.undigested(ctx, address, age)
	}
	key := r.key(address, want)
	if t, ok := r.store.Get(key); ok {
		return t, nil
	}
	return r.flights.Do(ctx, key, age, func(ctx context.Context) (*unpack.Tree, error) {
		if t, ok := r.store.Get(key); ok {
			return t, nil
		}
		t, _, _, err := r.download(ctx, address, want, remote.Validators{})
		return t, err
	})
}

// key names a stored chart. The place is part of it: an index can name any
// digest, and must not be handed what another repository keeps under it.
func (r repository) key(address remote.Address, d digest) string {
	return strings.Join([]string{"chart", r.address.Identity(), r.access.Scope(), address.Identity(), d.String()}, "\x00")
}

// undigested asks the address of a chart whether what it holds has changed. A
// tree that has left the store meanwhile is fetched again.
func (r repository) undigested(ctx context.Context, address remote.Address, age time.Duration) (*unpack.Tree, error) {
	scope := r.address.Identity() + "\x00" + r.access.Scope() + "\x00" + r.access.Digest()
	answer := r.archives.Get(address.Identity()+"\x00"+scope, func() *fresh.Answer[archive] { return &fresh.Answer[archive]{} })
	for range 2 {
		got, err := answer.Ask(ctx, age, func(ctx context.Context, last archive, ok bool) (archive, error) {
			v := remote.Validators{}
			if ok {
				if _, stored := r.store.Get(last.key); stored {
					v = last.validators
				}
			}
			r.lookups.Add(1)
			tree, d, fresh, err := r.download(ctx, address, digest{}, v)
			if err != nil || tree == nil {
				return last, err
			}
			return archive{key: r.key(address, d), validators: fresh}, nil
		})
		if err != nil {
			return nil, err
		}
		if t, ok := r.store.Get(got.key); ok {
			return t, nil
		}
		age = 0
	}
	return nil, rutter.Errorf(rutter.CodeUnavailable, "the store in %s keeps nothing; is its disk full?", r.opts.Dir)
}

// download fetches and unpacks a chart, unless the server says that it is what
// the validators say: then there is no tree.
func (r repository) download(ctx context.Context, address remote.Address, want digest, v remote.Validators) (*unpack.Tree, digest, remote.Validators, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.DownloadTimeout)
	defer cancel()
	header := http.Header{"Accept-Encoding": {"identity"}}
	v.Set(header)
	resp, err := r.keys.Do(ctx, r.access, remote.Request{
		URL: address.URL(), Header: header, Authorization: r.access.BasicAuth(), Bounds: r.bounds(address),
	})
	if err != nil {
		return nil, digest{}, v, err
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified && v != (remote.Validators{}):
		return nil, digest{}, v, nil
	case resp.StatusCode != http.StatusOK:
		return nil, digest{}, v, r.refused(address, resp)
	}
	r.downloads.Add(1)
	tree, got, err := r.unpack(address, want, remote.Body("the archive", r.access, resp, r.opts.MaxBytes))
	return tree, got, remote.ValidatorsOf(resp), err
}

// bounds are where the login may be sent: within its own bound, and where the
// index points to if the user wants that (passCredentials) and the way there is
// no less protected.
func (r repository) bounds(address remote.Address) []remote.Bound {
	bounds := []remote.Bound{r.access.Bound()}
	if r.repo.PassCredentials && (address.Scheme == "https" || r.address.Scheme == "http") {
		bounds = append(bounds, remote.Bound{Scheme: address.Scheme, Host: address.Host, Path: address.Path})
	}
	return bounds
}

// refused says, of a login that was not sent, why.
func (r repository) refused(address remote.Address, resp *http.Response) error {
	err := remote.Refused("its archive at "+address.String(), r.access, resp)
	sent := false
	for _, b := range r.bounds(address) {
		sent = sent || b.Holds(address.URL())
	}
	if code := rutter.CodeOf(err); r.access.BasicAuth() != "" && !sent && code == rutter.CodeForbidden {
		return rutter.Errorf(code, "%w; it was not sent, as the address lies outside of what it is registered for: set passCredentials if it may be", err)
	}
	return err
}

// unpack reads an archive to its end and stores what it unfolds to under its
// digest, if that is the wanted one and it is a chart.
func (r repository) unpack(address remote.Address, want digest, body io.Reader) (*unpack.Tree, digest, error) {
	content := sha256.New()
	in := io.TeeReader(body, content)
	var got digest
	tree, err := r.store.Put(func(b *unpack.Builder) (string, error) {
		bad := unpack.Tar(b, in, true)
		// What is not what it should be is not judged by its content.
		if _, err := io.Copy(io.Discard, in); err != nil {
			return "", cmp.Or(bad, err)
		}
		got = digest(content.Sum(nil))
		if want != (digest{}) && got != want {
			return "", staleError{at: time.Now(), error: rutter.Errorf(rutter.CodeUnavailable, "the archive at %s is %s, but the index says %s: refused; if it was pushed again, the index must be made anew", address, got, want)}
		}
		return r.key(address, got), bad
	}, checkChart)
	return tree, got, err
}
