package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`

func TestExplainOutputs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(someKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	deps := Deps{Explain: func(_ context.Context, o DiffOptions) (AppAnswer, error) {
		asked++
		return AppAnswer{Application: o.App.Namespace + "/" + o.App.Name, Cluster: "alpha"}, nil
	}}
	for _, c := range []struct {
		output, want string
		asks         bool
	}{
		{"text", "argocd/shop on alpha: ", true}, {"json", `"application": "argocd/shop"`, true}, {"yaml", "use text or json", false}, {"table", "use text or json", false},
	} {
		asked = 0
		var out, said strings.Builder
		code := Main(t.Context(), []string{"explain", "shop", "-o", c.output, "--kubeconfig", file}, strings.NewReader(""), &out, &said, "test", deps)
		if got := out.String() + said.String(); !strings.Contains(got, c.want) || (code == 0) != c.asks || (asked == 1) != c.asks {
			t.Errorf("-o %s: exit code %d, asked %d times, %q", c.output, code, asked, got)
		}
	}
}
