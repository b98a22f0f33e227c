package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// syncSettingFlags are the reference's flags for what argocd-cmd-params-cm sets as
// well; a flag that is given counts.
func syncSettingFlags(c *cobra.Command, o *ControllerOptions) {
	o.Params = map[string]string{}
	for _, f := range []struct{ name, key, usage string }{
		{"sync-timeout", argo.ParamSyncTimeout, "seconds after which a sync is ended, with all its retries; 0 never"},
		{"sync-wave-delay", argo.ParamWaveDelay, "seconds to wait between two waves; nothing waits by default"},
		{"self-heal-timeout-seconds", argo.ParamHealTimeout, "fixed pause between repairs"},
		{"self-heal-backoff-timeout-seconds", argo.ParamHealBackoff, "first pause between repairs, which grows; by default repairs are made at once until a field is contested"},
		{"self-heal-backoff-factor", argo.ParamHealFactor, "how much longer each pause between repairs is"},
		{"self-heal-backoff-cap-seconds", argo.ParamHealBackoffCap, "longest pause between repairs"},
	} {
		c.Flags().Var(&param{o.Params, f.key}, f.name, f.usage)
	}
}

// param is a flag that sets a key.
type param struct {
	into map[string]string
	key  string
}

// Set implements pflag.Value.
func (p *param) Set(text string) error {
	if n, err := strconv.ParseInt(text, 10, 32); err != nil || n < 0 {
		return errors.New("write a number")
	}
	p.into[p.key] = text
	return nil
}

// String implements pflag.Value.
func (p *param) String() string { return p.into[p.key] }

// Type implements pflag.Value.
func (p *param) Type() string { return "number" }
