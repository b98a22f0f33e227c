package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// optionScope is where a sync option may stand.
type optionScope int

const (
	onBoth optionScope = iota
	onApplication
	onObject
)

// syncOptions are all sync options (reference 2.10), with their values.
var syncOptions = map[string]struct {
	scope  optionScope
	values []string
}{
	"ApplyOutOfSyncOnly":          {onApplication, []string{"true", "false"}},
	"ClientSideApplyMigration":    {onApplication, []string{"true", "false"}},
	"CreateNamespace":             {onApplication, []string{"true", "false"}},
	"Delete":                      {onBoth, []string{"true", "false", "confirm"}},
	"FailOnSharedResource":        {onApplication, []string{"true", "false"}},
	"Force":                       {onObject, []string{"true", "false"}},
	"Prune":                       {onBoth, []string{"true", "false", "confirm"}},
	"PruneLast":                   {onBoth, []string{"true", "false"}},
	"PrunePropagationPolicy":      {onApplication, []string{"foreground", "background", "orphan"}},
	"Replace":                     {onBoth, []string{"true", "false"}},
	"RespectIgnoreDifferences":    {onApplication, []string{"true", "false"}},
	"ServerSideApply":             {onBoth, []string{"true", "false"}},
	"SkipDryRunOnMissingResource": {onBoth, []string{"true", "false"}},
	"Validate":                    {onBoth, []string{"true", "false"}},
}

// OptionProblem says why a sync option has no effect where it stands, on a single
// object or for a whole application; "" for one that has.
func OptionProblem(option string, object bool) string {
	key, value, _ := strings.Cut(option, "=")
	known, ok := syncOptions[key]
	quoted := strconv.Quote(option)
	switch {
	case !ok:
		return quoted + " is no sync option" + nearest(key)
	case !slices.Contains(known.values, value):
		return quoted + " is no sync option: write " + key + "=" + strings.Join(known.values, ", or "+key+"=")
	case object && known.scope == onApplication:
		return quoted + " has no effect on a single object: it belongs into spec.syncPolicy.syncOptions of the Application"
	case !object && known.scope == onObject:
		return quoted + " has no effect on a whole application: it belongs into the annotation " + annOptions + " of the objects that are meant"
	}
	return ""
}

// nearest is a hint at the option that may have been meant.
func nearest(key string) string {
	folded := strings.ToLower(strings.TrimSpace(key))
	for name := range syncOptions {
		if strings.ToLower(name) == folded {
			return ": options are matched exactly, write " + name
		}
	}
	return ""
}

// Manner is how an object is sent.
type Manner struct {
	rutter.Manner

	// Force deletes and creates again what cannot be changed in place.
	Force bool
}

// Kept reports that an object of the kind is never deleted to be made anew: what
// lives in it, or is of its kind, would go with it.
func Kept(ref rutter.Ref) bool {
	return ref.Group == "" && ref.Kind == "Namespace" || ref.Group == "apiextensions.k8s.io" && ref.Kind == "CustomResourceDefinition"
}

// MannerOf is how an object is sent: Replace, Force and Validate count when the
// policy, the declared object or the live one says so (reference 2.8).
func MannerOf(policy rutter.SyncPolicy, req rutter.SyncRequest, want, live Meta) Manner {
	return Manner{
		Manner: rutter.Manner{
			Replace:     want.Replace || live.Replace || policy.HasOption("Replace=true"),
			Unvalidated: want.Unvalidated || policy.HasOption("Validate=false"),
			KeepFormer:  policy.HasOption("ClientSideApplyMigration=false"),
			Former:      policy.FormerManager,
		},
		Force: req.Force || want.Force || live.Force,
	}
}

// confirmsPrune reports whether the removal of an object waits for a person: its own
// option counts before the policy's.
func (m Meta) confirmsPrune(policy rutter.SyncPolicy) bool {
	return m.ConfirmPrune || !m.NoPrune && !m.YesPrune && policy.HasOption("Prune=confirm")
}

// KeepsFromPrune reports likewise whether it is never removed.
func (m Meta) KeepsFromPrune(policy rutter.SyncPolicy) bool {
	return m.NoPrune || !m.ConfirmPrune && !m.YesPrune && policy.HasOption("Prune=false")
}

// NeedsConfirmation reports whether a person has to confirm before an object is
// removed, alone or with its application (reference 2.7).
func (m Meta) NeedsConfirmation(policy rutter.SyncPolicy) bool {
	return m.confirmsPrune(policy) || m.ConfirmDelete || !m.NoDelete && !m.YesDelete && policy.HasOption("Delete=confirm")
}

// NeverPruned says why an object of the kind is not pruned, whatever is asked; empty
// for all others. Custom resource definitions are kept as the reference keeps them
// (2.11): their removal would remove every object of the kind in the whole cluster.
func NeverPruned(ref rutter.Ref) string {
	if ref.Group == "apiextensions.k8s.io" && ref.Kind == "CustomResourceDefinition" {
		return "custom resource definitions are not pruned"
	}
	return ""
}
