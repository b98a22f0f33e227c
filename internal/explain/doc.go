// Package explain says in words why an Application is not as Git declares it, why
// it is not syncing and why it is not healthy, and what to do about each.
//
// It is pure: it judges what was read by others, a report of the engine and what
// the cluster says of its objects, and reaches nothing itself.
package explain
