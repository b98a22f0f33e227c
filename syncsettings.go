package rutter

import "time"

// SyncSettings are what an operator sets for all syncs.
type SyncSettings struct {
	// Timeout ends a sync with all its retries; 0 lets it take its time.
	Timeout time.Duration
	// WaveDelay is a fixed pause between two waves; there is none by default.
	WaveDelay time.Duration
	// Heal are the pauses between repairs; nil repairs at once, until a field is contested.
	Heal *HealPauses
}

// HealPauses are the pauses between the repairs of a unit since the last sync that
// was none (reference 2.12): none before the first, First before the second and
// Factor times longer before each one after, up to Cap. Where First is 0 each takes Fixed.
type HealPauses struct {
	Fixed, First, Cap time.Duration
	Factor            int64
}

// Before is the pause before a repair; attempt is how many came before it.
func (p HealPauses) Before(attempt int64) time.Duration {
	if p.First <= 0 {
		return p.Fixed
	}
	if attempt <= 0 {
		return 0
	}
	d := p.First
	for ; attempt > 1 && d < p.Cap; attempt-- {
		d *= time.Duration(max(p.Factor, 1))
		if p.Factor <= 1 {
			break
		}
	}
	return min(d, p.Cap)
}
