package sandbox_test

import (
	"os"
	"testing"

	"github.com/rutterhq/rutter/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.MaybeChild()
	os.Exit(m.Run())
}

func TestHello(t *testing.T) {
	s, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	res, err := w.Run(t.Context(), sandbox.Command{Args: []string{"sh", "-c", "id; pwd; env; ls -la / /rutter/ /etc /dev; cat /proc/self/status | grep -i -E 'cap|seccomp|nonew|pid'; ulimit -a; ip a; ps aux; cat /proc/mounts"}})
	t.Logf("%v\n%s\n%s\n%d", err, res.Stdout, res.Stderr, res.ExitCode)
}
