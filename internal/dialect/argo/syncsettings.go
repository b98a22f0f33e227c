package argo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rutterhq/rutter"
)

// The keys of argocd-cmd-params-cm that concern all syncs, which the controller also
// takes as flags.
const (
	ParamSyncTimeout    = "controller.sync.timeout.seconds"
	ParamWaveDelay      = "controller.sync.wave.delay.seconds"
	ParamHealTimeout    = "controller.self.heal.timeout.seconds"
	ParamHealBackoff    = "controller.self.heal.backoff.timeout.seconds"
	ParamHealFactor     = "controller.self.heal.backoff.factor"
	ParamHealBackoffCap = "controller.self.heal.backoff.cap.seconds"
)

// ParseSyncSettings reads what an operator sets for all syncs. Each problem is one
// key that is not acted on, with the reason.
func ParseSyncSettings(params map[string]string) (s rutter.SyncSettings, problems []string) {
	number := func(key string, otherwise int64) (n int64, set bool) {
		text, ok := params[key]
		if !ok || text == "" {
			return otherwise, false
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			problems = append(problems, fmt.Sprintf("%s: %q is not a number: write 0 or more", key, text))
			return otherwise, false
		}
		return n, true
	}
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	timeout, _ := number(ParamSyncTimeout, 0)
	delay, _ := number(ParamWaveDelay, 0)
	s.Timeout, s.WaveDelay = seconds(timeout), seconds(delay)
	fixed, a := number(ParamHealTimeout, 0)
	first, b := number(ParamHealBackoff, 2)
	factor, c := number(ParamHealFactor, 3)
	limit, d := number(ParamHealBackoffCap, 300)
	if a && fixed > 0 && !b && !c && !d {
		first = 0 // only the fixed pause is asked for
	}
	if a || b || c || d {
		s.Heal = &rutter.HealPauses{Fixed: seconds(fixed), First: seconds(first), Factor: factor, Cap: seconds(limit)}
	}
	return s, problems
}
