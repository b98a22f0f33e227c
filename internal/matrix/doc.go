// Package matrix lays what several clusters have of one application side by side,
// field by field, and tells what was meant to differ from what has drifted: a
// difference that Git declares is intended, one that only the clusters have is
// accidental. PURE ring.
package matrix
