package local

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/rutterhq/rutter"
)

const binary = "rutter-localcluster"

// Find returns the path of rutter-localcluster: RUTTER_LOCALCLUSTER, beside
// this executable, bin/ of the repository that the working directory is in, PATH.
func Find() (string, error) {
	if p := os.Getenv("RUTTER_LOCALCLUSTER"); p != "" {
		if executable(p) {
			return p, nil
		}
		return "", rutter.Errorf(rutter.CodeNotFound, "RUTTER_LOCALCLUSTER names %s, which is not an executable file", p)
	}
	if self, err := os.Executable(); err == nil {
		if p := filepath.Join(filepath.Dir(self), binary); executable(p) {
			return p, nil
		}
	}
	if dir, err := os.Getwd(); err == nil {
		for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if p := filepath.Join(dir, "bin", binary); executable(p) {
				return p, nil
			}
		}
	}
	if p, err := exec.LookPath(binary); err == nil {
		return p, nil
	}
	return "", rutter.Errorf(rutter.CodeNotFound, "%s is not built: run 'make build' (or set RUTTER_LOCALCLUSTER to its path)", binary)
}

func executable(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
