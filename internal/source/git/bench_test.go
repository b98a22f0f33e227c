package git

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkFirstFetch is what the package's documentation says about shallow
// and partial fetches: a first fetch by each way, and a second after a push.
// The repository has 6,000 small files of manifests, 300 commits of history and,
// in one variant, 60 binaries of 2 MiB that nobody renders.
func BenchmarkFirstFetch(b *testing.B) {
	for _, binaries := range []int{0, 60} {
		_, o, names := monorepo(b)
		noise := rand.NewChaCha8([32]byte{})
		for i := range binaries {
			blob := make([]byte, 2<<20)
			_, _ = noise.Read(blob)
			o.write(fmt.Sprintf("assets/%d.bin", i), string(blob))
		}
		for i := range 300 {
			o.write(names[i], fmt.Sprint("change ", i))
			o.git("-C", o.work, "add", "--all")
			o.git("-C", o.work, "commit", "--quiet", "-m", "change")
		}
		first := o.commit("main")
		second := o.commit("main", names[0], "pushed")
		o.git("-C", o.bare, "config", "uploadpack.allowFilter", "true")
		for _, way := range []struct {
			name string
			args []string
		}{
			{"one commit", []string{"--depth=1"}},
			{"all history", nil},
			{"one commit without blobs of 1 MiB", []string{"--depth=1", "--filter=blob:limit=1m"}},
			{"one commit without blobs", []string{"--depth=1", "--filter=blob:none"}},
		} {
			b.Run(fmt.Sprintf("%d binaries/%s", binaries, way.name), func(b *testing.B) {
				benchmarkFetch(b, o, way.args, first, second)
			})
		}
	}
}

func benchmarkFetch(b *testing.B, o *origin, args []string, commits ...string) {
	f := newFetcher(b, Options{})
	r, err := f.remote(repoOf(o))
	if err != nil {
		b.Fatal(err)
	}
	var size int64
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		dir := filepath.Join(b.TempDir(), fmt.Sprint(i))
		if err := r.mirror.create(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for _, commit := range commits {
			if err := r.mirror.fetch(b.Context(), dir, r, append(append([]string{}, args...), r.remote), []string{"+" + commit + ":" + pinned + commit}); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		size = folderSize(b, dir)
		b.StartTimer()
	}
	b.ReportMetric(float64(size)/(1<<20), "MiB")
}

func folderSize(b *testing.B, dir string) (size int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "objects") {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return size
}
