package syncwindow

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
)

// field is one of the five of a cron schedule.
type field struct {
	name     string
	min, max int
	names    []string // from min on
}

// The names are those of cron; Sunday is 0 and 7.
var (
	minuteField  = field{name: "minute", max: 59}
	hourField    = field{name: "hour", max: 23}
	dayField     = field{name: "day of month", min: 1, max: 31}
	monthField   = field{name: "month", min: 1, max: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}}
	weekdayField = field{name: "day of week", max: 7, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}
)

// ParseSchedule reads the five fields of cron: minute, hour, day of month, month
// and day of week, each a star, a number or a name, a range, a list of those, and
// with /n every nth.
func ParseSchedule(text string) (rutter.Schedule, error) {
	var s rutter.Schedule
	parts := strings.Fields(text)
	if len(parts) != 5 {
		return s, rutter.Errorf(rutter.CodeInvalid, "schedule %q has %d fields: write minute, hour, day of month, month and day of week, such as 0 22 * * 1-5", text, len(parts))
	}
	for i, f := range []struct {
		field

		into *uint64
		star *bool
	}{
		{minuteField, &s.Minutes, nil}, {hourField, &s.Hours, nil}, {dayField, &s.Days, &s.EveryDay}, {monthField, &s.Months, nil}, {weekdayField, &s.Weekdays, &s.EveryWeekday},
	} {
		for part := range strings.SplitSeq(parts[i], ",") {
			set, star, err := f.parse(part)
			if err != nil {
				return s, rutter.Errorf(rutter.CodeInvalid, "schedule %q: %s %q: %w", text, f.name, part, err)
			}
			*f.into |= set
			if f.star != nil && star {
				*f.star = true
			}
		}
	}
	if s.Weekdays&(1<<7) != 0 {
		s.Weekdays |= 1
	}
	return s, nil
}

// parse reads one element of a list; star says that it begins with one.
func (f field) parse(part string) (set uint64, star bool, err error) {
	span, stepText, stepped := strings.Cut(part, "/")
	step := 1
	if stepped {
		if step, err = strconv.Atoi(stepText); err != nil || step < 1 {
			return 0, false, fmt.Errorf("%q is no step: write a number from 1", stepText)
		}
	}
	low, high := f.min, f.max
	if star = span == "*" || span == "?"; !star {
		from, to, ranged := strings.Cut(span, "-")
		if low, err = f.number(from); err != nil {
			return 0, false, err
		}
		switch {
		case ranged:
			if high, err = f.number(to); err != nil {
				return 0, false, err
			}
		case !stepped:
			high = low
		}
	}
	if low > high {
		return 0, false, fmt.Errorf("the range begins at %d, after its end at %d", low, high)
	}
	for n := low; n <= high; n += step {
		set |= 1 << n
	}
	return set, star, nil
}

func (f field) number(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, f.min, f.max)
	}
	return n, nil
}

// on reports whether a schedule has starts on a day.
func on(s rutter.Schedule, date time.Time) bool {
	if s.Months&(1<<int(date.Month())) == 0 {
		return false
	}
	day, weekday := s.Days&(1<<date.Day()) != 0, s.Weekdays&(1<<int(date.Weekday())) != 0
	if s.EveryDay || s.EveryWeekday {
		return day && weekday
	}
	return day || weekday
}

// day is a calendar day in a zone. The zone's offsets the day before and the day
// after tell whether its clocks may be put forward or back on it.
type day struct {
	date          time.Time // its midnight, as if in UTC
	before, after time.Duration
	zone          *time.Location
}

const oneDay = 24 * time.Hour

func newDay(date time.Time, zone *time.Location) day {
	return day{date: date, before: offset(date.Add(-oneDay), zone), after: offset(date.Add(2*oneDay), zone), zone: zone}
}

// dateOf is the calendar day of a moment in a zone, as its midnight in UTC.
func dateOf(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// at are the moments at which the clocks show a time of the day: one, two of them
// when they are put back over it. A time that they skip counts as if they had not
// been put forward yet, so that no window is lost.
func (d day) at(clock time.Duration) (first, second time.Time) {
	shown := d.date.Add(clock)
	first = shown.Add(-d.before)
	if d.before == d.after {
		return first, first
	}
	second = shown.Add(-d.after)
	early, late := offset(first, d.zone) == d.before, offset(second, d.zone) == d.after
	switch {
	case early && late:
		return first, second
	case late:
		return second, second
	}
	return first, first
}

// starts gives the starts of a day in the order of the clocks, or against it,
// until visit has enough. On a day on which the clocks are changed all are given,
// as their order is then another one.
func (d day) starts(s rutter.Schedule, backwards bool, visit func(time.Time) bool) {
	even := d.before == d.after
	each(s.Hours, backwards, func(hour int) bool {
		return each(s.Minutes, backwards, func(minute int) bool {
			first, second := d.at(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
			more := visit(first)
			if !second.Equal(first) {
				more = visit(second) && more
			}
			return more || !even
		})
	})
}

// each gives the numbers of a set, up or down, until visit has enough.
func each(set uint64, down bool, visit func(n int) bool) bool {
	for set != 0 {
		n := bits.TrailingZeros64(set)
		if down {
			n = 63 - bits.LeadingZeros64(set)
		}
		if !visit(n) {
			return false
		}
		set &^= 1 << n
	}
	return true
}

// lastStart is the latest start at or before t and after the limit.
func lastStart(s rutter.Schedule, zone *time.Location, t, limit time.Time) (start time.Time, ok bool) {
	for date := dateOf(t, zone); !date.Before(limit.Add(-2 * oneDay)); date = date.Add(-oneDay) {
		if !on(s, date) {
			continue
		}
		newDay(date, zone).starts(s, true, func(at time.Time) bool {
			if !at.After(t) && at.After(limit) && (!ok || at.After(start)) {
				start, ok = at, true
			}
			return !ok
		})
		if ok {
			return start, true
		}
	}
	return time.Time{}, false
}

// furthest is how far ahead a start is looked for: the longest time between two
// 29ths of February, and a day.
const furthest = 8*366 + 1

// nextStart is the earliest start after t; false when there is none, as on the
// 31st of February.
func nextStart(s rutter.Schedule, zone *time.Location, t time.Time) (start time.Time, ok bool) {
	date := dateOf(t, zone)
	for range furthest {
		if on(s, date) {
			newDay(date, zone).starts(s, false, func(at time.Time) bool {
				if at.After(t) && (!ok || at.Before(start)) {
					start, ok = at, true
				}
				return !ok
			})
			if ok {
				return start, true
			}
		}
		date = date.Add(oneDay)
	}
	return time.Time{}, false
}
