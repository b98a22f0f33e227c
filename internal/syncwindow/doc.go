// Package syncwindow says at a time what the sync windows of an application allow:
// whether it may be synced by itself, or by a person, why not, and when that is
// going to be otherwise, so that a unit is woken at that very moment and nothing
// polls. PURE ring.
//
// Schedules are read by the clocks of their zone, as people wrote them: a window
// at 22:00 begins at 22:00 in summer and in winter. A time that the clocks skip
// counts as if they had not been put forward yet; one that they show twice begins
// the window twice.
package syncwindow
