package explain

import (
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

// TestNotRemoved: what keeps objects from going is said once, with what to do.
func TestNotRemoved(t *testing.T) {
	blocked := rutter.Condition{Type: rutter.CondDeletionBlocked, Message: "ConfigMap/shop/c is terminating since T: finalizer x.dev/lock"}
	s := Situation{Application: "shop", Conditions: []rutter.Condition{blocked, {Type: rutter.CondDeletion, Message: "1 objects are terminating for more than 15m"},
		{Type: rutter.CondPruneHeld, Message: "14 of 20 objects would be pruned"}, {Type: rutter.CondNotJustified, Message: "the same commit declared c before"}}}
	s.Report.Conditions = []rutter.Condition{blocked}
	text := Text(Explain(s))
	for _, want := range []string{
		"being deleted: ConfigMap/shop/c is terminating since T: finalizer x.dev/lock", "the deletion needs a decision: 1 objects", "--orphan, or --force",
		"prunes are held: 14 of 20", "rutter approve app/shop", "no commit takes it out: the same commit", "rutter app sync shop --prune",
	} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the text says %q %d times:\n%s", want, strings.Count(text, want), text)
		}
	}
}
