package store_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/store"
)

func open(t *testing.T, dir string, opts store.Options) *store.Store {
	t.Helper()
	s, err := store.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(s *store.Store, key, input, content string) store.Render {
	r := store.Render{Inputs: []rutter.Input{{Kind: rutter.InputFile, Path: "f", Hash: input}}, SourceType: "Directory", Digest: store.Digest([]byte(content))}
	s.Put(key, r, []byte(content))
	return r
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	a, b := put(s, "k", "1", "one"), put(s, "k", "2", "two")
	for _, s := range []*store.Store{s, open(t, dir, store.Options{})} {
		if diff := cmp.Diff([]store.Render{b, a}, s.Renders("k")); diff != "" {
			t.Errorf("newest first (-want +got):\n%s", diff)
		}
		if blob, err := s.Blob(a.Digest); err != nil || string(blob) != "one" {
			t.Errorf("%q, %v", blob, err)
		}
	}
	if s.Renders("other") != nil {
		t.Error("an unknown key has renders")
	}
}

func TestSameInputsReplace(t *testing.T) {
	s := open(t, t.TempDir(), store.Options{})
	put(s, "k", "1", "one")
	want := put(s, "k", "1", "again")
	if diff := cmp.Diff([]store.Render{want}, s.Renders("k")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range 50 {
		put(s, "k", fmt.Sprint(i), "x")
	}
	if n := len(s.Renders("k")); n != 8 {
		t.Errorf("%d renders of one declaration are kept", n)
	}
}

// files returns all files of the store, and checks that only the owner can read them.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
		out = append(out, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDamageIsDropped(t *testing.T) {
	for name, damage := range map[string][]byte{"truncated": nil, "changed": []byte("garbage\nmore")} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := put(open(t, dir, store.Options{}), "k", "1", "one")
			for _, f := range files(t, dir) {
				if err := os.WriteFile(f, damage, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, dir, store.Options{})
			if got := s.Renders("k"); got != nil {
				t.Errorf("a damaged entry answers: %v", got)
			}
			if _, err := s.Blob(r.Digest); rutter.CodeOf(err) != rutter.CodeNotFound {
				t.Errorf("a damaged blob: %v", err)
			}
			put(s, "k", "1", "one")
			if blob, err := s.Blob(r.Digest); err != nil || string(blob) != "one" {
				t.Errorf("after rendering again: %q, %v", blob, err)
			}
		})
	}
}

func TestHalfWrittenFilesGo(t *testing.T) {
	dir := t.TempDir()
	put(open(t, dir, store.Options{}), "k", "1", "one")
	left := filepath.Join(filepath.Dir(files(t, dir)[0]), "tmp-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir, store.Options{})
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("a half written file stays: %v", err)
	}
}

func TestOldestGoesFirst(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{MaxBytes: 40_000})
	old := put(s, "old", "1", strings.Repeat("o", 10_000))
	long := time.Now().Add(-100 * time.Hour)
	for _, f := range files(t, dir) {
		if err := os.Chtimes(f, long, long); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 5 {
		put(s, fmt.Sprint(i), "1", fmt.Sprint(i)+strings.Repeat("n", 8_000))
	}
	var size int64
	for _, f := range files(t, dir) {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 40_000 {
		t.Errorf("%d bytes are kept", size)
	}
	if _, err := s.Blob(old.Digest); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("the oldest is still there: %v", err)
	}
	if s.Renders("4") == nil {
		t.Error("the newest went")
	}
}

func TestDiskThatTakesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	// A file where the store needs a folder fails for root, too, which permissions do not.
	for _, name := range []string{"blobs", "keys"} {
		if err := os.WriteFile(filepath.Join(dir, "v2", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := put(s, "k", "1", "one")
	if blob, err := s.Blob(r.Digest); err != nil || string(blob) != "one" {
		t.Errorf("%q, %v", blob, err)
	}
	if diff := cmp.Diff([]store.Render{r}, s.Renders("k")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsSecretLiesSealed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	const secret = "hunter2-is-no-password"
	r := store.Render{SourceType: "Helm", Digest: store.Digest([]byte("address")), Sealed: true}
	s.Put("k", r, []byte(secret))
	blob, err := s.Blob(r.Digest)
	if err != nil || string(blob) != secret {
		t.Fatalf("the process that sealed it reads %q, %v", blob, err)
	}
	var files int
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(name)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s holds the secret in the clear", name)
		}
		return err
	})
	if err != nil || files != 2 {
		t.Fatalf("%d files, %v", files, err)
	}
	next := open(t, dir, store.Options{})
	if _, err := next.Blob(r.Digest); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Fatalf("the next process reads what the last one sealed: %v", err)
	}
}

func TestSealedFileAnswersForItsDigestOnly(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, store.Options{})
	a := store.Render{Digest: store.Digest([]byte("a")), Sealed: true}
	b := store.Render{Digest: store.Digest([]byte("b")), Sealed: true}
	s.Put("a", a, []byte("one"))
	s.Put("b", b, []byte("two"))
	file := func(digest string) string {
		m, err := filepath.Glob(filepath.Join(dir, "*", "blobs", "*", digest))
		if err != nil || len(m) != 1 {
			t.Fatal(m, err)
		}
		return m[0]
	}
	data, err := os.ReadFile(file(a.Digest))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file(b.Digest), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if blob, err := s.Blob(b.Digest); err == nil {
		t.Fatalf("%q was answered for another digest", blob)
	}
}
