package daemon

import (
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/cluster"
)

// TestUnwatchedMemberIsDown: a member that does not answer is told to the sink of an
// action's clusters too, on which no engine waits.
func TestUnwatchedMemberIsDown(t *testing.T) {
	members := cluster.New(cluster.Options{Logger: slog.New(slog.DiscardHandler), Sink: deafSink{}})
	defer members.Close()
	if err := members.SetLocal(&rest.Config{Host: "http://127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	member, err := members.Lookup(rutter.Target{Server: cluster.LocalServer})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := member.Get(t.Context(), rutter.GVK{Version: "v1", Kind: "ConfigMap"}, "a", "b"); rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Fatal(err)
		}
		if status, known := members.Status(cluster.LocalServer); known && !status.Reachable && status.Err != nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("nobody noticed that it is down")
}
