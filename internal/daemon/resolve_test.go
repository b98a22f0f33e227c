package daemon

import (
	"log/slog"
	"testing"

	"github.com/rutterhq/rutter"
)

// TestResolveThroughAll: whatever stands before the sources, a name is the URL
// that the asking project's keyring has for it.
func TestResolveThroughAll(t *testing.T) {
	s, err := openSources(sourceConfig{dir: t.TempDir(), logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.SetCredentials([]rutter.RepoCredential{
		{Name: "ours", Type: "helm", URL: "https://charts.example.com/all"},
		{Name: "ours", Type: "helm", URL: "https://charts.example.com/team", Project: "team"},
		{Name: "ours", Type: "git", URL: "https://git.example.com/x.git", Project: "team"},
		{Name: "reg", Type: "helm", URL: "reg.example.com/charts", EnableOCI: true},
		{Name: "theirs", Type: "helm", URL: "https://charts.example.com/theirs", Project: "other"},
	}, rutter.RepoTrust{})
	for _, tt := range []struct{ url, project, want string }{
		{"@ours", "team", "https://charts.example.com/team"},
		{"alias:ours", "other", "https://charts.example.com/all"},
		{"@reg", "team", "oci://reg.example.com/charts"},
		{"@theirs", "team", ""},
		{"https://charts.example.com/x", "team", "https://charts.example.com/x"},
	} {
		for name, from := range map[string]rutter.Sources{"all": s, "no files": noFiles{s}, "local first": localFirst{rest: s}} {
			got, err := from.(resolver).Resolve(rutter.Repo{URL: tt.url, Chart: "app", Project: tt.project})
			switch {
			case tt.want == "" && rutter.CodeOf(err) != rutter.CodeNotFound:
				t.Errorf("%s: %s for %s: %q, %v", name, tt.url, tt.project, got.URL, err)
			case tt.want != "" && (err != nil || got.URL != tt.want || got.Chart != "app" || got.Project != tt.project):
				t.Errorf("%s: %s for %s: %+v, %v", name, tt.url, tt.project, got, err)
			}
		}
	}
	got, err := noFiles{s}.Resolve(rutter.Repo{URL: "git@example.com:x.git"})
	if err != nil || got.URL != "git@example.com:x.git" {
		t.Errorf("%+v, %v", got, err)
	}
}
