package chart

import (
	"io/fs"
	"regexp"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

// nameForm is what a chart may be called: it begins with a letter or a digit,
// so it is neither "." nor "..", and has no slash.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,249}$`)

// versionForm is looser than semver, which is looked at where versions are
// compared, and has nothing that means something in a path.
var versionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}$`)

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return rutter.Errorf(rutter.CodeInvalid, "chart %q: this can be no name of a chart (letters, digits and . _ -, beginning with a letter or digit)", name)
	}
	return nil
}

// checkChart looks at what was unpacked: a chart says what it is called, and is
// called something that can be part of a path.
func checkChart(t *unpack.Tree) error {
	snap := t.Snapshot("the archive", "as downloaded")
	data, err := fs.ReadFile(snap, "Chart.yaml")
	if err != nil {
		if info, bad := snap.Stat("Chart.yaml"); bad == nil && info.Mode().IsRegular() {
			return err
		}
		return rutter.Errorf(rutter.CodeInvalid, "the archive is no chart: it has no Chart.yaml in its top folder")
	}
	const longest = 1 << 20
	if len(data) > longest {
		return rutter.Errorf(rutter.CodeInvalid, "Chart.yaml has %d bytes, more than %d", len(data), longest)
	}
	var meta struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	if err := yaml.Unmarshal(data, &meta); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "Chart.yaml cannot be read: %w", err)
	}
	if err := checkName(meta.Name); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "Chart.yaml: %w", err)
	}
	if !versionForm.MatchString(meta.Version) {
		return rutter.Errorf(rutter.CodeInvalid, "Chart.yaml: version %q is no version of a chart", meta.Version)
	}
	return nil
}
