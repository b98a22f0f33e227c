package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"

	"github.com/rutterhq/rutter"
)

// The bounds of a chart and of the archives in it.
const (
	maxChartBytes   = 100 << 20 // as in Helm, for all archives of a chart together
	maxChartFiles   = 20_000
	freeRatioBytes  = 4 << 20 // what an archive may hold whatever its own size
	maxArchiveRatio = 100
)

var windowsDrive = regexp.MustCompile(`^[a-zA-Z]:/`)

// budget is what the archives of one chart may still hold.
type budget struct {
	bytes int64
	files int
}

func newBudget() *budget { return &budget{bytes: maxChartBytes, files: maxChartFiles} }

// unpack reads a chart archive into memory. Nothing is ever written to disk,
// links are empty files as in Helm, and names that lead out of the chart are
// refused.
func (b *budget) unpack(data []byte) ([]*archive.BufferedFile, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it is no gzip archive: %w", err)
	}
	plain := &limited{from: zipped, left: max(freeRatioBytes, maxArchiveRatio*int64(len(data)))}
	var files []*archive.BufferedFile
	for in := tar.NewReader(plain); ; {
		hd, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "it is damaged: %w", err)
		}
		if hd.FileInfo().IsDir() || hd.Typeflag == tar.TypeXGlobalHeader || hd.Typeflag == tar.TypeXHeader {
			continue
		}
		name, err := nameInChart(hd.Name)
		if err != nil {
			return nil, err
		}
		content, err := b.read(in)
		if err != nil {
			return nil, err
		}
		files = append(files, &archive.BufferedFile{Name: name, Data: bytes.TrimPrefix(content, utf8bom)})
	}
	if len(files) == 0 {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it holds no files")
	}
	return files, nil
}

// read returns one member of an archive.
func (b *budget) read(in io.Reader) ([]byte, error) {
	if b.files--; b.files < 0 {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the chart's archives hold more than %d files", maxChartFiles)
	}
	content, err := io.ReadAll(io.LimitReader(in, b.bytes+1))
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it is damaged: %w", err)
	}
	if b.bytes -= int64(len(content)); b.bytes < 0 {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the chart's archives hold more than %d MiB", maxChartBytes>>20)
	}
	return content, nil
}

// nameInChart is a member's name without the archive's own folder.
func nameInChart(member string) (string, error) {
	slashed := member
	if strings.Contains(member, `\`) {
		slashed = strings.ReplaceAll(member, `\`, "/")
	}
	first, rest, _ := strings.Cut(slashed, "/")
	name := path.Clean(rest)
	switch {
	case first == "Chart.yaml":
		return "", rutter.Errorf(rutter.CodeInvalid, "Chart.yaml lies at the top of the archive: a chart's archive holds one folder")
	case rest == "", name == ".", path.IsAbs(rest), strings.HasPrefix(name, ".."), windowsDrive.MatchString(name):
		return "", rutter.Errorf(rutter.CodeInvalid, "the name %q leads out of the chart", member)
	}
	return name, nil
}

// limited ends a stream that unpacks to far more than it came from.
type limited struct {
	from io.Reader
	left int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.from.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, rutter.Errorf(rutter.CodeInvalid, "it unpacks to more than %d times its size", maxArchiveRatio)
	}
	return n, err
}
