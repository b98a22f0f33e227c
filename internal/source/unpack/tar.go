package unpack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/rutterhq/rutter"
)

// Tar unfolds a tar archive, plain or compressed with gzip, into a tree. With
// strip, all must lie in one folder, which is left out: that is how charts are
// packed. It reads r to its end, so that a digest over r is one over all of it.
//
// Files, folders, symbolic links within the tree and hard links to earlier
// files of it are taken; devices, pipes, sockets and sparse files are refused,
// as are links that leave the tree, names that are absolute or have .., two
// entries of one name, and entries below what is no folder.
func Tar(b *Builder, r io.Reader, strip bool) error {
	in := &counter{r: r}
	buffered := bufio.NewReaderSize(in, 32<<10)
	out := &unfolded{in: in, limits: b.limits, r: buffered}
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zipped, err := gzip.NewReader(buffered)
		if err != nil {
			return damaged(err)
		}
		out.r = zipped
	}
	u := &unpacking{b: b, tar: tar.NewReader(out), strip: strip}
	for {
		h, err := u.tar.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return damaged(err)
		}
		if err := u.entry(h); err != nil {
			return err
		}
	}
	// What follows the end is read for its checksum, and held to the same limits.
	if _, err := io.Copy(io.Discard, out); err != nil {
		return damaged(err)
	}
	if _, err := io.Copy(io.Discard, buffered); err != nil {
		return damaged(err)
	}
	if len(b.records) == 0 {
		return rutter.Errorf(rutter.CodeInvalid, "the archive is empty")
	}
	return nil
}

// damaged says that an archive cannot be read, unless there is a better reason.
func damaged(err error) error {
	if coded, ok := errors.AsType[*rutter.Error](err); ok {
		return coded
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return rutter.Errorf(rutter.CodeUnavailable, "storing the archive: %w", err)
	}
	return rutter.Errorf(rutter.CodeInvalid, "the archive is damaged, or no tar archive (plain or gzip): %w", err)
}

type unpacking struct {
	b   *Builder
	tar *tar.Reader
	// top is the folder that is left out, once it is known.
	strip bool
	top   string
}

func (u *unpacking) entry(h *tar.Header) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil // a comment, as git archive writes it
	}
	if len(h.PAXRecords) > 0 && sparse(h) {
		return rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q is a sparse file; pack it as a plain one", h.Name)
	}
	name, err := u.name(h.Name)
	if err != nil || name == "" && h.Typeflag == tar.TypeDir {
		return err
	}
	if name == "" {
		return rutter.Errorf(rutter.CodeInvalid, "the archive has %q at its top, which is no folder; a chart lies in one folder", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg, '\x00':
		if err := u.b.File(name, h.Mode&0o111 != 0, h.Size, u.tar); err != nil {
			return damaged(err)
		}
		return nil
	case tar.TypeDir:
		return u.b.Dir(name)
	case tar.TypeSymlink:
		return u.b.Link(name, h.Linkname)
	case tar.TypeLink:
		to, err := u.name(h.Linkname)
		if err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "the archive's hard link %q: %w", h.Name, err)
		}
		if to == "" {
			to = "."
		}
		return u.b.Alias(name, to)
	}
	return rutter.Errorf(rutter.CodeInvalid, "the archive's entry %q is of type %q: only files, folders and links within the archive are taken", h.Name, h.Typeflag)
}

// sparse tells of a file whose holes are not in the archive.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// name drops the top folder; "" is the top folder itself.
func (u *unpacking) name(raw string) (string, error) {
	if !u.strip {
		return raw, nil
	}
	name, err := cleanName(raw, u.b.limits)
	if err != nil {
		return "", err
	}
	if name == "." {
		return "", nil
	}
	top, rest, _ := strings.Cut(name, "/")
	if u.top == "" {
		u.top = top
	}
	if top != u.top {
		return "", rutter.Errorf(rutter.CodeInvalid, "the archive has %q and %q at its top; a chart lies in one folder", u.top, top)
	}
	return rest, nil
}

// counter counts what is read.
type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// unfolded is what comes out of an archive, held to its limits.
type unfolded struct {
	in     *counter
	r      io.Reader
	limits Limits
	n      int64
}

// Read implements io.Reader.
func (u *unfolded) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	u.n += int64(n)
	switch {
	case u.n > u.limits.stream():
		return 0, rutter.Errorf(rutter.CodeInvalid, "the archive unfolds to more than %d bytes", u.limits.stream())
	case u.n > u.limits.RatioFrom && u.n/u.limits.Ratio > u.in.n:
		return 0, rutter.Errorf(rutter.CodeInvalid, "the archive unfolds to more than %d times its size", u.limits.Ratio)
	}
	return n, err
}
