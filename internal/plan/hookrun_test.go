package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// TestHookName is how a hook is named that leaves its name to be generated (reference
// 2.2): the same each time that the same operation asks.
func TestHookName(t *testing.T) {
	at := time.Unix(1700000000, 5)
	for _, tc := range []struct{ prefix, revision, want string }{
		{"migrate-", "0123456789abcdef", "migrate-0123456-presync-1700000000"},
		{"migrate-", "v1", "migrate-v1-presync-1700000000"},
	} {
		if got := HookName(tc.prefix, tc.revision, rutter.PhasePreSync, at); got != tc.want {
			t.Errorf("%s at %s: %s, want %s", tc.prefix, tc.revision, got, tc.want)
		}
	}
	if got := HookName(strings.Repeat("x", 80), "v1", rutter.PhaseSync, at); len(got) > 63 || !strings.HasSuffix(got, "-sync-1700000000") {
		t.Errorf("a long prefix gives %q", got)
	}
}
