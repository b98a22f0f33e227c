package signature

import (
	"bytes"
	"strings"
)

// split takes the signature out of a commit object. What is signed is the rest,
// byte for byte. The header goes on over lines that begin with a space. Of several
// signatures which one counts would be anybody's choice, so n counts them.
func split(commit []byte) (signed []byte, signature string, n int) {
	header, body, found := bytes.Cut(commit, []byte("\n\n"))
	if !found {
		return commit, "", 0
	}
	var rest, sig []string
	within, taken := false, false
	for line := range strings.SplitSeq(string(header), "\n") {
		switch {
		case within && strings.HasPrefix(line, " "):
			if taken {
				sig = append(sig, line[1:])
			}
			continue
		case strings.HasPrefix(line, "gpgsig "):
			within, taken = true, true
			n++
			sig = append(sig, strings.TrimPrefix(line, "gpgsig "))
			continue
		case strings.HasPrefix(line, "gpgsig-sha256 "):
			within, taken = true, false
			continue
		}
		within = false
		rest = append(rest, line)
	}
	signed = append([]byte(strings.Join(rest, "\n")+"\n\n"), body...)
	return signed, strings.Join(sig, "\n") + "\n", n
}
