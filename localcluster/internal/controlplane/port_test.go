package controlplane

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestListen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "port")
	take := func(reason string) net.Listener {
		t.Helper()
		l, err := listen(file)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	first := take("the first run")
	if port := portOf(first); port < lowestPort || port > highestPort {
		t.Errorf("port %d is one that outgoing connections may get", port)
	}
	while := take("its port is taken")
	if portOf(while) == portOf(first) {
		t.Error("two listeners on one port")
	}
	while.Close()
	if back := take("free again"); portOf(back) != portOf(while) {
		t.Errorf("came back on %d, was on %d", portOf(back), portOf(while))
	}
	if err := os.WriteFile(file, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	take("a file that holds no port")
}
