package inventory_test

import (
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/inventory"
)

func TestTrackingID(t *testing.T) {
	for _, tc := range []struct {
		name, instance, namespace string
		ref                       rutter.Ref
		want                      string
	}{
		{"namespaced", "web", "dest", rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "b"}, "web:apps/Deployment:a/b"},
		{"core group", "web", "dest", rutter.Ref{Kind: "Service", Namespace: "a", Name: "b"}, "web:/Service:a/b"},
		{"cluster-scoped", "web", "dest", rutter.Ref{Kind: "Namespace", Name: "b"}, "web:/Namespace:dest/b"},
		{"cluster-scoped without a destination namespace", "web", "", rutter.Ref{Kind: "Namespace", Name: "b"}, "web:/Namespace:/b"},
		{"colons in a name", "team_web", "x", rutter.Ref{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:a:b"}, "team_web:rbac.authorization.k8s.io/ClusterRole:x/system:a:b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := inventory.TrackingID(tc.instance, tc.ref, tc.namespace)
			if got != tc.want {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			instance, ref, ok := inventory.ParseTrackingID(got)
			if !ok || instance != tc.instance || ref.Name != tc.ref.Name || ref.Kind != tc.ref.Kind || ref.Group != tc.ref.Group {
				t.Errorf("parsed %q %+v %v", instance, ref, ok)
			}
			if of, ok := inventory.Tracked(got, tc.ref); !ok || of != tc.instance {
				t.Error("does not match the object that it was written for")
			}
		})
	}
}

func TestParseTrackingIDRefuses(t *testing.T) {
	for _, s := range []string{"", "web", "web:apps/Deployment", ":apps/Deployment:a/b", "web:Deployment:a/b", "web:a/b/c:a/b", "web:apps/Deployment:b", "web:apps/Deployment:a/b/c", "web:apps/:a/b", "web:apps/Deployment:a/"} {
		if instance, ref, ok := inventory.ParseTrackingID(s); ok {
			t.Errorf("%q: %q %+v", s, instance, ref)
		}
	}
}

func TestMatches(t *testing.T) {
	const id = "web:apps/Deployment:a/b"
	ref := rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "a", Name: "b"}
	for _, tc := range []struct {
		name, instance string
		edit           func(*rutter.Ref)
		want           bool
		reason         string
	}{
		{"itself", "web", func(*rutter.Ref) {}, true, ""},
		{"another application", "api", func(*rutter.Ref) {}, false, ""},
		{"a copy in another namespace", "web", func(r *rutter.Ref) { r.Namespace = "c" }, false, "annotations are copied with an object"},
		{"a copy of another name", "web", func(r *rutter.Ref) { r.Name = "c" }, false, ""},
		{"a child", "web", func(r *rutter.Ref) { r.Kind = "ReplicaSet" }, false, "controllers copy annotations to what they make"},
		{"another group", "web", func(r *rutter.Ref) { r.Group = "extensions" }, false, ""},
		{"no namespace", "web", func(r *rutter.Ref) { r.Namespace = "" }, true, "a cluster-scoped object carries the destination's namespace"},
	} {
		r := ref
		tc.edit(&r)
		of, ok := inventory.Tracked(id, r)
		if got := ok && of == tc.instance; got != tc.want {
			t.Errorf("%s: %v %s", tc.name, got, tc.reason)
		}
	}
}

// FuzzTrackingID: what parses is written back to the same text.
func FuzzTrackingID(f *testing.F) {
	f.Add("web:apps/Deployment:a/b")
	f.Add("web:/ClusterRole:/system:a")
	f.Fuzz(func(t *testing.T, s string) {
		instance, ref, ok := inventory.ParseTrackingID(s)
		if ok && inventory.TrackingID(instance, ref, "") != s {
			t.Errorf("%q is read as %q %+v", s, instance, ref)
		}
		if of, tracked := inventory.Tracked(s, ref); ok && (!tracked || of != instance) {
			t.Errorf("%q does not match itself", s)
		}
	})
}
