package matrix

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

const lastApplied = `.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`

// masks hide the values of Secrets; numbers say which are the same.
type masks struct{ numbers map[string]map[string]string }

func newMasks() *masks { return &masks{numbers: map[string]map[string]string{}} }

func (k objectKey) secret() bool { return k.kind == "Secret" && k.group == "" }

// hides reports whether a value may be secret. Of a Secret only what is known to be
// harmless is shown; a misspelt field is hidden like the right one.
func hides(k objectKey, path string) bool {
	if strings.HasPrefix(path, lastApplied) {
		return true // it repeats the whole object
	}
	if !k.secret() {
		return false
	}
	switch path {
	case "", ".apiVersion", ".kind", ".type", ".immutable":
		return false
	}
	rest, metadata := strings.CutPrefix(path, ".metadata")
	return !metadata || rest == "" || strings.HasPrefix(rest, ".annotations") || rest[0] != '.' && rest[0] != '['
}

// declared is a declared value as it may be shown.
func (m *masks) declared(k objectKey, path, value string) string {
	if value == "" || !hides(k, path) {
		return value
	}
	field := fmt.Sprint(k, path)
	if m.numbers[field] == nil {
		m.numbers[field] = map[string]string{}
	}
	known := m.numbers[field]
	if known[value] == "" {
		known[value] = fmt.Sprintf(`"hidden value %d"`, len(known)+1)
	}
	return known[value]
}

// live is a live value as it may be shown. It was hidden by who read it, so that it
// is known only to be another than the declared one.
func (m *masks) live(k objectKey, path, value string) string {
	if value == "" || !hides(k, path) {
		return value
	}
	return `"another hidden value"`
}

const (
	// mostShown is how much of a value is shown, and before how much of that is from
	// before the place where values begin to differ.
	mostShown = 200
	before    = 40
)

// shorten cuts the long ones of the values of a row to where they begin to differ. A
// digest tells those apart that differ further on as well.
func shorten(values []string) func(string) string {
	from := -1
	for i, v := range values {
		if v == "" {
			continue
		}
		if from < 0 {
			from = len(v)
		}
		for _, w := range values[:i] {
			if w != "" && w != v {
				from = min(from, common(w, v))
			}
		}
	}
	if !slices.ContainsFunc(values, func(v string) bool { return v != "" && v != values[0] }) {
		from = 0 // they do not differ
	}
	return func(v string) string {
		if len(v) <= mostShown {
			return v
		}
		sum := sha256.Sum256([]byte(v))
		start := max(0, min(from, len(v)-mostShown+before)-before)
		end := min(len(v), start+mostShown)
		text := strings.ToValidUTF8(v[start:end], "")
		if start > 0 {
			text = "…" + text
		}
		if end < len(v) {
			text += "…"
		}
		return text + " (sha256 " + hex.EncodeToString(sum[:4]) + ")"
	}
}

// common is how long two values are the same.
func common(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
