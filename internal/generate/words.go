package generate

import (
	"fmt"
	"regexp"
	"strings"
)

// YAML as Kubernetes reads it takes the words yes, no, on, off, y and n without
// quotes for booleans: the country Norway, and the answer of a person, become false
// where a text was meant. They are read so here as well, and said.

var (
	wordValue = regexp.MustCompile(`(?m)([A-Za-z0-9_./-]+)["']?\s*:[ \t]+(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)[ \t]*(?:[,}\]\r#]|$)`)
	wordItem  = regexp.MustCompile(`(?m)^[ \t]*(-)[ \t]+(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)[ \t]*(?:[\r#]|$)`)
)

// BooleanWords says which words of a YAML text, that was read as the value, are
// booleans now, each once.
func BooleanWords(text []byte, value any) []string {
	found := append(wordValue.FindAllSubmatch(text, -1), wordItem.FindAllSubmatch(text, -1)...)
	if len(found) == 0 {
		return nil
	}
	at := map[string]map[bool]bool{}
	booleans(at, "-", value)
	var out []string
	said := map[string]bool{}
	for _, m := range found {
		key, word := string(m[1]), string(m[2])
		is := strings.ContainsAny(word[:1], "yY") || strings.EqualFold(word, "on")
		if !at[key][is] || said[key+word] { // it stands in a longer text
			continue
		}
		said[key+word] = true
		if key == "-" {
			key = "an item"
		}
		out = append(out, fmt.Sprintf("%s: %s is read as %t, as in all YAML of Kubernetes; write %q in quotes where the text is meant", key, word, is, word))
	}
	return out
}

// booleans notes the keys at which a value has booleans; items are at "-".
func booleans(at map[string]map[bool]bool, key string, value any) {
	switch v := value.(type) {
	case bool:
		if at[key] == nil {
			at[key] = map[bool]bool{}
		}
		at[key][v] = true
	case map[string]any:
		for k, item := range v {
			booleans(at, k, item)
		}
	case []any:
		for _, item := range v {
			booleans(at, "-", item)
		}
	}
}
