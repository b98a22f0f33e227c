package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unitRow is one row of GET /api/v1/units.
type unitRow struct {
	ID      string `json:"id"`
	Sync    string `json:"sync"`
	Renders int64  `json:"renders"`
}

// renders returns how often a tool ran for each of some Applications.
func (w *world) renders(t *testing.T, apps ...string) map[string]int64 {
	t.Helper()
	var list struct {
		Units []unitRow `json:"units"`
	}
	if err := json.Unmarshal(fetch(t, w.addr, "/api/v1/units"), &list); err != nil {
		t.Fatalf("decode the units: %v", err)
	}
	out := map[string]int64{}
	for _, app := range apps {
		for _, u := range list.Units {
			if u.ID == "argo/"+controlNamespace+"/"+app {
				out[app] = u.Renders
			}
		}
	}
	if len(out) != len(apps) {
		t.Fatalf("units of %d Applications are listed, wanted %d", len(out), len(apps))
	}
	return out
}

// counter reads one counter of GET /metrics.
func counter(t *testing.T, addr, name string) float64 {
	t.Helper()
	for line := range strings.SplitSeq(string(fetch(t, addr, "/metrics")), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatalf("counter %s: %v", name, err)
			}
			return f
		}
	}
	t.Fatalf("there is no counter %s", name)
	return 0
}

func fetch(t *testing.T, addr, path string) []byte {
	t.Helper()
	body, err := request(t.Context(), http.MethodGet, "http://"+addr+path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// pushed tells a controller of a push as GitHub would.
func pushed(t *testing.T, addr, repoURL string) {
	t.Helper()
	payload, err := json.Marshal(map[string]any{"ref": "refs/heads/main",
		"repository": map[string]any{"clone_url": repoURL, "default_branch": "main"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := request(t.Context(), http.MethodPost, "http://"+addr+"/api/webhook", payload, map[string]string{"X-GitHub-Event": "push"}); err != nil {
		t.Fatal(err)
	}
}

func request(ctx context.Context, method, url string, body []byte, header map[string]string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, url, err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, answer)
	}
	return answer, nil
}

// awaitReady waits until a controller has started.
func awaitReady(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := request(ctx, http.MethodGet, "http://"+addr+"/readyz", nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the controller is not ready: %w", err)
		}
	}
}
