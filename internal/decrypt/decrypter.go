package decrypt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/getsops/sops/v3/logging"
	"github.com/sirupsen/logrus"

	"github.com/rutterhq/rutter"
)

// SecretLabel and SecretType mark a Secret of the control plane as keys for SOPS.
const (
	SecretLabel = "argocd.argoproj.io/secret-type"
	SecretType  = "sops-keys"
	// SecretProject is the key of such a Secret that ties it to one project.
	SecretProject = "project"
)

// DefaultTimeout bounds the questions to key services about one file.
const DefaultTimeout = 30 * time.Second

// maxSealed bounds a sealed file. A Secret may hold 1 MiB.
const maxSealed = 5 << 20

// Options are what a Decrypter needs; the zero value works.
type Options struct {
	// Logger is told about changed keys and silent key services; nil discards.
	Logger *slog.Logger
	// Timeout bounds the questions to key services about one file; 0 is DefaultTimeout.
	Timeout time.Duration
	// HTTPClient reaches AWS and Vault; nil uses their own.
	HTTPClient *http.Client
}

// Decrypter opens sealed files and objects with the keys that it was last
// given. It is safe for concurrent use.
type Decrypter struct {
	log     *slog.Logger
	timeout time.Duration
	http    *http.Client
	keys    atomic.Pointer[keyring]
}

var _ rutter.Decrypter = (*Decrypter)(nil)

// New returns a Decrypter without keys.
func New(opts Options) *Decrypter {
	d := &Decrypter{log: opts.Logger, timeout: opts.Timeout, http: opts.HTTPClient}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.timeout <= 0 {
		d.timeout = DefaultTimeout
	}
	d.keys.Store(&keyring{generation: generation(nil)})
	// The library logs to standard error, comments of sealed files among it.
	logging.SetLevel(logrus.PanicLevel)
	return d
}

// SetKeys replaces all keys at once. Entries that cannot be used are named in
// the error; the others serve from now on.
func (d *Decrypter) SetKeys(keys []rutter.DecryptionKey) error {
	ring := &keyring{generation: generation(keys)}
	var problems []error
	for _, k := range keys {
		set, err := parseKey(k, d.http)
		if err != nil {
			problems = append(problems, err)
		}
		ring.sets = append(ring.sets, set)
	}
	if before := d.keys.Swap(ring); before.generation != ring.generation {
		d.log.Info("SOPS keys replaced", "secrets", len(keys), "generation", ring.generation, "unusable", len(problems))
	}
	return errors.Join(problems...)
}

// Generation implements rutter.Decrypter. It is equal for equal keys, over
// restarts too, so that what was rendered stays valid.
func (d *Decrypter) Generation() string { return d.keys.Load().generation }

// generation is a short digest; the keys are long random values and cannot be
// found from it.
func generation(keys []rutter.DecryptionKey) string {
	lines := make([]string, 0, len(keys))
	for _, k := range keys {
		h := sha256.New()
		field(h, k.Project)
		for _, name := range slices.Sorted(maps.Keys(k.Data)) {
			field(h, name)
			field(h, string(k.Data[name]))
		}
		lines = append(lines, string(h.Sum(nil)))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:8])
}

func field(h hash.Hash, s string) {
	fmt.Fprintf(h, "%d:", len(s))
	_, _ = io.WriteString(h, s) // a hash takes everything
}

// Decrypt implements rutter.Decrypter. The integrity of the whole file is
// checked (its MAC), always.
func (d *Decrypter) Decrypt(ctx context.Context, project, name string, data []byte) (plain []byte, sealed bool, err error) {
	place := place{file: name}
	if len(data) > maxSealed { // too much to be parsed only to see
		if bigEnvelope.Match(data) {
			return nil, true, place.errorf(rutter.CodeInvalid, "is sealed with SOPS and larger than %d MiB: split it", maxSealed>>20)
		}
		return nil, false, nil
	}
	f := formatOf(name, data)
	if f == formatNone {
		return nil, false, nil
	}
	err = guarded(place, func() error {
		plain, err = d.openFile(ctx, project, place, f, data)
		return err
	})
	if err != nil {
		return nil, true, err
	}
	return plain, true, nil
}

// guarded keeps a panic of the library, which some malformed values cause,
// from reaching further than the file. What it says may hold plaintext.
func guarded(where place, open func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = where.errorf(rutter.CodeInvalid, "is sealed with SOPS but malformed: seal it again with the sops tool")
		}
	}()
	return open()
}
