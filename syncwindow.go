package rutter

import "time"

// SyncWindow is a recurring time in which syncs of a unit are allowed, or denied
// (reference 2.13). It is plain data: package policy reads it from a project and
// says what it means at a time.
type SyncWindow struct {
	// Name is what messages call it: its rule, and what it says.
	Name string
	// Deny forbids syncs while the window is active; otherwise they are allowed
	// then, and forbidden at other times.
	Deny bool
	// Schedule says when it begins, by the clocks of Zone; Duration how long it lasts.
	Schedule Schedule
	Duration time.Duration
	Zone     *time.Location
	// Manual lets a person sync at a time at which the window forbids it.
	Manual bool
	// Overrun lets a sync go on, with its further attempts, that began while it was
	// allowed to.
	Overrun bool
	// Problem is why the window can't be read. It then forbids every sync: when it
	// would have is not known.
	Problem string
}

// Schedule is a cron schedule as sets of numbers: bit n stands for n.
type Schedule struct {
	Minutes, Hours, Days, Months, Weekdays uint64
	// EveryDay and EveryWeekday say that the field is a star. Of two fields that are
	// not, a day has to satisfy one; of one, that one.
	EveryDay, EveryWeekday bool
}
