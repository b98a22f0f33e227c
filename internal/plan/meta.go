package plan

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// The annotations that steer a sync (reference 1.11).
const (
	annHook         = "argocd.argoproj.io/hook"
	annHookDelete   = "argocd.argoproj.io/hook-delete-policy"
	annWave         = "argocd.argoproj.io/sync-wave"
	annOptions      = "argocd.argoproj.io/sync-options"
	annCompare      = "argocd.argoproj.io/compare-options"
	annIgnoreHealth = "argocd.argoproj.io/ignore-healthcheck"
	annHelmHook     = "helm.sh/hook"
	annHelmWeight   = "helm.sh/hook-weight"
	annHelmDelete   = "helm.sh/hook-delete-policy"
	annHelmPolicy   = "helm.sh/resource-policy"
)

// Hook delete policies (reference 2.2).
const (
	BeforeHookCreation = "BeforeHookCreation"
	HookSucceeded      = "HookSucceeded"
	HookFailed         = "HookFailed"
)

// Meta is what an object's annotations say about its sync.
type Meta struct { //nolint:recvcheck // it is filled by pointer and read as a value
	Wave int
	// Hooks are the phases in which the object runs as a hook; nil for an
	// ordinary object. A hook without a phase of a sync is not applied by one.
	Hooks []rutter.Phase
	// PreDelete and PostDelete say that it is a hook of a deletion.
	PreDelete, PostDelete bool
	// IsHook is true for every object that carries a hook annotation with effect.
	IsHook bool
	// Skip is true for hook: Skip, which is never applied nor compared.
	Skip bool
	// Delete lists the hook's delete policies; DeleteUnset says that none is
	// written, and Delete holds the default.
	Delete      []string
	DeleteUnset bool

	NoPrune          bool
	YesPrune         bool
	ConfirmPrune     bool
	NoDelete         bool
	YesDelete        bool
	ConfirmDelete    bool
	PruneLast        bool
	IgnoreExtraneous bool
	IgnoreHealth     bool
	// Replace, Force and Unvalidated are how the object is sent (reference 2.8).
	Replace     bool
	Force       bool
	Unvalidated bool
	// Unsupported says of sync options on the object why they have no effect.
	Unsupported []string
}

// Plain reports whether nothing about the object is particular.
func (m Meta) Plain() bool {
	lists := len(m.Hooks) + len(m.Delete) + len(m.Unsupported)
	m.Hooks, m.Delete, m.Unsupported = nil, nil, nil
	return lists == 0 && reflect.ValueOf(m).IsZero()
}

// MetaOf reads the annotations of an object. kind CustomResourceDefinition
// with Helm's crd-install is an ordinary object.
func MetaOf(annotations map[string]string) Meta {
	m := Meta{
		IgnoreExtraneous: slices.Contains(split(annotations[annCompare]), "IgnoreExtraneous"),
		IgnoreHealth:     annotations[annIgnoreHealth] == "true",
	}
	m.readHooks(annotations)
	m.Wave = waveOf(annotations)
	for _, o := range split(annotations[annOptions]) {
		m.readOption(o)
	}
	if annotations[annHelmPolicy] == "keep" {
		m.NoDelete = true
	}
	return m
}

func (m *Meta) readOption(o string) {
	switch o {
	case "Prune=false":
		m.NoPrune = true
	case "Prune=confirm":
		m.ConfirmPrune = true
	case "Delete=false":
		m.NoDelete = true
	case "Delete=true":
		m.YesDelete = true
	case "Delete=confirm":
		m.ConfirmDelete = true
	case "PruneLast=true":
		m.PruneLast = true
	case "Prune=true":
		m.YesPrune = true
	case "Replace=true":
		m.Replace = true
	case "Force=true":
		m.Force = true
	case "Validate=false":
		m.Unvalidated = true
	default: // the others ask for the default, or for what is always so
		if problem := OptionProblem(o, true); problem != "" {
			m.Unsupported = append(m.Unsupported, problem)
		}
	}
}

// readHooks prefers the Argo annotation; Helm's counts only when that gives no
// valid type (reference 2.2).
func (m *Meta) readHooks(annotations map[string]string) {
	argo := split(annotations[annHook])
	for _, h := range argo {
		switch p := rutter.Phase(h); p {
		case rutter.PhasePreSync, rutter.PhaseSync, rutter.PhasePostSync, rutter.PhaseSyncFail:
			m.addHook(p)
		case "PreDelete":
			m.IsHook, m.PreDelete = true, true
		case "PostDelete":
			m.IsHook, m.PostDelete = true, true
		case "Skip":
			m.Skip = len(argo) == 1
		default:
			m.IsHook = true // an unknown kind of hook is never applied
		}
	}
	if !m.IsHook && !m.Skip {
		m.readHelmHooks(annotations)
	}
	if !m.IsHook {
		return
	}
	for _, p := range split(annotations[annHookDelete]) {
		if p == BeforeHookCreation || p == HookSucceeded || p == HookFailed {
			m.Delete = append(m.Delete, p)
		}
	}
	helm := map[string]string{"before-hook-creation": BeforeHookCreation, "hook-succeeded": HookSucceeded, "hook-failed": HookFailed}
	for _, p := range split(annotations[annHelmDelete]) {
		if v, ok := helm[p]; ok && !slices.Contains(m.Delete, v) {
			m.Delete = append(m.Delete, v)
		}
	}
	if m.DeleteUnset = len(m.Delete) == 0; m.DeleteUnset {
		m.Delete = []string{BeforeHookCreation}
	}
}

func (m *Meta) readHelmHooks(annotations map[string]string) {
	for _, h := range split(annotations[annHelmHook]) {
		switch h {
		case "pre-install", "pre-upgrade":
			m.addHook(rutter.PhasePreSync)
		case "post-install", "post-upgrade":
			m.addHook(rutter.PhasePostSync)
		case "pre-delete":
			m.IsHook, m.PreDelete = true, true
		case "post-delete":
			m.IsHook, m.PostDelete = true, true
		case "crd-install":
		default: // rollback hooks and tests are not part of a sync
			m.IsHook = true
		}
	}
}

func (m *Meta) addHook(p rutter.Phase) {
	m.IsHook = true
	if !slices.Contains(m.Hooks, p) {
		m.Hooks = append(m.Hooks, p)
	}
}

func waveOf(annotations map[string]string) int {
	for _, key := range []string{annWave, annHelmWeight} {
		if n, err := strconv.Atoi(annotations[key]); err == nil {
			return n
		}
	}
	return 0
}

func split(s string) []string {
	var out []string
	for p := range strings.SplitSeq(s, ",") {
		if p = strings.TrimSpace(p); p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}
