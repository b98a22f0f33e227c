package lint

import (
	"slices"
	"strings"
)

// suggestion returns "; did you mean X?" for the name that is nearest to a
// misspelt one, and "" when none is near.
func suggestion(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		// A longer name that begins or ends with a known one.
		i := slices.IndexFunc(known, func(k string) bool { return len(k) > 3 && (strings.HasPrefix(name, k) || strings.HasSuffix(name, k)) })
		if i < 0 {
			return ""
		}
		best = known[i]
	}
	return "; did you mean " + best + "?"
}

// distance is the number of letters to insert, remove, replace or swap with
// their neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > 100 || len(b) > 100 {
		return 100
	}
	before, row := []int(nil), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
