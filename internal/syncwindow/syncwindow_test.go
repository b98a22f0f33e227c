package syncwindow_test

import (
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/syncwindow"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func entry(t *testing.T, kind, cron, length, zone string) rutter.SyncWindow {
	t.Helper()
	s, err := syncwindow.ParseSchedule(cron)
	if err != nil {
		t.Fatal(err)
	}
	d, err := time.ParseDuration(length)
	if err != nil {
		t.Fatal(err)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	return rutter.SyncWindow{Name: kind + " " + cron, Deny: kind == "deny", Schedule: s, Duration: d, Zone: loc}
}

// TestAt is a fake clock over the rules of reference 2.13.
func TestAt(t *testing.T) {
	day, other := entry(t, "allow", "0 9 * * *", "8h", "UTC"), entry(t, "allow", "0 20 * * *", "1h", "UTC")
	freeze := entry(t, "deny", "0 12 * * 5", "2h", "UTC")
	manual := freeze
	manual.Manual = true
	berlin := entry(t, "allow", "0 9 * * *", "1h", "Europe/Berlin")
	short := entry(t, "allow", "*/10 * * * *", "15m", "UTC")
	broken := rutter.SyncWindow{Name: "broken", Problem: "no schedule", Zone: time.UTC}
	for name, tc := range map[string]struct {
		windows           []rutter.SyncWindow
		now               string
		automated, manual bool
		until             string
	}{
		"none":                             {nil, "2026-12-01 10:00:00", true, true, ""},
		"within":                           {[]rutter.SyncWindow{day}, "2026-12-01 10:00:00", true, true, "2026-12-01 17:00:00"},
		"its begin counts":                 {[]rutter.SyncWindow{day}, "2026-12-01 09:00:00", true, true, "2026-12-01 17:00:00"},
		"its end does not":                 {[]rutter.SyncWindow{day}, "2026-12-01 17:00:00", false, false, "2026-12-02 09:00:00"},
		"before":                           {[]rutter.SyncWindow{day}, "2026-12-01 08:59:59", false, false, "2026-12-01 09:00:00"},
		"one of two (B37 a)":               {[]rutter.SyncWindow{day, other}, "2026-12-01 20:30:00", true, true, "2026-12-01 21:00:00"},
		"a denial beats":                   {[]rutter.SyncWindow{day, freeze}, "2026-12-04 13:00:00", false, false, "2026-12-04 14:00:00"},
		"a denial that is over":            {[]rutter.SyncWindow{day, freeze}, "2026-12-04 14:00:00", true, true, "2026-12-04 17:00:00"},
		"a denial and its next day":        {[]rutter.SyncWindow{freeze}, "2026-12-03 13:00:00", true, true, "2026-12-04 12:00:00"},
		"a person may":                     {[]rutter.SyncWindow{manual}, "2026-12-04 13:00:00", false, true, "2026-12-04 14:00:00"},
		"all that deny must let a person":  {[]rutter.SyncWindow{manual, freeze}, "2026-12-04 13:00:00", false, false, "2026-12-04 14:00:00"},
		"winter in Berlin":                 {[]rutter.SyncWindow{berlin}, "2026-12-01 08:30:00", true, true, "2026-12-01 09:00:00"},
		"summer in Berlin":                 {[]rutter.SyncWindow{berlin}, "2026-07-01 08:30:00", false, false, "2026-07-02 07:00:00"},
		"again before its end":             {[]rutter.SyncWindow{short}, "2026-12-01 08:12:00", true, true, ""},
		"one that cannot be read forbids":  {[]rutter.SyncWindow{day, broken}, "2026-12-01 10:00:00", false, false, ""},
		"leap day, years away, is not now": {[]rutter.SyncWindow{entry(t, "allow", "0 0 29 2 *", "1h", "UTC")}, "2026-12-01 10:00:00", false, false, "2028-02-29 00:00:00"},
	} {
		t.Run(name, func(t *testing.T) {
			p := syncwindow.At(tc.windows, at(t, tc.now))
			if p.Automated != tc.automated || p.Manual != tc.manual {
				t.Errorf("automated %v, manual %v (%s)", p.Automated, p.Manual, p.Why)
			}
			if got := p.Until.UTC(); tc.until != "" && !got.Equal(at(t, tc.until)) {
				t.Errorf("until %s, wanted %s", got, tc.until)
			}
		})
	}
}

// TestOverrun: a sync that began while it was allowed to goes on with its retries
// only where the window that has come says so.
func TestOverrun(t *testing.T) {
	freeze := entry(t, "deny", "0 12 * * *", "2h", "UTC")
	began, now := at(t, "2026-12-01 11:59:00"), at(t, "2026-12-01 12:01:00")
	if syncwindow.Allows([]rutter.SyncWindow{freeze}, now, began, false) {
		t.Error("it goes on")
	}
	freeze.Overrun = true
	if !syncwindow.Allows([]rutter.SyncWindow{freeze}, now, began, false) {
		t.Error("it does not go on")
	}
	if syncwindow.Allows([]rutter.SyncWindow{freeze}, now, time.Time{}, false) {
		t.Error("one begins")
	}
	if syncwindow.Allows([]rutter.SyncWindow{freeze}, now, at(t, "2026-12-01 12:00:30"), false) {
		t.Error("one that began while it was denied goes on")
	}
}

// TestUntilIsAnEdge: whatever the windows, the answer changes at Until and, in
// steps of a minute, not before.
func TestUntilIsAnEdge(t *testing.T) {
	windows := []rutter.SyncWindow{entry(t, "allow", "0 9 * * 1-5", "8h", "Europe/Berlin"), entry(t, "deny", "30 11 * * *", "45m", "America/New_York"), entry(t, "allow", "0 22 * * 6", "3h", "UTC")}
	now := at(t, "2026-10-22 00:00:00")
	end := now.Add(14 * 24 * time.Hour) // both zones change their clocks
	p := syncwindow.At(windows, now)
	for ; now.Before(end); now = now.Add(time.Minute) {
		q := syncwindow.At(windows, now)
		switch {
		case now.Before(p.Until) && (q.Automated != p.Automated || q.Manual != p.Manual):
			t.Fatalf("at %s it is %+v, before it was %+v", now, q, p)
		case now.Equal(p.Until) && q.Automated == p.Automated:
			t.Fatalf("at %s nothing changes", now)
		}
		p = q
	}
}
