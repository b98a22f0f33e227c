package helmparity

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// module is what `go list -m` says of a module.
type module struct {
	Dir     string `json:"Dir"`
	Version string `json:"Version"`
}

// helmModule is the module that Rutter links.
var helmModule = sync.OnceValues(func() (module, error) {
	var m module
	out, err := exec.Command("go", "list", "-m", "-json", "helm.sh/helm/v4").Output()
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(out, &m)
})

// helmProgram builds helm, of the version that Rutter links, into bin/tools.
var helmProgram = sync.OnceValues(func() (string, error) {
	m, err := helmModule()
	if err != nil {
		return "", err
	}
	root, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	tools := filepath.Join(filepath.Dir(strings.TrimSpace(string(root))), "bin", "tools")
	program := filepath.Join(tools, "helm")
	if info, err := buildinfo.ReadFile(program); err == nil && info.Main.Version == m.Version {
		return program, nil
	}
	install := exec.Command("go", "install", "helm.sh/helm/v4/cmd/helm@"+m.Version)
	install.Dir = os.TempDir() // outside of the module, whose requirements stay as they are
	install.Env = append(os.Environ(), "GOBIN="+tools, "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		return "", errors.New("build helm: " + string(out))
	}
	return program, nil
})

// helm runs the program without anything of this machine's own settings.
func helm(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	program, err := helmProgram()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + filepath.Join(home, "none"),
		"HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}
