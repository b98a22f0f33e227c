package schema_test

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/schema"
	"github.com/rutterhq/rutter/internal/testenv"
)

var update = flag.Bool("update", false, "write builtin.json.gz anew")

// The embedded kinds are those of the server that the tests run on.
func TestBuiltinIsWhatAServerSays(t *testing.T) {
	t.Parallel()
	cfg := testenv.Hub(t).RESTConfig()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) []byte {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", path, res.Status, err)
		}
		return data
	}
	var index struct {
		Paths map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(get("/openapi/v3"), &index); err != nil {
		t.Fatal(err)
	}
	var documents [][]byte
	for _, path := range slices.Sorted(maps.Keys(index.Paths)) {
		group := strings.Split(path, "/")
		if path == "api/v1" || len(group) == 3 && group[0] == "apis" && (strings.HasSuffix(group[1], ".k8s.io") || !strings.Contains(group[1], ".")) {
			documents = append(documents, get("/openapi/v3/"+path))
		}
	}
	packed, err := schema.Reduce(documents)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("builtin.json.gz", packed, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if schema.Unpack(packed) != schema.Unpack(schema.Embedded()) {
		t.Error("the embedded schemas are not the server's: run the test with -update")
	}
}

func TestBuiltin(t *testing.T) {
	t.Parallel()
	s, err := schema.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if s.Len() < 60 {
		t.Errorf("only %d kinds", s.Len())
	}
	spec := s.Of(rutter.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}).Field("spec")
	if !spec.Field("selector").Atomic {
		t.Error("a selector is replaced as a whole")
	}
	pod := spec.Field("template").Field("spec")
	container := pod.Field("containers").Item()
	if keys := pod.Field("containers").Keys; len(keys) != 1 || keys[0] != "name" {
		t.Errorf("containers have the keys %v", keys)
	}
	if keys := container.Field("ports").Keys; len(keys) != 2 || keys[0] != "containerPort" || keys[1] != "protocol" {
		t.Errorf("ports have the keys %v", keys)
	}
	if p := container.Field("ports").Item().Field("protocol"); p.Default != "TCP" || !p.HasDefault {
		t.Errorf("protocol: %+v", p)
	}
	if container.Field("resources").Field("limits").Field("cpu").Kind != schema.Quantity {
		t.Error("a limit is no quantity")
	}
	if !container.Field("args").Atomic || !s.Of(rutter.GVK{Version: "v1", Kind: "ConfigMap"}).Field("metadata").Field("finalizers").Set {
		t.Error("lists")
	}
	if s.Named("io.k8s.api.core.v1.PodSpec") == nil {
		t.Error("no PodSpec by name")
	}
}

func BenchmarkBuiltin(b *testing.B) {
	for b.Loop() {
		if _, err := schema.Builtin(); err != nil {
			b.Fatal(err)
		}
	}
}
