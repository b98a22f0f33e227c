package generate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// YAML as Kubernetes reads it takes the words yes, no, on, off, y and n without
// quotes for booleans: the country Norway, and the answer of a person, become false
// where a text was meant. They are read so here as well, and said.

var (
	wordValue = regexp.MustCompile(`(?m)([A-Za-z0-9_./-]+)["']?\s*:[ \t]+(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)[ \t]*(?:[,}\]\r#]|$)`)
	wordKey   = regexp.MustCompile(`(?m)(?:^|[{,]|- )[ \t]*(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)[ \t]*:(?:[ \t\r]|$)`)
	wordItem  = regexp.MustCompile(`(?m)^[ \t]*(-)[ \t]+(y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)[ \t]*(?:[\r#]|$)`)
)

// BooleanWords says which words of a YAML text, that was read as the value, are
// booleans now, each once.
func BooleanWords(text []byte, value any) []string {
	found := append(wordValue.FindAllSubmatch(text, -1), wordItem.FindAllSubmatch(text, -1)...)
	keys := wordKey.FindAllSubmatch(text, -1)
	if len(found)+len(keys) == 0 {
		return nil
	}
	at := map[string]map[bool]bool{}
	booleans(at, "-", value)
	var out []string
	said := map[string]bool{}
	for _, m := range keys {
		word := string(m[1])
		if named := strconv.FormatBool(meansTrue(word)); at[isKey+named] != nil && !said[isKey+word] {
			said[isKey+word] = true
			out = append(out, fmt.Sprintf("the key %s is read as %s, as in all YAML of Kubernetes; write %q in quotes where that is its name", word, named, word))
		}
	}
	for _, m := range found {
		key, word := string(m[1]), string(m[2])
		is := meansTrue(word)
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

func meansTrue(word string) bool {
	return strings.ContainsAny(word[:1], "yY") || strings.EqualFold(word, "on")
}

// isKey comes before the names of keys that are booleans themselves.
const isKey = "\x00"

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
			if k == "true" || k == "false" {
				at[isKey+k] = map[bool]bool{}
			}
			booleans(at, k, item)
		}
	case []any:
		for _, item := range v {
			booleans(at, "-", item)
		}
	}
}
