package cli

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

func TestHoldEnd(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		until  string
		length time.Duration
		want   time.Time
	}{
		"for a time":     {"", 2 * time.Hour, now.Add(2 * time.Hour)},
		"until a time":   {"2026-08-01T13:30:00Z", 0, now.Add(90 * time.Minute)},
		"in local time":  {"2026-08-01T15:30:00+02:00", 0, now.Add(90 * time.Minute)},
		"for ever":       {"", 0, time.Time{}},
		"both":           {"2026-08-01T13:30:00Z", time.Hour, time.Time{}},
		"backwards":      {"", -time.Hour, time.Time{}},
		"in the past":    {"2026-08-01T11:59:59Z", 0, time.Time{}},
		"no time at all": {"tomorrow", 0, time.Time{}},
	} {
		got, err := holdEnd(c.until, c.length, now)
		if refused := c.want.IsZero(); (err != nil) != refused || !refused && !got.Equal(c.want) {
			t.Errorf("%s: %v %v, want %v", name, got, err, c.want)
		}
	}
}

// TestHolds: the fleet's list has the holds in force, those that end first
// first, and those that cannot be read.
func TestHolds(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	app := func(name, hold string) v1alpha1.Application {
		a := v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}}
		if hold != "" {
			a.Annotations = map[string]string{generate.AnnotationHold: hold}
		}
		return a
	}
	rows := holdsOf([]v1alpha1.Application{
		app("free", ""), app("later", "who=ada; why=x; until=2026-08-01T14:00:00Z"), app("ended", "who=ada; until=2026-08-01T11:00:00Z"),
		app("sooner", "who=eve; why=y; until=2026-08-01T13:00:00Z"), app("broken", "who=bob"),
	}, now)
	var got []string
	for _, r := range rows {
		got = append(got, r.Application+" "+r.Who+" "+r.Until)
	}
	want := []string{"broken bob ", "sooner eve 2026-08-01T13:00:00Z", "later ada 2026-08-01T14:00:00Z"}
	if diff := cmp.Diff(want, got); diff != "" || rows[0].Problem == "" {
		t.Errorf("%+v\n%s", rows, diff)
	}
}
