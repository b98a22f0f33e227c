package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// pointer is a file of Git LFS that stands for another: it names its content.
type pointer struct {
	oid  string // SHA-256
	size int64
}

// maxPointer is how long a pointer may be; what is longer is a file.
const maxPointer = 1024

var sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parsePointer reads a pointer. One with extensions, which are programs that
// its content would have to be put through, is a file like any other.
func parsePointer(data []byte) (pointer, bool) {
	const v1, hawser = "version https://git-lfs.github.com/spec/v1\n", "version https://hawser.github.com/spec/v1\n"
	if len(data) > maxPointer {
		return pointer{}, false
	}
	rest, ok := bytes.CutPrefix(data, []byte(v1))
	if !ok {
		rest, ok = bytes.CutPrefix(data, []byte(hawser))
	}
	lines := strings.Split(strings.TrimSuffix(string(rest), "\n"), "\n")
	if !ok || len(lines) != 2 {
		return pointer{}, false
	}
	oid, hasOid := strings.CutPrefix(lines[0], "oid sha256:")
	size, hasSize := strings.CutPrefix(lines[1], "size ")
	n, err := strconv.ParseInt(size, 10, 64)
	if !hasOid || !hasSize || !sha256Form.MatchString(oid) || err != nil || n < 0 || size[0] == '+' {
		return pointer{}, false
	}
	return pointer{oid, n}, true
}

// lfs reads the content of pointers for one asker: from the folder beside the
// mirror, where only those find it who may read the mirror, or from the server.
type lfs struct {
	f   *Fetcher
	dir string
	// fetch asks the server, with the login of this moment.
	fetch func(p pointer) ([]byte, error)
}

func (f *Fetcher) newLFS(ctx context.Context, repo rutter.Repo, m *mirror) *lfs {
	host := siteName(repo)
	return &lfs{f: f, dir: m.lfsDir(), fetch: func(p pointer) ([]byte, error) {
		wait, cancel := context.WithTimeout(ctx, f.opts.ReadTimeout)
		defer cancel()
		giveBack, err := f.slots.take(wait, host)
		if err != nil {
			return nil, err
		}
		defer giveBack()
		return f.fetchLFS(ctx, repo, p)
	}}
}

func (m *mirror) lfsDir() string { return strings.TrimSuffix(m.dir, ".git") + ".lfs" }

// read returns the content of p. What lies on disk is looked at like what
// comes from the server: it is used if it is what p names.
func (l *lfs) read(p pointer) ([]byte, error) {
	if limit := l.f.opts.MaxFileBytes; p.size > limit {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it has %d bytes in Git LFS, more than the %d that a file may have", p.size, limit)
	}
	if data, ok := l.stored(p); ok {
		return data, nil
	}
	data, err := await[[]byte](l.f.opts.ReadTimeout, l.f.downloads.DoChan(filepath.Join(l.dir, p.oid), func() (any, error) {
		if data, ok := l.stored(p); ok {
			return data, nil
		}
		data, err := l.fetch(p)
		if err != nil {
			return nil, err
		}
		l.store(p, data)
		return data, nil
	}))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "its content in Git LFS (sha256:%s): %w", p.oid, err)
	}
	return data, nil
}

func (p pointer) names(data []byte) bool {
	sum := sha256.Sum256(data)
	return int64(len(data)) == p.size && hex.EncodeToString(sum[:]) == p.oid
}

func (l *lfs) path(p pointer) string { return filepath.Join(l.dir, p.oid[:2], p.oid) }

func (l *lfs) stored(p pointer) ([]byte, bool) {
	path := l.path(p)
	info, err := os.Stat(path)
	if err != nil || info.Size() != p.size {
		return nil, false
	}
	data, err := os.ReadFile(path)
	if err != nil || !p.names(data) {
		return nil, false
	}
	if now := time.Now(); now.Sub(info.ModTime()) > time.Hour {
		_ = os.Chtimes(path, now, now) // it is in use
	}
	return data, true
}

// store keeps content for the next reader. Without it that one asks the server
// again, so a full disk is no error here.
func (l *lfs) store(p pointer, data []byte) {
	path := l.path(p)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = l.f.git.replaceFile(path, data)
	}
	if err != nil {
		l.f.opts.Logger.Warn("Git LFS content could not be kept", "dir", l.dir, "err", err)
	}
}

// replaceFile writes a file that is there whole or not at all.
func (r *runner) replaceFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(r.tmp, "lfs-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// pruneLFS removes content that nobody has read since a moment.
func pruneLFS(dir string, before time.Time) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil && info.ModTime().Before(before) {
			return os.Remove(path)
		}
		return nil
	})
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// pointedSize is the size of a file of size bytes that may be a pointer.
func (s *snapshot) pointedSize(e entry, size int64) (int64, error) {
	data, err := s.blob(e.id)
	if err != nil {
		return 0, err
	}
	if p, ok := parsePointer(data); ok {
		return p.size, nil
	}
	return size, nil
}

// fileHash names the content of a file. Where pointers are replaced it is
// another name than where they are not, or a render of pointers would be taken
// for one of content after EnableLFS was set. A pointer names its content, so
// that neither needs to be read.
func (s *snapshot) fileHash(e entry) string {
	if s.lfs == nil {
		return e.id.String()
	}
	sum := sha256.Sum256(append([]byte("lfs "), e.id[:]...))
	return hex.EncodeToString(sum[:len(e.id)])
}
