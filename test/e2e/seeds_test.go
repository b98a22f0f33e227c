package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// seedPaths are where each kind is posted to.
var seedPaths = map[string]string{
	"Application":    "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications",
	"ApplicationSet": "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets",
	"AppProject":     "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects",
	"Secret":         "/api/v1/namespaces/argocd/secrets",
}

// TestSeeds sends the manifests that people write, byte by byte, to a real API
// server with our CRDs, as kubectl does (server dry run, strict validation).
func TestSeeds(t *testing.T) {
	t.Parallel()
	w := start(t)
	// What is wrong in the samples themselves: the server's words, and the place
	// that our own decoder names.
	refused := map[string]struct{ server, place []string }{
		"gitops-advanced-04.yaml": {
			server: []string{`unknown field "spec.generators[0].scmProvider.github.filters"`},
			place:  []string{"gitops-advanced-04.yaml:13:", "spec.generators[0].scmProvider.github.filters"},
		},
		"gitops-advanced-05.yaml": {
			// The server names the line after the one where the repeated key stands.
			server: []string{"line 34", `key "automated" already set`, "line 36", `key "syncPolicy" already set`},
			place:  []string{"gitops-advanced-05.yaml:33:", "gitops-advanced-05.yaml:35:", "spec.template.spec.syncPolicy"},
		},
	}
	files, err := filepath.Glob("../seeds/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d seeds, %v", len(files), err)
	}
	hub, err := rest.HTTPClientFor(w.hub.rest)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			status, message := dryRun(t, hub, w.hub.rest.Host, raw)
			want, bad := refused[name]
			if !bad {
				if status != http.StatusCreated {
					t.Errorf("refused with %d: %s", status, message)
				}
				return
			}
			if status != http.StatusBadRequest || !containsAll(message, want.server) {
				t.Errorf("answered %d: %s\nwanted a refusal with %q", status, message, want.server)
			}
			if _, err := argo.Decode(raw, name); err == nil || !containsAll(err.Error(), want.place) {
				t.Errorf("our decoder says %v, wanted %q", err, want.place)
			}
		})
	}
}

// dryRun posts a manifest and returns the server's status and message.
func dryRun(t *testing.T, hub *http.Client, host string, raw []byte) (int, string) {
	t.Helper()
	url := host + pathOf(t, raw) + "?dryRun=All&fieldValidation=Strict&fieldManager=kubectl-create"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/yaml")
	req.Header.Set("Accept", "application/json")
	resp, err := hub.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return resp.StatusCode, fmt.Sprintf("%s (%v)", body, err)
	}
	return resp.StatusCode, answer.Message
}

// pathOf reads the kind without decoding: a sample may not be decodable.
func pathOf(t *testing.T, raw []byte) string {
	t.Helper()
	for line := range strings.Lines(string(raw)) {
		if kind, ok := strings.CutPrefix(line, "kind: "); ok {
			if path := seedPaths[strings.TrimSpace(kind)]; path != "" {
				return path
			}
		}
	}
	t.Fatal("the sample has none of the kinds")
	return ""
}
