package argo

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rutterhq/rutter"
)

// The ConfigMaps that configure the control plane.
const (
	ConfigMapName = "argocd-cm"
	ParamsMapName = "argocd-cmd-params-cm"
	// KnownHostsMapName and TLSCertsMapName are what the operator trusts.
	KnownHostsMapName = "argocd-ssh-known-hosts-cm"
	TLSCertsMapName   = "argocd-tls-certs-cm"
)

// ParseSettings reads what an operator sets for all renders from argocd-cm and
// argocd-cmd-params-cm; either may be nil. Each problem is one key that is not
// acted on, with the reason; the others hold.
func ParseSettings(cm, params *corev1.ConfigMap) (s rutter.RenderSettings, problems []string) {
	p := settings{out: rutter.RenderSettings{Kustomize: map[string]rutter.KustomizeBuild{}}}
	if cm != nil {
		p.tools(cm.Data)
		p.kustomize(cm.Data)
		if schemes, ok := cm.Data["helm.valuesFileSchemes"]; ok {
			p.out.ValuesFileSchemes = []string{}
			for scheme := range strings.SplitSeq(schemes, ",") {
				if scheme = strings.ToLower(strings.TrimSpace(scheme)); scheme != "" {
					p.out.ValuesFileSchemes = append(p.out.ValuesFileSchemes, scheme)
				}
			}
		}
	}
	if params != nil {
		p.limits(params.Data)
	}
	return p.out, p.problems
}

// settings is one run of ParseSettings.
type settings struct {
	out      rutter.RenderSettings
	problems []string
}

func (p *settings) problem(key, format string, args ...any) {
	p.problems = append(p.problems, key+": "+fmt.Sprintf(format, args...))
}

func (p *settings) tools(data map[string]string) {
	for _, t := range []struct {
		key string
		to  *bool
	}{{"helm.enable", &p.out.HelmDisabled}, {"kustomize.enable", &p.out.KustomizeDisabled}, {"jsonnet.enable", &p.out.JsonnetDisabled}} {
		switch v := data[t.key]; v {
		case "", "true":
		case "false":
			*t.to = true
		default:
			p.problem(t.key, "%q must be true or false", v)
		}
	}
}

// kustomize reads kustomize.buildOptions and kustomize.buildOptions.<version>.
func (p *settings) kustomize(data map[string]string) {
	const options = "kustomize.buildOptions"
	var keys []string
	for key := range data {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		switch {
		case key == options:
			p.out.Kustomize[""] = p.build(key, data[key])
		case strings.HasPrefix(key, options+"."):
			p.out.Kustomize[strings.TrimPrefix(key, options+".")] = p.build(key, data[key])
		case strings.HasPrefix(key, "kustomize.path."), strings.HasPrefix(key, "kustomize.version."):
			version := strings.TrimPrefix(strings.TrimPrefix(key, "kustomize.path."), "kustomize.version.")
			if _, ok := p.out.Kustomize[version]; !ok {
				p.out.Kustomize[version] = rutter.KustomizeBuild{}
			}
			p.problem(key, "the built-in kustomize renders every version: no program is run")
		}
	}
}

// build reads the flags of kustomize build. They are options here, never
// arguments of a program; what would run foreign code is refused.
func (p *settings) build(key, flags string) rutter.KustomizeBuild {
	var b rutter.KustomizeBuild
	words := strings.Fields(flags)
	for i := 0; i < len(words); i++ {
		name, value, ok := strings.Cut(words[i], "=")
		next := func() string {
			if !ok && i+1 < len(words) {
				i++
				return words[i]
			}
			return value
		}
		switch name {
		case "--enable-helm":
			b.EnableHelm = !ok || value == "true"
		case "--load-restrictor":
			b.LoadRestrictorNone = next() == "LoadRestrictionsNone"
		case "--load_restrictor": // the spelling of kustomize 3
			b.LoadRestrictorNone = next() == "none"
		case "--reorder":
			b.LegacyOrder = next() == "legacy"
		case "--helm-command":
			p.problem(key, "%s has no effect: charts are rendered by the built-in Helm (%s)", name, next())
		case "--enable-alpha-plugins", "--enable-exec", "--enable-star", "--network", "--as-current-user", "--enable_alpha_plugins":
			p.problem(key, "%s is refused: it runs programs that the repository names; use a config management plugin", name)
		case "--network-name", "--mount", "--env", "-e":
			_ = next()
			p.problem(key, "%s is refused: it runs programs that the repository names; use a config management plugin", name)
		default:
			p.problem(key, "%q is no option of kustomize build that is acted on", words[i])
		}
	}
	return b
}

func (p *settings) limits(data map[string]string) {
	const key = "reposerver.max.combined.directory.manifests.size"
	text := data[key]
	if text == "" {
		return
	}
	q, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		p.problem(key, "%q is no size such as 10M", text)
	case q.Sign() <= 0:
		p.out.MaxDirectoryBytes = -1
	default:
		p.out.MaxDirectoryBytes = q.Value()
	}
}
