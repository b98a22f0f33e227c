package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

func doomed(group, kind, namespace, name string, wave int) plan.Doomed {
	return plan.Doomed{Ref: rutter.Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}, UID: name, Wave: wave}
}

func TestTeardown(t *testing.T) {
	going := doomed("", "ConfigMap", "n", "going", 0)
	going.Deleting = true
	for name, c := range map[string]struct {
		reason string
		all    []plan.Doomed
		want   []string
	}{
		"waves": {
			reason: "what was created last goes first",
			all:    []plan.Doomed{doomed("", "ConfigMap", "n", "first", -1), doomed("", "ConfigMap", "n", "last", 5), doomed("", "ConfigMap", "n", "second", 0)},
			want:   []string{"last", "second", "first"},
		},
		"dependencies": {
			reason: "custom resources, who acts on them, what that needs, the namespace",
			all: []plan.Doomed{doomed("", "Namespace", "", "n", 0), doomed("apps", "Deployment", "n", "operator", 0), doomed("", "ServiceAccount", "n", "account", 0),
				doomed("rbac.authorization.k8s.io", "ClusterRole", "", "role", 0), doomed("example.com", "Widget", "n", "widget", 0)},
			want: []string{"widget", "operator", "role", "account", "n"},
		},
		"namespace in a later wave": {
			reason: "it would take with it what is to go later",
			all:    []plan.Doomed{doomed("", "Namespace", "", "n", 9), doomed("", "Secret", "n", "inside", 0), doomed("", "Secret", "other", "outside", 3)},
			want:   []string{"outside", "inside", "n"},
		},
		"one step": {
			reason: "objects of one kind and wave go together",
			all:    []plan.Doomed{doomed("", "Secret", "n", "a", 0), doomed("", "Secret", "m", "b", 0)},
			want:   []string{"b a"},
		},
		"going later": {
			reason: "a volume that somebody deleted by hand goes only when its Pods have",
			all:    []plan.Doomed{going, doomed("apps", "Deployment", "n", "user", 0)},
			want:   []string{"user", "going"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for left := c.all; len(left) > 0; {
				step, _ := plan.Teardown(left)
				gone := map[string]bool{}
				var names []string
				for _, x := range step {
					names, gone[x.Ref.Name] = append(names, x.Ref.Name), true
				}
				if len(step) == 0 {
					t.Fatal("it stops")
				}
				got = append(got, strings.Join(names, " "))
				var rest []plan.Doomed
				for _, x := range left {
					if !gone[x.Ref.Name] {
						rest = append(rest, x)
					}
				}
				left = rest
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", c.reason, d)
			}
		})
	}
}
