package argo_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func TestParseSyncSettings(t *testing.T) {
	for _, tc := range []struct {
		name     string
		params   map[string]string
		want     rutter.SyncSettings
		problems int
	}{
		{"none", nil, rutter.SyncSettings{}, 0},
		{"timeout and delay", map[string]string{argo.ParamSyncTimeout: "60", argo.ParamWaveDelay: "2"}, rutter.SyncSettings{Timeout: time.Minute, WaveDelay: 2 * time.Second}, 0},
		{"reference's backoff", map[string]string{argo.ParamHealBackoff: "2"},
			rutter.SyncSettings{Heal: &rutter.HealPauses{First: 2 * time.Second, Factor: 3, Cap: 5 * time.Minute}}, 0},
		{"fixed", map[string]string{argo.ParamHealTimeout: "5"}, rutter.SyncSettings{Heal: &rutter.HealPauses{Fixed: 5 * time.Second, Factor: 3, Cap: 5 * time.Minute}}, 0},
		{"mistakes", map[string]string{argo.ParamSyncTimeout: "1m", argo.ParamHealFactor: "-1"}, rutter.SyncSettings{}, 2},
	} {
		got, problems := argo.ParseSyncSettings(tc.params)
		if diff := cmp.Diff(tc.want, got); diff != "" || len(problems) != tc.problems {
			t.Errorf("%s: problems %v\n%s", tc.name, problems, diff)
		}
	}
}

// TestHealPauses: the pauses are those of the reference (2.12).
func TestHealPauses(t *testing.T) {
	for _, tc := range []struct {
		pauses rutter.HealPauses
		want   []time.Duration
	}{
		{rutter.HealPauses{First: 2 * time.Second, Factor: 3, Cap: 300 * time.Second}, []time.Duration{0, 2, 6, 18, 54, 162, 300, 300}},
		{rutter.HealPauses{Fixed: 5 * time.Second, Factor: 3, Cap: time.Minute}, []time.Duration{5, 5, 5}},
		{rutter.HealPauses{First: 2 * time.Second, Factor: 1, Cap: time.Minute}, []time.Duration{0, 2, 2, 2}},
	} {
		for attempt, want := range tc.want {
			if got := tc.pauses.Before(int64(attempt)); got.Seconds() != float64(want) {
				t.Errorf("%+v before attempt %d: %s, want %s", tc.pauses, attempt, got, time.Duration(int64(want)*int64(time.Second)))
			}
		}
	}
}
