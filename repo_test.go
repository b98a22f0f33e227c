package rutter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// TestRepoKey: what Key says of a repository is all that it takes to find it
// again, also after an upgrade: renders on disk hold the text. Only a password
// is left out.
func TestRepoKey(t *testing.T) {
	full := rutter.Repo{URL: "https://charts.example/x", Revision: "^1", Project: "team", Chart: "web", TagPrefix: "api/", File: true, PassCredentials: true}
	tests := []struct {
		name      string
		key, want rutter.Repo
		text      string
	}{
		{"all fields", full, full, `{"URL":"https://charts.example/x","Revision":"^1","Project":"team","Chart":"web","TagPrefix":"api/","File":true,"PassCredentials":true}`},
		{"a password", rutter.Repo{URL: "https://ann:s3cret@host/org/app.git"}, rutter.Repo{URL: "https://host/org/app.git"},
			`{"URL":"https://host/org/app.git","Revision":"","Project":"","Chart":"","TagPrefix":"","File":false,"PassCredentials":false}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.key.Key(); got != tt.text {
				t.Errorf("%s, want %s", got, tt.text)
			}
			got, err := rutter.RepoOfKey(tt.key.Key())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
