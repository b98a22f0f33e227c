package record

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"syscall"

	"github.com/rutterhq/rutter"
)

// Context is the render's: it ends when the render's time is up.
func (f *FS) Context() context.Context { return f.log.ctx }

// Revision is that of the content below.
func (f *FS) Revision() string { return f.snap.Revision() }

// Remote returns a view of another repository that the source itself names: a
// chart's dependency, a remote base, a values file. What it resolved to is an
// input of the render. Errors are those of rutter.Sources, and CodeForbidden
// for a repository that the project does not allow.
func (f *FS) Remote(repo rutter.Repo) (*FS, error) {
	if f.log.opts.Fetch == nil {
		return nil, rutter.Errorf(rutter.CodeUnsupported, "%s cannot be fetched here", repo.Key())
	}
	snap, err := f.log.opts.Fetch(f.log.ctx, repo)
	if err != nil {
		f.log.pass()
		return nil, err
	}
	f.log.add(rutter.Input{Kind: rutter.InputRemote, Path: repo.Key()}, snap.Revision())
	return &FS{snap: snap, repo: repo.Key(), log: f.log}, nil
}

// LookupOff is the hash of a look-up that nobody allowed.
const LookupOff = "off"

// Lookup reads an object of the target cluster, nil when there is none or when
// nobody allows looking. What was found is an input of the render, and so is
// that looking was not allowed.
func (f *FS) Lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	if f.log.opts.Lookup == nil {
		key, _, err := LiveInput(nil, apiVersion, kind, namespace, name, nil)
		if err != nil {
			return nil, err
		}
		f.log.add(rutter.Input{Kind: rutter.InputLive, Path: key}, LookupOff)
		return nil, nil
	}
	obj, err := f.log.opts.Lookup(f.log.ctx, apiVersion, kind, namespace, name)
	if err != nil {
		f.log.pass()
		f.log.stop(err)
		return nil, fmt.Errorf("look up %s %s/%s: %w", kind, namespace, name, err)
	}
	key, hash, err := LiveInput(f.log.opts.HashKey, apiVersion, kind, namespace, name, obj)
	if err != nil {
		return nil, err
	}
	f.log.add(rutter.Input{Kind: rutter.InputLive, Path: key}, hash)
	f.Secret()
	return obj, nil
}

// LiveInput returns the path and the hash of the input that looking an object up
// is. The hash is keyed, because a plain one of a short secret tells the secret
// to who can guess, and leaves out what changes without a change of content.
func LiveInput(hashKey []byte, apiVersion, kind, namespace, name string, obj map[string]any) (key, hash string, err error) {
	names, err := json.Marshal([]string{apiVersion, kind, namespace, name})
	if err != nil {
		return "", "", fmt.Errorf("name a look-up: %w", err)
	}
	text, err := json.Marshal(withoutBookkeeping(obj))
	if err != nil {
		return "", "", fmt.Errorf("hash what a look-up of %s found: %w", names, err)
	}
	sum := hmac.New(sha256.New, hashKey)
	_, _ = sum.Write(text) // it cannot fail
	return string(names), hex.EncodeToString(sum.Sum(nil)), nil
}

// withoutBookkeeping drops what the API server changes by itself.
func withoutBookkeeping(obj map[string]any) map[string]any {
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		return obj
	}
	obj, meta = maps.Clone(obj), maps.Clone(meta)
	delete(meta, "resourceVersion")
	delete(meta, "managedFields")
	obj["metadata"] = meta
	if items, ok := obj["items"].([]any); ok {
		kept := make([]any, len(items))
		for i, item := range items {
			kept[i] = item
			if m, ok := item.(map[string]any); ok {
				kept[i] = withoutBookkeeping(m)
			}
		}
		obj["items"] = kept
	}
	return obj
}

// Secret says that what is rendered holds values that are not in Git as they
// are: opened by a key, made by chance, or read from a cluster. They are never
// stored in the clear.
func (f *FS) Secret() {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	f.log.secret = true
}

// IsSecret reports whether Secret was said of any view of this render.
func (f *FS) IsSecret() bool {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.secret
}

// Passing reports whether the render has met a failure that is not in its
// inputs: a repository or a key that may be there the next time.
func (f *FS) Passing() bool {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.passing
}

// failed notes a failure of a snapshot: one that may pass is not the input's.
func (j *journal) failed(err error) {
	if passing(err) {
		j.pass()
	}
}

// passing reports whether an error of a snapshot is something else than what
// the repository says: content that is not there yet, a store that cannot be read.
func passing(err error) bool {
	if e := (*rutter.Error)(nil); errors.As(err, &e) {
		return e.Code != rutter.CodeInvalid && e.Code != rutter.CodeUnsupported
	}
	for _, known := range []error{fs.ErrNotExist, fs.ErrInvalid, syscall.EISDIR, syscall.ENOTDIR} {
		if errors.Is(err, known) {
			return false
		}
	}
	return true
}

func (j *journal) pass() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.passing = true
}

func (j *journal) add(in rutter.Input, hash string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inputs[in] = hash
}

// stop ends the render with err, whatever the tool makes of it.
func (j *journal) stop(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}
