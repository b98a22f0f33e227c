package cluster

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/testenv"
)

// TestFleet (scenario B57): of fifty members one accepts and never answers, one
// refuses connections and one is always busy. The others do not feel it, and
// the state of the three is to be seen.
func TestFleet(t *testing.T) {
	f := newFaulty(t)
	f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // each member has a path of its own
		r.URL.Path = r.URL.Path[strings.Index(r.URL.Path[1:], "/")+1:]
		f.ServeHTTP(w, r)
	})
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()

	r := New(Options{Logger: slog.New(slog.DiscardHandler), Sink: newSink(), timing: hasty})
	t.Cleanup(r.Close)
	add := func(name, server string) rutter.Cluster {
		t.Helper()
		if err := r.Set(rutter.ClusterInfo{Name: name, Server: server}, rutter.ClusterCredential{TLS: rutter.ClusterTLS{CAData: f.ca()}}); err != nil {
			t.Fatal(err)
		}
		c, err := r.Lookup(rutter.Target{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		c.Watch(configMap)
		return c
	}
	var good []rutter.Cluster
	for i := range 47 {
		good = append(good, add(fmt.Sprintf("m%d", i), fmt.Sprintf("%s/m%d", f.URL, i)))
	}
	testenv.Eventually(t, 10*time.Second, func() error {
		for _, c := range good {
			if !c.Synced(configMap) {
				return fmt.Errorf("%s is not ready", c.Info().Name)
			}
		}
		return nil
	})
	before := p99(t, good)

	bad := []rutter.Cluster{add("silent", "https://"+silent.Addr().String()), add("gone", "https://"+gone.Addr().String()), add("busy", busy.URL)}
	goroutines := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for _, c := range bad {
		for range 40 {
			wg.Go(func() {
				if _, err := c.Apply(t.Context(), cm("a", "x", nil, true), rutter.ApplyOptions{}); rutter.CodeOf(err) != rutter.CodeUnavailable {
					t.Errorf("%s: %v", c.Info().Name, err)
				}
			})
		}
	}
	after := p99(t, good)
	if after > 3*before+20*time.Millisecond {
		t.Errorf("p99 of the others went from %s to %s", before, after)
	}
	wg.Wait()
	for _, name := range []string{"silent", "gone"} {
		testenv.Eventually(t, 5*time.Second, func() error {
			c, err := r.Lookup(rutter.Target{Name: name})
			if err != nil {
				return err
			}
			if st, _ := r.Status(c.Info().Server); st.Reachable {
				return fmt.Errorf("%s counts as reachable", name)
			}
			return nil
		})
	}
	testenv.Eventually(t, 5*time.Second, func() error { // callers that have gone hold nothing
		if now := runtime.NumGoroutine(); now > goroutines+20 {
			return fmt.Errorf("%d goroutines, before the calls %d", now, goroutines)
		}
		return nil
	})
}

// p99 of reads from all members at once.
func p99(t *testing.T, members []rutter.Cluster) time.Duration {
	t.Helper()
	var mu sync.Mutex
	var took []time.Duration
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 250 {
				c := members[(w*250+i)%len(members)]
				began := time.Now()
				if _, err := c.Get(t.Context(), configMap, "a", "x"); rutter.CodeOf(err) != rutter.CodeNotFound {
					t.Errorf("%s: %v", c.Info().Name, err)
				}
				d := time.Since(began)
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	return took[len(took)*99/100]
}
