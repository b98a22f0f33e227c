package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// TestSelectResources: wildcards and exclusions are those of the reference (2.6).
func TestSelectResources(t *testing.T) {
	app := &v1alpha1.Application{}
	for _, r := range []string{"apps/Deployment/a/web", "apps/Deployment/b/web", "/Service/a/web", "/ConfigMap/a/c"} {
		p := strings.Split(r, "/")
		app.Status.Resources = append(app.Status.Resources, v1alpha1.ResourceStatus{Group: p[0], Kind: p[1], Namespace: p[2], Name: p[3]})
	}
	for _, tc := range []struct {
		patterns, want string
		fails          bool
	}{
		{"apps:Deployment:web", "apps/Deployment//web", false},
		{":Service:a/unknown", "/Service/a/unknown", false},
		{"*:*:*", "apps/Deployment/a/web apps/Deployment/b/web /Service/a/web /ConfigMap/a/c", false},
		{"apps:*:a/*", "apps/Deployment/a/web", false},
		{"!apps:*:*", "/Service/a/web /ConfigMap/a/c", false},
		{"*:*:web !:Service:*", "apps/Deployment/a/web apps/Deployment/b/web", false},
		{"batch:*:*", "", true},
		{"Deployment:web", "", true},
		{"apps:[:web", "", true},
	} {
		got, err := selectResources(app, strings.Fields(tc.patterns))
		var names []string
		for _, r := range got {
			names = append(names, strings.Join([]string{r.Group, r.Kind, r.Namespace, r.Name}, "/"))
		}
		if diff := cmp.Diff(tc.want, strings.Join(names, " ")); diff != "" || (err != nil) != tc.fails {
			t.Errorf("%s: %v\n%s", tc.patterns, err, diff)
		}
	}
}
