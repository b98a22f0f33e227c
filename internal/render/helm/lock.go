package helm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/rutterhq/rutter"
)

// checkLock refuses a lock that was not made from the dependencies as they are
// now: what it pins is not what the chart asks for. A chart without a lock
// takes the newest versions that fit.
func checkLock(c *chart.Chart) error {
	if c.Lock == nil {
		return nil
	}
	reqs := c.Metadata.Dependencies
	file := "Chart.lock"
	if fileOf(c, "requirements.lock") != nil {
		file = "requirements.lock"
	}
	stale := rutter.Errorf(rutter.CodeInvalid, "%s is out of sync with the dependencies: run `helm dependency update` and commit it", file)
	for _, req := range reqs {
		if strings.HasPrefix(req.Repository, "@") || strings.HasPrefix(req.Repository, "alias:") {
			// Its digest is over the URL that the name stood for on the machine that made it.
			if lockCovers(c.Lock, reqs) {
				return nil
			}
			return stale
		}
	}
	sum, err := digest([2][]*chart.Dependency{reqs, c.Lock.Dependencies})
	if err != nil {
		return err
	}
	if sum == c.Lock.Digest {
		return nil
	}
	if c.Metadata.APIVersion == chart.APIVersionV1 { // Helm 2 made it otherwise
		if sum, err = digest(map[string][]*chart.Dependency{"dependencies": reqs}); err != nil || sum == c.Lock.Digest {
			return err
		}
	}
	return stale
}

func digest(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("hash the dependencies: %w", err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// lockCovers reports whether each dependency is locked to a version that fits.
func lockCovers(lock *chart.Lock, reqs []*chart.Dependency) bool {
	if len(lock.Dependencies) != len(reqs) {
		return false
	}
	for _, req := range reqs {
		if locked(lock, req) == nil {
			return false
		}
	}
	return true
}

func locked(lock *chart.Lock, req *chart.Dependency) *chart.Dependency {
	for _, d := range lock.Dependencies {
		if d != nil && d.Name == req.Name && chartutil.IsCompatibleRange(req.Version, d.Version) {
			return d
		}
	}
	return nil
}

// lockedVersion is the version to get: the locked one, or what the chart asks for.
func lockedVersion(c *chart.Chart, req *chart.Dependency) string {
	if c.Lock != nil {
		if d := locked(c.Lock, req); d != nil {
			return d.Version
		}
	}
	return req.Version
}

// declared finds the file and the line that declare a dependency.
func declared(c *chart.Chart, req *chart.Dependency) (file string, line int) {
	for _, name := range []string{"requirements.yaml", "Chart.yaml"} {
		raw := fileOf(c, name)
		if raw == nil {
			continue
		}
		var doc struct {
			Dependencies []yaml.Node `yaml:"dependencies"`
		}
		if yaml.Unmarshal(raw.Data, &doc) != nil {
			continue
		}
		for i := range doc.Dependencies {
			var d chart.Dependency
			if doc.Dependencies[i].Decode(&d) == nil && d.Name == req.Name && d.Version == req.Version && d.Alias == req.Alias {
				return name, doc.Dependencies[i].Line
			}
		}
	}
	return "Chart.yaml", 0
}
