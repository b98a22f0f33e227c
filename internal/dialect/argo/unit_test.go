package argo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/policy"
)

var config = argo.Config{Namespace: "argocd"}

// app decodes the spec of an Application; head goes before it.
func app(t *testing.T, spec string) *v1alpha1.Application {
	t.Helper()
	manifest := "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\n" + spec
	objs, err := argo.Decode([]byte(manifest), "app.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return objs[0].(*v1alpha1.Application)
}

func noProjects(string) (*policy.Project, bool) { return nil, false }

const plain = "source: {repoURL: https://x/y, path: web}, destination: {name: prod, namespace: web}"

func TestToUnit(t *testing.T) {
	a := app(t, `
spec:
  sources:
    - repoURL: https://example.com/charts
      path: charts/web
      targetRevision: main
      helm:
        releaseName: web
        valueFiles: [$values/prod.yaml]
        valuesObject: {replicas: 2}
        parameters: [{name: a, value: b, forceString: true}]
        fileParameters: [{name: c, path: d}]
        skipCrds: true
    - {repoURL: https://example.com/values, ref: values}
    - repoURL: https://example.com/kustomize
      path: overlays/prod
      kustomize:
        images: [nginx=nginx:1.2]
        replicas: [{name: web, count: "3"}, {name: api, count: 2}]
        patches: [{patch: "[]", target: {kind: Deployment}, options: {allowNameChange: true}}]
    - {repoURL: https://example.com/dir, path: dir, directory: {recurse: true, include: "*.yaml"}}
  destination: {server: "https://prod:6443/", namespace: web}
  syncPolicy:
    automated: {prune: true, selfHeal: true}
    syncOptions: [CreateNamespace=true, PruneLast=true, ServerSideApply=true, PrunePropagationPolicy=background]
    retry: {limit: 3, backoff: {duration: "10", factor: 3, maxDuration: 2m}}
    managedNamespaceMetadata: {labels: {a: b}}
  ignoreDifferences: [{group: apps, kind: Deployment, jsonPointers: [/spec/replicas]}]
status:
  sync: {status: Synced}
  resources: [{group: apps, version: v1, kind: Deployment, name: a}, {group: apps, version: v1, kind: Deployment, name: b}, {version: v1, kind: Service, name: a}]
`)
	a.Status.Health.Status = "Healthy"
	u, conditions := argo.ToUnit(a, config, noProjects)
	if len(conditions) > 0 || u.Problem != nil {
		t.Fatalf("%v, %v", conditions, u.Problem)
	}
	want := rutter.Unit{
		ID: rutter.UnitID{Dialect: "argo", Namespace: "argocd", Name: "web"}, Instance: "web", Project: "default",
		Sources: []rutter.Source{
			{RepoURL: "https://example.com/charts", Path: "charts/web", TargetRevision: "main", Helm: &rutter.HelmOptions{
				ReleaseName: "web", ValueFiles: []string{"$values/prod.yaml"}, ValuesObject: []byte(`{"replicas":2}`), SkipCrds: true,
				Parameters:     []rutter.HelmParameter{{Name: "a", Value: "b", ForceString: true}},
				FileParameters: []rutter.HelmFile{{Name: "c", Path: "d"}}}},
			{RepoURL: "https://example.com/values", Ref: "values"},
			{RepoURL: "https://example.com/kustomize", Path: "overlays/prod", Kustomize: &rutter.KustomizeOptions{
				Images:   []string{"nginx=nginx:1.2"},
				Replicas: []rutter.KustomizeReplica{{Name: "web", Count: 3}, {Name: "api", Count: 2}},
				Patches: []rutter.KustomizePatch{{Patch: "[]", Target: &rutter.KustomizeTarget{Kind: "Deployment"},
					Options: map[string]bool{"allowNameChange": true}}}}},
			{RepoURL: "https://example.com/dir", Path: "dir", Directory: &rutter.DirectoryOptions{Recurse: true, Include: "*.yaml"}},
		},
		Target: rutter.Target{Server: "https://prod:6443", Namespace: "web"},
		Policy: rutter.SyncPolicy{Automated: true, Prune: true, SelfHeal: true, CreateNamespace: true, NamespaceLabels: map[string]string{"a": "b"},
			Options: []string{"CreateNamespace=true", "PruneLast=true", "ServerSideApply=true", "PrunePropagationPolicy=background"}, Propagation: "background",
			Retry: rutter.Retry{Limit: 3, Duration: 10 * time.Second, Factor: 3, MaxDuration: 2 * time.Minute}},
		Ignore:     []rutter.IgnoreRule{{Group: "apps", Kind: "Deployment", JSONPointers: []string{"/spec/replicas"}}},
		KnownKinds: []rutter.GVK{{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "Service"}},
	}
	if diff := cmp.Diff(want, u); diff != "" {
		t.Errorf("unit (-want +got):\n%s", diff)
	}
}

// TestSpecConditions has one case for each field that is wrong or not acted
// on: exactly one condition names it.
func TestSpecConditions(t *testing.T) {
	const bad, todo = rutter.CondInvalidSpec, rutter.CondUnsupported
	for _, tc := range []struct {
		name   string
		spec   string
		kind   string
		says   string
		code   rutter.Code // of Unit.Problem; empty when nothing is held back
		reason string
	}{
		{"no source", "destination: {name: a}", bad, "spec.source: a source is required", rutter.CodeForbidden, "there is nothing to sync"},
		{"no repository", "source: {path: a}, destination: {name: a}", bad, "spec.source.repoURL is required", rutter.CodeForbidden, ""},
		{"no path", "source: {repoURL: https://x}, destination: {name: a}", bad, "spec.source: path or chart is required", rutter.CodeForbidden, ""},
		{"no path in many", "sources: [{repoURL: https://x, path: a}, {repoURL: https://x}], destination: {name: a}", bad, "spec.sources[1]: path, chart or ref is required", rutter.CodeForbidden, ""},
		{"absolute path", "source: {repoURL: https://x, path: /a}, destination: {name: a}", bad, "spec.source.path", rutter.CodeForbidden, ""},
		{"two tools", "source: {repoURL: https://x, path: a, helm: {}, kustomize: {}}, destination: {name: a}", bad, "spec.source: only one tool may be set, and helm, kustomize are", rutter.CodeForbidden, ""},
		{"bad ref", "sources: [{repoURL: https://x, ref: a/b}], destination: {name: a}", bad, "spec.sources[0].ref", rutter.CodeForbidden, ""},
		{"ref twice", "sources: [{repoURL: https://x, ref: a}, {repoURL: https://y, ref: a}], destination: {name: a}", bad, "spec.sources[1].ref", rutter.CodeForbidden, ""},
		{"no destination", "source: {repoURL: https://x, path: a}", bad, "spec.destination: server or name must be set", rutter.CodeForbidden, ""},
		{"two destinations", "source: {repoURL: https://x, path: a}, destination: {name: a, server: https://b}", bad, "spec.destination: only one of server and name", rutter.CodeForbidden, ""},
		{"no project", plain + ", project: gone", bad, "spec.project: AppProject gone does not exist", rutter.CodeForbidden, ""},
		{"bad replicas", "source: {repoURL: https://x, path: a, kustomize: {replicas: [{name: a, count: many}]}}, destination: {name: a}", bad, `spec.source.kustomize.replicas[0].count: "many"`, rutter.CodeForbidden, "reading it as 0 would stop the workload"},
		{"empty patch", "source: {repoURL: https://x, path: a, kustomize: {patches: [{}]}}, destination: {name: a}", bad, "spec.source.kustomize.patches[0]", rutter.CodeForbidden, ""},
		{"bad duration", plain + ", syncPolicy: {retry: {backoff: {maxDuration: soon}}}", bad, `spec.syncPolicy.retry.backoff.maxDuration: "soon"`, rutter.CodeForbidden, ""},
		{"negative duration", plain + ", syncPolicy: {retry: {backoff: {duration: '-5s'}}}", bad, "spec.syncPolicy.retry.backoff.duration", rutter.CodeForbidden, ""},
		{"bad pointer", plain + ", ignoreDifferences: [{kind: A, jsonPointers: [spec]}]", bad, "spec.ignoreDifferences[0].jsonPointers[0]", rutter.CodeForbidden, ""},

		{"hydrator", "sourceHydrator: {drySource: {repoURL: https://x, path: a, targetRevision: main}, syncSource: {targetBranch: b, path: a}}, destination: {name: a}", todo, "spec.sourceHydrator", rutter.CodeUnsupported, "its branch is not made here"},
		{"bad jq", plain + ", ignoreDifferences: [{kind: A, jqPathExpressions: ['.a', '.b |']}]", bad, "spec.ignoreDifferences[0].jqPathExpressions[1]", rutter.CodeForbidden, ""},
		{"jq that looks around", plain + ", ignoreDifferences: [{kind: A, jqPathExpressions: ['.a | select(env.X)']}]", bad, "env is not acted on", rutter.CodeForbidden, ""},
		{"bad glob", plain + ", ignoreDifferences: [{kind: '[', jsonPointers: [/a]}]", bad, "spec.ignoreDifferences[0].kind", rutter.CodeForbidden, ""},
		{"unknown option", plain + ", syncPolicy: {syncOptions: [Replace=true, Repalce=true]}", todo, `spec.syncPolicy.syncOptions[1]: "Repalce=true" is no sync option`, "", ""},
		{"option in other letters", plain + ", syncPolicy: {syncOptions: [replace=true]}", todo, "write Replace", "", ""},
		{"option of objects", plain + ", syncPolicy: {syncOptions: [Force=true]}", todo, "annotation argocd.argoproj.io/sync-options", "", ""},
		{"option with spaces", plain + ", syncPolicy: {syncOptions: ['CreateNamespace = true']}", todo, `"CreateNamespace = true"`, "", "options are exact strings"},
		{"propagation", plain + ", syncPolicy: {syncOptions: [PrunePropagationPolicy=never]}", todo, "PrunePropagationPolicy=never", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			u, conditions := argo.ToUnit(app(t, "spec: {"+tc.spec+"}"), config, noProjects)
			if len(conditions) != 1 || conditions[0].Type != tc.kind || !strings.Contains(conditions[0].Message, tc.says) {
				t.Errorf("conditions %v\nwant one %s that says %q", conditions, tc.kind, tc.says)
			}
			if rutter.CodeOf(u.Problem) != tc.code {
				t.Errorf("problem %v, want code %q: %s", u.Problem, tc.code, tc.reason)
			}
			if tc.kind == bad && u.Problem.Error() != conditions[0].Message {
				t.Errorf("problem %q and condition %q differ, so both would be shown", u.Problem, conditions[0].Message)
			}
		})
	}
}

func TestToUnitSaysAllThatIsWrong(t *testing.T) {
	u, conditions := argo.ToUnit(app(t, "spec: {source: {}, ignoreDifferences: [{kind: A, jqPathExpressions: [def]}]}"), config, noProjects)
	var got []string
	for _, c := range conditions {
		got = append(got, c.Type+" "+c.Message)
	}
	want := []string{
		"InvalidSpecError spec.source.repoURL is required",
		`InvalidSpecError spec.ignoreDifferences[0].jqPathExpressions[0]: "def" is not a jq path: unexpected EOF`,
		"InvalidSpecError spec.destination: server or name must be set",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if u.Problem == nil || u.Problem.Error() != "spec.source.repoURL is required" {
		t.Errorf("problem %v", u.Problem)
	}
}

// TestEverySyncOption: all options of the reference's table are taken, with no word
// of complaint.
func TestEverySyncOption(t *testing.T) {
	for _, o := range []string{"Validate=false", "CreateNamespace=true", "Prune=false", "Prune=confirm", "Delete=false", "Delete=confirm", "PruneLast=true",
		"PrunePropagationPolicy=foreground", "PrunePropagationPolicy=background", "PrunePropagationPolicy=orphan", "Replace=true", "ServerSideApply=true",
		"ServerSideApply=false", "ClientSideApplyMigration=false", "ApplyOutOfSyncOnly=true", "SkipDryRunOnMissingResource=true", "FailOnSharedResource=true",
		"RespectIgnoreDifferences=true"} {
		u, conditions := argo.ToUnit(app(t, "spec: {"+plain+", syncPolicy: {syncOptions: ["+o+"]}}"), config, nil)
		if !u.Policy.HasOption(o) || len(conditions) > 0 || u.Problem != nil {
			t.Errorf("%s: options %v, conditions %v, problem %v", o, u.Policy.Options, conditions, u.Problem)
		}
	}
}

func TestAutomated(t *testing.T) {
	for _, tc := range []struct {
		policy string
		want   rutter.SyncPolicy
		reason string
	}{
		{"", rutter.SyncPolicy{Retry: rutter.Retry{Limit: 5}}, "no policy, no automation"},
		{"automated: {}", rutter.SyncPolicy{Automated: true, Retry: rutter.Retry{Limit: 5}}, "being there turns it on, with five retries"},
		{"automated: {enabled: false, prune: true, selfHeal: true, allowEmpty: true}", rutter.SyncPolicy{Retry: rutter.Retry{Limit: 5}}, "enabled: false turns everything off"},
		{"automated: {enabled: true, allowEmpty: true}, retry: {}", rutter.SyncPolicy{Automated: true, AllowEmpty: true}, "a retry that is there is taken literally"},
		{"managedNamespaceMetadata: {labels: {a: b}}", rutter.SyncPolicy{NamespaceLabels: map[string]string{"a": "b"}, Retry: rutter.Retry{Limit: 5}}, "acted on with CreateNamespace=true, which one sync may ask for"},
		{"retry: {limit: 1, refresh: true}", rutter.SyncPolicy{Retry: rutter.Retry{Limit: 1, Refresh: true}}, ""},
	} {
		u, conditions := argo.ToUnit(app(t, "spec: {"+plain+", syncPolicy: {"+tc.policy+"}}"), config, nil)
		if diff := cmp.Diff(tc.want, u.Policy); diff != "" || len(conditions) > 0 {
			t.Errorf("%s: %v (%s)\n%s", tc.policy, conditions, tc.reason, diff)
		}
	}
}

func TestInstance(t *testing.T) {
	a := app(t, "spec: {"+plain+"}")
	for namespace, want := range map[string]string{"argocd": "web", "": "web", "team": "team_web"} {
		a.Namespace = namespace
		if got := argo.Instance(a, config); got != want {
			t.Errorf("in %q: %q, want %q", namespace, got, want)
		}
	}
}

func TestProject(t *testing.T) {
	project := func(spec string) argo.Projects {
		objs, err := argo.Decode([]byte("apiVersion: argoproj.io/v1alpha1\nkind: AppProject\nmetadata: {name: team}\nspec: {"+spec+"}"), "p")
		if err != nil {
			t.Fatal(err)
		}
		p := policy.New(objs[0].(*v1alpha1.AppProject), policy.Around{})
		return func(name string) (*policy.Project, bool) { return p, name == "team" }
	}
	prod := func(rutter.Target) (rutter.ClusterInfo, bool) {
		return rutter.ClusterInfo{Name: "prod", Server: "https://prod"}, true
	}
	const open = "sourceRepos: ['*'], destinations: [{server: '*', namespace: '*'}]"
	for _, tc := range []struct {
		name, project string
		namespace     string
		want          []string
		code          rutter.Code
	}{
		{"open", open, "argocd", nil, ""},
		{"source", "sourceRepos: [https://z/**], destinations: [{server: '*', namespace: '*'}]", "argocd",
			[]string{"InvalidSpecError spec.source.repoURL: repository https://x/y is not permitted in project team: no entry of spec.sourceRepos allows it"}, rutter.CodeForbidden},
		{"destination", "sourceRepos: ['*'], destinations: [{server: '*', namespace: other}]", "argocd",
			[]string{`InvalidSpecError spec.destination: cluster prod, namespace "web" is not permitted in project team: no entry of spec.destinations allows it`}, rutter.CodeForbidden},
		{"namespace", open, "elsewhere",
			[]string{"InvalidSpecError spec.project: application 'web' in namespace 'elsewhere' is not permitted to use project 'team': no entry of its spec.sourceNamespaces allows it"}, rutter.CodeForbidden},
		{"windows, orphans, accounts", open + ", syncWindows: [{kind: deny, schedule: '0 0 * * *', duration: 1h, applications: ['*']}], orphanedResources: {}, destinationServiceAccounts: [{server: a, defaultServiceAccount: b}]", "argocd", nil, ""},
		{"signatures", open + ", signatureKeys: [{keyID: A}]", "argocd",
			nil, ""},
		{"strict signatures", open + ", sourceIntegrity: {git: {policies: [{repos: [{url: '*'}], gpg: {mode: strict, keys: [A]}}]}}", "argocd",
			[]string{"UnsupportedFieldWarning spec.sourceIntegrity.git.policies[0] of AppProject team.gpg.mode strict is not acted on yet"}, rutter.CodeUnsupported},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := app(t, "spec: {project: team, "+plain+"}")
			a.Namespace = tc.namespace
			u, conditions := argo.ToUnit(a, argo.Config{Namespace: "argocd", Cluster: prod}, project(tc.project))
			var got []string
			for _, c := range conditions {
				got = append(got, c.Type+" "+c.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || rutter.CodeOf(u.Problem) != tc.code {
				t.Errorf("problem %v\n%s", u.Problem, diff)
			}
		})
	}
}

func TestSourceTranslation(t *testing.T) {
	a := app(t, `
spec:
  sources:
  - {repoURL: https://x, path: a, tagPrefix: web-, targetRevision: 1.*, directory: {disableExtensionFilter: true, jsonnet: {libs: [vendor], tlas: [{name: a, value: b, code: true}], extVars: [{name: c, value: d}]}}}
  - {repoURL: https://charts, chart: nginx, targetRevision: 1.*, helm: {passCredentials: true}}
  - {repoURL: 'oci://r/a', path: ., targetRevision: v1}
  - {repoURL: https://x, path: b, plugin: {name: p-v1, env: [{name: A, value: b}], parameters: [{name: s, string: x}, {name: l, array: [item]}, {name: m, map: {k: v}}]}}
  - {repoURL: https://x, path: c, kustomize: {version: v5, kubeVersion: '1.30', apiVersions: [a/v1]}}
  destination: {name: a}`)
	u, conditions := argo.ToUnit(a, argo.Config{Namespace: "argocd"}, nil)
	if len(conditions) > 0 || u.Problem != nil {
		t.Fatalf("%v %v", conditions, u.Problem)
	}
	x := "x"
	want := []rutter.Source{
		{RepoURL: "https://x", Path: "a", TagPrefix: "web-", TargetRevision: "1.*", Directory: &rutter.DirectoryOptions{DisableExtensionFilter: true, Jsonnet: &rutter.JsonnetOptions{
			Libs: []string{"vendor"}, TLAs: []rutter.JsonnetVar{{Name: "a", Value: "b", Code: true}}, ExtVars: []rutter.JsonnetVar{{Name: "c", Value: "d"}}}}},
		{RepoURL: "https://charts", Chart: "nginx", TargetRevision: "1.*", Helm: &rutter.HelmOptions{PassCredentials: true}},
		{RepoURL: "oci://r/a", Path: ".", TargetRevision: "v1"},
		{RepoURL: "https://x", Path: "b", Plugin: &rutter.PluginOptions{Name: "p-v1", Env: []rutter.PluginEnv{{Name: "A", Value: "b"}}, Parameters: []rutter.PluginParameter{
			{Name: "s", String: &x}, {Name: "l", Array: []string{"item"}}, {Name: "m", Map: map[string]string{"k": "v"}}}}},
		{RepoURL: "https://x", Path: "c", Kustomize: &rutter.KustomizeOptions{Version: "v5", KubeVersion: "1.30", APIVersions: []string{"a/v1"}}},
	}
	if diff := cmp.Diff(want, u.Sources); diff != "" {
		t.Error(diff)
	}
	for i, kind := range []string{rutter.RepoGit, rutter.RepoHelm, rutter.RepoOCI, rutter.RepoGit, rutter.RepoGit} {
		if got := u.Sources[i].Repo("p").Kind(); got != kind {
			t.Errorf("source %d is read as %s, want %s", i, got, kind)
		}
	}
}
