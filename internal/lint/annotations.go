package lint

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const prefixArgo = "argocd.argoproj.io/"

// knownNames are the annotations and labels of argocd.argoproj.io that mean
// something, without the prefix.
var knownNames = []string{
	"application-set-name", "application-set-refresh", "auto-label-cluster-info", "client-side-apply-migration-manager", "compare-options",
	"deletion-approved", "hook", "hook-delete-policy", "hook-finalizer", "hydrate", "hydrate-timestamp", "ignore-default-links",
	"ignore-healthcheck", "ignore-resource-updates", "ignore-restart-policy", "installation-id", "instance", "kubernetes-version",
	"managed-by", "managed-by-cluster-argocd", "managed-by-url", "manifest-generate-paths", "refresh", "refresh-timestamp",
	"secret-type", "skip-reconcile", "sync-options", "sync-wave", "tracking-id",
}

// Values of annotations and labels that take one or some of a few words.
var (
	words = map[string][]string{
		"hook":               {"PreSync", "Sync", "PostSync", "SyncFail", "Skip", "PreDelete", "PostDelete"},
		"hook-delete-policy": {"HookSucceeded", "HookFailed", "BeforeHookCreation"},
		"refresh":            {"normal", "hard"},
		"secret-type":        {"cluster", "repository", "repo-creds", "repository-write", "repo-write-creds", "scm-creds", "sops-keys"},
		"compare-options":    {"IgnoreExtraneous", "ServerSideDiff=true", "ServerSideDiff=false", "IncludeMutationWebhook=true"},
	}
	single = []string{"refresh", "secret-type"}
)

// metadata calls f for each annotation and label in the object and in the
// templates within it (pods, Applications).
func metadata(d *document, f func(kind string, key, value *node)) {
	if d.kind == "" || d.kind == "CustomResourceDefinition" {
		return
	}
	visit := func(n *node) {
		entries(get(n, "metadata", "annotations"), func(k, v *node) { f("annotation", k, v) })
		entries(get(n, "metadata", "labels"), func(k, v *node) { f("label", k, v) })
	}
	visit(d.root)
	walk(d.root, func(n *node) {
		for _, field := range []string{"template", "jobTemplate"} {
			if t := get(n, field); t != nil {
				visit(t)
			}
		}
		for _, t := range items(n, "volumeClaimTemplates") {
			visit(t)
		}
	})
	if d.is("kustomize.config.k8s.io", "Kustomization") {
		entries(get(d.root, "commonAnnotations"), func(k, v *node) { f("annotation", k, v) })
		entries(get(d.root, "commonLabels"), func(k, v *node) { f("label", k, v) })
	}
}

func checkAnnotationNames(r *run, d *document) {
	metadata(d, func(kind string, k, _ *node) {
		name, ours := strings.CutPrefix(k.Value, prefixArgo)
		if ours && !slices.Contains(knownNames, name) && !templatedText(name) {
			hint := suggestion(name, knownNames)
			if hint != "" {
				hint = "; did you mean " + prefixArgo + strings.TrimPrefix(hint, "; did you mean ")
			}
			r.report(d, k, "the %s %s has no meaning%s", kind, k.Value, hint)
		}
	})
}

func checkAnnotationValues(r *run, d *document) {
	_, strict := schemas[d.kind] // checkFields looks at the types of those
	metadata(d, func(kind string, k, v *node) {
		if !strict && v.Kind == yaml.ScalarNode && slices.Contains([]string{"!!int", "!!float", "!!bool"}, v.ShortTag()) {
			r.reportAs(Error, "put it in quotes", d, v, "the %s %s is a number or a boolean, and must be a text", kind, k.Value)
			return
		}
		name, ours := strings.CutPrefix(k.Value, prefixArgo)
		if !ours || v.Kind != yaml.ScalarNode || templatedText(v.Value) {
			return
		}
		if name == "sync-wave" {
			if _, err := strconv.Atoi(v.Value); err != nil {
				r.reportAs(Error, "write a whole number in quotes, such as \"-1\"", d, v, "the wave %q is no number and counts as 0", v.Value)
			}
			return
		}
		allowed, ok := words[name]
		if !ok {
			return
		}
		values := strings.Split(v.Value, ",")
		if slices.Contains(single, name) {
			values = []string{v.Value}
		}
		for _, value := range values {
			if value = strings.TrimSpace(value); value != "" && !slices.Contains(allowed, value) {
				r.reportAs(Error, "use "+strings.Join(allowed, ", "), d, v, "%s has no value %q%s", name, value, suggestion(value, allowed))
			}
		}
	})
}

// syncOption says where a sync option counts and which values it has.
type syncOption struct {
	app, resource bool
	values        []string
}

var boolean = []string{"true", "false"}

// syncOptions are those of reference 2.10.
var syncOptions = map[string]syncOption{
	"ApplyOutOfSyncOnly":          {app: true, values: boolean},
	"ClientSideApplyMigration":    {app: true, resource: true, values: boolean},
	"CreateNamespace":             {app: true, values: boolean},
	"Delete":                      {app: true, resource: true, values: []string{"true", "false", "confirm"}},
	"FailOnSharedResource":        {app: true, values: boolean},
	"Force":                       {app: true, resource: true, values: boolean},
	"Prune":                       {app: true, resource: true, values: []string{"true", "false", "confirm"}},
	"PruneLast":                   {app: true, resource: true, values: boolean},
	"PrunePropagationPolicy":      {app: true, values: []string{"foreground", "background", "orphan"}},
	"Replace":                     {app: true, resource: true, values: boolean},
	"RespectIgnoreDifferences":    {app: true, values: boolean},
	"ServerSideApply":             {app: true, resource: true, values: boolean},
	"SkipDryRunOnMissingResource": {app: true, resource: true, values: boolean},
	"Validate":                    {app: true, resource: true, values: boolean},
}

func checkSyncOptions(r *run, d *document) {
	for _, spec := range appSpecs(d) {
		for _, o := range items(spec, "syncPolicy", "syncOptions") {
			r.syncOption(d, o, o.Value, true)
		}
	}
	metadata(d, func(_ string, k, v *node) {
		if k.Value != prefixArgo+"sync-options" || v.Kind != yaml.ScalarNode {
			return
		}
		for o := range strings.SplitSeq(v.Value, ",") {
			r.syncOption(d, v, strings.TrimSpace(o), false)
		}
	})
}

// syncOption looks at one option of an Application or of a resource.
func (r *run) syncOption(d *document, at *node, option string, app bool) {
	if option == "" || templatedText(option) {
		return
	}
	name, value, ok := strings.Cut(option, "=")
	o, known := syncOptions[name]
	switch {
	case !known:
		names := make([]string, 0, len(syncOptions))
		for n, o := range syncOptions {
			if o.app {
				names = append(names, n)
			}
		}
		r.report(d, at, "there is no sync option %q%s", name, suggestion(strings.TrimSpace(name), sorted(names)))
	case !ok || !slices.Contains(o.values, value):
		r.report(d, at, "the sync option %s has no value %q: use %s", name, value, strings.Join(o.values, ", "))
	case !app && !o.resource:
		r.report(d, at, "the sync option %s has no effect on a single object: put it into spec.syncPolicy.syncOptions of the Application", name)
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
