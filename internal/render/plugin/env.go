package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/buildenv"
)

// maxVariable is the longest that the kernel takes, with name and end.
const maxVariable = 128<<10 - 1

// steady are the variables of the build environment that stay when a commit is made.
var steady = []string{
	"ARGOCD_APP_NAME", "ARGOCD_APP_NAMESPACE", "ARGOCD_APP_PROJECT_NAME", "ARGOCD_APP_SOURCE_PATH",
	"ARGOCD_APP_SOURCE_REPO_URL", "ARGOCD_APP_SOURCE_TARGET_REVISION",
}

// environment is what the commands of a plugin are given, sorted.
func environment(d Definition, in Input) (env, warnings []string, err error) {
	vars := build(d, in.Env)
	vars["KUBE_VERSION"] = in.KubeVersion
	vars["KUBE_API_VERSIONS"], warnings = apiVersions(in.APIVersions)
	in.Env.UseCapabilities()
	var opts rutter.PluginOptions
	if in.Options != nil {
		opts = *in.Options
	}
	for i, e := range opts.Env {
		if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") {
			return nil, nil, rutter.Errorf(rutter.CodeInvalid, "plugin.env[%d].name: %q is no name of a variable", i, e.Name)
		}
		vars["ARGOCD_ENV_"+e.Name] = in.Env.Expand(e.Value)
	}
	more, err := parameters(opts.Parameters, vars)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		kv := name + "=" + vars[name]
		switch {
		case strings.ContainsRune(kv, 0):
			return nil, nil, rutter.Errorf(rutter.CodeInvalid, "plugin: the variable %s holds a NUL character, which no program can be given", name)
		case len(kv) > maxVariable:
			return nil, nil, rutter.Errorf(rutter.CodeInvalid, "plugin: the variable %s is longer than the 128 KiB that a program can be given: put it into a file of the repository", name)
		}
		env = append(env, kv)
	}
	return env, slices.Concat(warnings, more), nil
}

// build are the variables of reference 1.3. Each that a plugin is given counts as used.
func build(d Definition, env *buildenv.Env) map[string]string {
	if !d.PathOnly {
		return env.All()
	}
	vars := map[string]string{}
	for _, name := range steady {
		if env.Has(name) {
			vars[name] = env.Expand("${" + name + "}")
		}
	}
	return vars
}

// apiVersions joins the list. A cluster of many kinds serves more than fits in
// a variable; the groups and versions without their kinds do.
func apiVersions(all []string) (string, []string) {
	const room = maxVariable - len("KUBE_API_VERSIONS=")
	if text := strings.Join(all, ","); len(text) <= room {
		return text, nil
	}
	// v1, apps/v1 - but not v1/Pod, apps/v1/Deployment, whose last part is no version.
	short := slices.DeleteFunc(slices.Clone(all), func(s string) bool {
		last := s[strings.LastIndexByte(s, '/')+1:]
		return last == "" || last[0] != 'v'
	})
	return strings.Join(short, ","), []string{"KUBE_API_VERSIONS would be longer than a variable can be: it names groups and versions only, no kinds"}
}

// parameters adds the variables for parameters: all as JSON, and each by its name.
func parameters(ps []rutter.PluginParameter, vars map[string]string) ([]string, error) {
	if ps == nil {
		ps = []rutter.PluginParameter{}
	}
	text, err := json.Marshal(ps)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "plugin.parameters: %w", err)
	}
	var warnings []string
	from := map[string]string{}
	set := func(name, value string, of ...string) {
		v := variable(of...)
		if other, taken := from[v]; taken {
			warnings = append(warnings, fmt.Sprintf("the plugin's parameters %s and %s have the same variable %s: the last one counts", other, name, v))
		}
		from[v], vars[v] = name, value
	}
	for i, p := range ps {
		if p.Name == "" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "plugin.parameters[%d].name is empty", i)
		}
		if p.String != nil {
			set(p.Name, *p.String, p.Name)
		}
		for j, v := range p.Array {
			set(fmt.Sprintf("%s[%d]", p.Name, j), v, p.Name, strconv.Itoa(j))
		}
		for _, k := range slices.Sorted(maps.Keys(p.Map)) {
			set(p.Name+"."+k, p.Map[k], p.Name, k)
		}
	}
	vars["ARGOCD_APP_PARAMETERS"] = string(text)
	return warnings, nil
}

// variable is the name under which a parameter is found: PARAM_NAME_KEY.
func variable(parts ...string) string {
	return "PARAM_" + strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, strings.ToUpper(strings.Join(parts, "_")))
}
