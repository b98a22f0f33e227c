package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// known are hosts that others imitate.
var known = []string{"github.com", "gitlab.com", "bitbucket.org", "codeberg.org", "dev.azure.com", "ghcr.io", "quay.io", "docker.io", "registry-1.docker.io", "gcr.io"}

// skeletons maps what looks alike in most typefaces to one of it, longest first.
// The second half are letters of other scripts that look like Latin ones.
var skeletons = strings.NewReplacer(
	"rn", "m", "vv", "w", "cl", "d", "0", "o", "1", "l", "i", "l", "|", "l", "5", "s",
	"а", "a", "ɑ", "a", "α", "a", "ь", "b", "с", "c", "ϲ", "c", "ԁ", "d", "е", "e", "ҽ", "e", "ɡ", "g", "ց", "g", "һ", "h", "հ", "h",
	"і", "l", "ı", "l", "ɩ", "l", "ӏ", "l", "ј", "j", "к", "k", "ո", "n", "о", "o", "ο", "o", "օ", "o", "р", "p", "ρ", "p", "ԛ", "q", "г", "r",
	"ѕ", "s", "т", "t", "τ", "t", "υ", "u", "ս", "u", "ν", "v", "ѵ", "v", "ѡ", "w", "х", "x", "χ", "x", "у", "y", "γ", "y",
)

// skeleton is equal for hosts that look alike.
func skeleton(host string) string { return skeletons.Replace(strings.ToLower(host)) }

// foreign warns of letters that are not what they look like: another script
// within a name, or the encoded form of one.
func (w *warnings) foreign(field, text string) {
	var odd []string
	for _, r := range text {
		if r > unicode.MaxASCII || !unicode.IsPrint(r) {
			odd = append(odd, fmt.Sprintf("U+%04X", r))
		}
	}
	if len(odd) > 0 {
		w.add(field, "%q has characters that may look like others (%s): write it in plain letters", text, strings.Join(slices.Compact(odd), ", "))
	}
	if strings.Contains(strings.ToLower(text), "xn--") {
		w.add(field, "%q has a name in the encoded form of another script: make sure that it is the one that is meant", text)
	}
}

// lookAlike warns of a host that looks like a well-known one, or like another
// one of the project, and is not.
func (w *warnings) lookAlike(field, host string, others []string) {
	for _, other := range slices.Concat(known, others) {
		if host != "" && host != other && skeleton(host) == skeleton(other) {
			w.add(field, "the host %q looks like %s and is another one", host, other)
			return
		}
	}
}
