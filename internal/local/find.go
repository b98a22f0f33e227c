package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rutterhq/rutter"
)

const binary = "rutter-localcluster"

// module is the line of go.mod by which this project's own tree is known.
const module = "module github.com/rutterhq/rutter"

// Find returns the path of rutter-localcluster: RUTTER_LOCALCLUSTER, beside
// this executable, bin/ of this project's tree if the working directory is in
// it, PATH. It never runs what merely lies in a folder above.
func Find() (string, error) {
	if p := os.Getenv("RUTTER_LOCALCLUSTER"); p != "" {
		if executable(p) {
			return p, nil
		}
		return "", rutter.Errorf(rutter.CodeNotFound, "RUTTER_LOCALCLUSTER names %s, which is not an executable file: run 'make build', or name another", p)
	}
	if self, err := os.Executable(); err == nil {
		if p := filepath.Join(filepath.Dir(self), binary); executable(p) {
			return p, nil
		}
	}
	if dir, err := os.Getwd(); err == nil {
		if p := filepath.Join(projectRoot(dir), "bin", binary); executable(p) {
			return p, nil
		}
	}
	if p, err := exec.LookPath(binary); err == nil {
		return p, nil
	}
	return "", rutter.Errorf(rutter.CodeNotFound, "%s is not built: run 'make build' (or set RUTTER_LOCALCLUSTER to its path)", binary)
}

// projectRoot is the folder of this project's go.mod at dir or above it; a
// path that cannot be one when there is none.
func projectRoot(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if first, _, _ := strings.Cut(string(data), "\n"); err == nil && strings.TrimSpace(first) == module {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return os.DevNull
		}
	}
}

func executable(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
