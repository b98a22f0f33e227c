package helm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// The bounds of a chart's tree, which symbolic links could make endless.
const (
	maxFolderDepth     = 32
	maxDependencyDepth = 8
)

var utf8bom = []byte{0xEF, 0xBB, 0xBF}

// load returns the chart in a folder. Every file is read each time, so that the
// render's inputs are known; parsing them is done once for all charts with
// this content.
func (r *Renderer) load(repo *record.FS, dir string) (*loaded, error) {
	if !repo.IsFile(path.Join(dir, "Chart.yaml")) {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s holds no Chart.yaml, so it is no Helm chart", dir)
	}
	rules, err := ignoreRules(repo, dir)
	if err != nil {
		return nil, err
	}
	l := &folderReader{repo: repo, dir: dir, rules: rules}
	if err := l.folder("", maxFolderDepth); err != nil {
		return nil, err
	}
	hash := contentHash(l.files)
	return r.charts.get(hash, func() (*loaded, int64, error) {
		c, err := assemble(l.files, dir)
		if err != nil {
			return nil, 0, err
		}
		c.hash = hash
		return c, l.bytes + 1024, nil
	})
}

// contentHash names the content of a chart. It is over what was read, not over
// Git's hashes: a file may have been opened with one project's key.
func contentHash(files []*archive.BufferedFile) string {
	h := sha256.New()
	var n [8]byte
	write := func(b []byte) {
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	for _, f := range files {
		write([]byte(f.Name))
		write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func ignoreRules(repo *record.FS, dir string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	file := path.Join(dir, ignore.HelmIgnore)
	data, err := repo.ReadFile(file)
	switch {
	case err == nil:
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, &rutter.Error{Code: rutter.CodeInvalid, File: file, Message: "cannot be read", Err: err}
		}
	case !record.IsAbsent(err):
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	rules.AddDefaults()
	return rules, nil
}

// folderReader reads a chart's folder into memory, without what .helmignore names.
type folderReader struct {
	repo  *record.FS
	dir   string
	rules *ignore.Rules
	files []*archive.BufferedFile
	bytes int64
}

// folder reads one folder; rel is relative to the chart.
func (l *folderReader) folder(rel string, depth int) error {
	full := path.Join(l.dir, rel)
	if depth == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "%s: the chart's folders are nested too deeply", full)
	}
	entries, err := l.repo.ReadDir(full)
	if err != nil {
		return fmt.Errorf("list %s: %w", full, err)
	}
	for _, e := range entries {
		if err := l.entry(path.Join(rel, e.Name()), e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (l *folderReader) entry(name string, e fs.DirEntry, depth int) error {
	full := path.Join(l.dir, name)
	if l.rules.Ignore(name, &plainInfo{DirEntry: e}) {
		return nil
	}
	var info fs.FileInfo = &plainInfo{DirEntry: e}
	if e.Type()&fs.ModeSymlink != 0 {
		followed, err := l.repo.Stat(full)
		if record.IsAbsent(err) {
			return &rutter.Error{Code: rutter.CodeInvalid, File: full, Message: "the symbolic link leads nowhere, or out of the repository: remove it, or name it in .helmignore"}
		}
		if err != nil {
			return fmt.Errorf("look up %s: %w", full, err)
		}
		if info = followed; l.rules.Ignore(name, info) {
			return nil
		}
	}
	if info.IsDir() {
		return l.folder(name, depth-1)
	}
	data, err := l.repo.ReadFile(full)
	if err != nil {
		return fmt.Errorf("read %s: %w", full, err)
	}
	if l.bytes += int64(len(data)); l.bytes > maxChartBytes {
		return rutter.Errorf(rutter.CodeInvalid, "%s: the chart is larger than %d MiB", l.dir, maxChartBytes>>20)
	}
	l.files = append(l.files, &archive.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, utf8bom)})
	return nil
}

func codeOf(err error) rutter.Code {
	if e := (*rutter.Error)(nil); errors.As(err, &e) {
		return e.Code
	}
	return rutter.CodeInvalid
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
