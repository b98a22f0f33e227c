package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKubectlArgs(t *testing.T) {
	for _, tc := range []struct{ give, want string }{
		{"/usr/bin/kubectl get pods", "/usr/bin/kubectl get pods"},
		{"bin/rutter-localcluster kubectl get pods", "kubectl get pods"},
		{"kubectl kubectl", "kubectl kubectl"}, //nolint:dupword // a command line
		{"bin/rutter-localcluster run --name kubectl", ""},
		{"rutter-localcluster", ""},
	} {
		got, ok := kubectlArgs(strings.Fields(tc.give))
		if ok != (tc.want != "") || !cmp.Equal(strings.Join(got, " "), tc.want) {
			t.Errorf("%s: %v %v", tc.give, got, ok)
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for args, want := range map[string]string{
		"--shape round":             "--shape must be full or hub",
		"--nodes -1":                "--nodes",
		"--name=":                   "--name",
		"--kube-version one":        "--kube-version",
		"--dir /dev/null/x":         "--dir",
		"--log /nowhere/at/all/log": "--log",
	} {
		c := runCommand()
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append([]string{"--shape=hub", "--ephemeral", "--dir=" + t.TempDir()}, strings.Fields(args)...))
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestIsPipe: only what ends with the parent may stand for it.
func TestIsPipe(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if isPipe(null) || !isPipe(r) {
		t.Errorf("null device: %v, pipe: %v", isPipe(null), isPipe(r))
	}
}
