// Package docs_test holds the documentation against the repository.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// features are how many features of the reference belong to each group of a table.
var features = map[string]int{
	"APP": 20, "DIR": 7, "KUS": 8, "HLM": 14, "CMP": 5, "HYD": 5, "DST": 3, "REP": 6, "CLU": 4, "STS": 4,
	"SYN": 16, "HOK": 8, "WAV": 1, "PRN": 5, "SEL": 1, "OPT": 10, "DEL": 5, "TRK": 7, "AUT": 6, "WIN": 4, "REC": 7,
	"DIF": 15, "HLT": 9, "ACT": 2, "SET": 33,
}

var (
	row   = regexp.MustCompile(`^\| ([A-Z]+)-\d+ \| (.+?) \| (.+?) \| (.*) \|$`)
	named = regexp.MustCompile("`([a-z0-9/]+)\\.(Test\\w+)`")
)

// TestCompatibility: every feature has a row, whose state is one of three, and every
// test that a row names is there.
func TestCompatibility(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	var seen []string
	for line := range strings.SplitSeq(string(text), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id := strings.TrimSpace(strings.Split(line, "|")[1])
		if slices.Contains(seen, id) {
			t.Errorf("%s has two rows", id)
		}
		seen = append(seen, id)
		count[m[1]]++
		state, tests := m[3], named.FindAllStringSubmatch(m[4], -1)
		switch {
		case strings.HasPrefix(state, "not yet: "):
		case state == "works", strings.HasPrefix(state, "works: "), strings.HasPrefix(state, "better: "):
			if len(tests) == 0 {
				t.Errorf("%s: %q, and no test is named that shows it", id, state)
			}
		default:
			t.Errorf("%s: %q is none of works, better: how, not yet: why", id, state)
		}
		for _, x := range tests {
			if !has(t, x[1], x[2]) {
				t.Errorf("%s: %s has no test %s", id, x[1], x[2])
			}
		}
	}
	for group, want := range features {
		if count[group] != want {
			t.Errorf("%s: %d rows, want %d", group, count[group], want)
		}
	}
}

// has reports whether a folder has a test.
func has(t *testing.T, folder, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(source), "\nfunc "+test+"(") {
			return true
		}
	}
	return false
}
