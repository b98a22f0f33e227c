package generate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/generate"
)

// services are facts that also know hosting services, placements and plugins.
type services struct {
	*facts
	branches []rutter.ForgeRepo
	pulls    []rutter.ForgePullRequest
	// files are "repository branch path".
	files     map[string]bool
	err       error
	pathErr   error
	queries   []rutter.ForgeQuery
	lookedAt  []string
	configMap map[string]string
	resources []map[string]any
	resource  generate.ResourceQuery
	reply     []map[string]any
	plugin    generate.PluginQuery
}

func (s *services) Repositories(q rutter.ForgeQuery) ([]rutter.ForgeRepo, error) {
	s.queries = append(s.queries, q)
	return s.branches, s.err
}

func (s *services) PullRequests(q rutter.ForgeQuery) ([]rutter.ForgePullRequest, error) {
	s.queries = append(s.queries, q)
	return s.pulls, s.err
}

func (s *services) PathExists(_ rutter.ForgeQuery, repo rutter.ForgeRepo, path string) (bool, error) {
	key := repo.Repository + " " + repo.Branch + " " + path
	s.lookedAt = append(s.lookedAt, key)
	return s.files[key], s.pathErr
}

func (s *services) ConfigMap(string) (map[string]string, error) { return s.configMap, s.err }

func (s *services) Resources(q generate.ResourceQuery) ([]map[string]any, error) {
	s.resource = q
	return s.resources, s.err
}

func (s *services) PluginParameters(q generate.PluginQuery) ([]map[string]any, error) {
	s.plugin = q
	return s.reply, s.err
}

func newServices() *services {
	return &services{
		facts: fleet(),
		branches: []rutter.ForgeRepo{
			{Organization: "org", Repository: "web", RepositoryID: "7", URL: "https://h/org/web.git", Branch: "release/1.0", SHA: strings.Repeat("ab", 20), Labels: []string{"deploy", "team-a"}},
			{Organization: "org", Repository: "api", RepositoryID: "3", URL: "https://h/org/api.git", Branch: "main", SHA: "0123456789abcdef", Labels: []string{"deploy"}},
			{Organization: "org", Repository: "api", RepositoryID: "3", URL: "https://h/org/api.git", Branch: "main", SHA: "0123456789abcdef", Labels: []string{"deploy"}},
			{Organization: "org", Repository: "web", RepositoryID: "7", URL: "https://h/org/web.git", Branch: "main", SHA: "ff"},
		},
		files: map[string]bool{"web main chart/Chart.yaml": true, "web release/1.0 chart/Chart.yaml": true, "web release/1.0 legacy": true, "api main chart/Chart.yaml": true},
		pulls: []rutter.ForgePullRequest{
			{Number: 12, Title: "Add cart", Branch: "feature/Add_Cart", TargetBranch: "main", HeadSHA: "0123456789abcdef", Author: "ada", Labels: []string{"preview", "big"}},
			{Number: 4, Title: "wip: nothing", Branch: "wip", TargetBranch: "dev", HeadSHA: "fe"},
		},
	}
}

func scm(rest string) string {
	return "- scmProvider: {github: {organization: org}, " + rest + "}"
}

func pulls(rest string) string {
	return "- pullRequest: {github: {owner: org, repo: web}, " + rest + "}"
}

func TestRepositoriesAndPullRequests(t *testing.T) {
	name := "{{repository}}-{{branchNormalized}}"
	cases := map[string]struct {
		reason, set string
		change      func(*services)
		want        []string
		errs        string
		looked      int
		complete    generate.Completeness
	}{
		"all": {reason: "every branch once, in order, whatever pages do", set: withTemplate(scm(""), name, "{{organization}} {{repository_id}} {{short_sha}} {{short_sha_7}} {{labels}} {{url}}"),
			want: []string{"api-main org 3 01234567 0123456 deploy https://h/org/api.git", "web-main org 7 ff ff  https://h/org/web.git", //nolint:dupword // a hash
				"web-release-1.0 org 7 abababab abababa deploy,team-a https://h/org/web.git"}},
		"values": {reason: "values see the parameters", set: withTemplate(scm("values: {id: '{{repository}}!'}"), name, "{{values.id}}"), want: []string{"api-main api!", "web-main web!", "web-release-1.0 web!"}},
		"Go template": {reason: "the same keys", set: goTemplated(withTemplate(scm("values: {id: '{{.repository}}!'}"), "{{.repository}}-{{.branchNormalized}}", "{{.values.id}}{{.short_sha_7}}")),
			want: []string{"api-main api!0123456", "web-main web!ff", "web-release-1.0 web!abababa"}},
		"repository filters": {reason: "items are alternatives", set: withTemplate(scm("filters: [{repositoryMatch: ^api}, {labelMatch: team-}]"), name, "x"), want: []string{"api-main x", "web-release-1.0 x"}},
		"all of an item":     {reason: "and all criteria of an item hold", set: withTemplate(scm("filters: [{repositoryMatch: ^web, labelMatch: team-}]"), name, "x"), want: []string{"web-release-1.0 x"}},
		"two groups":         {reason: "one repository filter and one branch filter must let it pass", set: withTemplate(scm("filters: [{repositoryMatch: ^web}, {branchMatch: ^main$}]"), name, "x"), want: []string{"web-main x"}},
		"paths": {reason: "what costs a question is asked only where all else matches", looked: 2,
			set: withTemplate(scm("filters: [{repositoryMatch: ^web}, {pathsExist: [chart/Chart.yaml], pathsDoNotExist: [legacy]}]"), name, "x"), want: []string{"web-main x"}, change: func(s *services) { s.branches = s.branches[2:] }},
		"a path cannot be looked at": {reason: "not knowing is not absence", set: withTemplate(scm("filters: [{pathsDoNotExist: [legacy]}]"), name, "x"), complete: generate.Failed, errs: "the branch main of api cannot be looked into: quota",
			change: func(s *services) { s.pathErr = rutter.Errorf(rutter.CodeUnavailable, "quota") }, looked: 1},
		"bad filter": {reason: "the place is named", set: withTemplate(scm("filters: [{branchMatch: '('}]"), name, "x"), complete: generate.Failed, errs: `generators[0].scmProvider.filters[0].branchMatch: "(" is not a regular expression`},
		"bad protocol": {reason: "a protocol that a provider has not", set: withTemplate("- scmProvider: {azureDevOps: {organization: o, teamProject: p, accessTokenRef: {secretName: s, key: k}}, cloneProtocol: ssh}", name, "x"),
			complete: generate.Failed, errs: `generators[0].scmProvider.cloneProtocol: azureDevOps has no "ssh"; use https`},
		"no provider":   {reason: "an unknown provider is not an empty answer", set: withTemplate("- scmProvider: {}", name, "x"), complete: generate.Failed, errs: "no provider is set"},
		"two providers": {reason: "one generator, one question", set: withTemplate(scm("gitea: {owner: o, api: a}"), name, "x"), complete: generate.Failed, errs: "github and gitea"},
		"no api":        {reason: "services that people run need an address", set: withTemplate("- scmProvider: {gitea: {owner: o, api: ''}}", name, "x"), complete: generate.Failed, errs: "gitea.api: is empty"},
		"no answer": {reason: "B1 for providers", set: withTemplate(scm(""), name, "x"), change: func(s *services) { s.err = rutter.Errorf(rutter.CodeUnavailable, "HTML with status 200") },
			complete: generate.Failed, errs: "HTML with status 200"},
		"pull requests": {reason: "by number", set: withTemplate(pulls("values: {v: '{{number}}/{{author}}'}"), "pr-{{number}}", "{{title}}|{{branch_slug}}|{{target_branch_slug}}|{{head_short_sha}}|{{head_short_sha_7}}|{{values.v}}"),
			want: []string{"pr-12 Add cart|feature-add-cart|main|01234567|0123456|12/ada", "pr-4 wip: nothing|wip|dev|fe|fe|4/"}},
		"labels":               {reason: "a list, which Go templates can have", set: goTemplated(withTemplate(pulls(""), "pr-{{.number}}", `l{{join "+" .labels}}`)), want: []string{"pr-12 lpreview+big", "pr-4 l"}},
		"pull request filters": {reason: "all of an item, any of the items", set: withTemplate(pulls("filters: [{branchMatch: ^feature/, targetBranchMatch: dev}, {titleMatch: '^wip'}]"), "pr-{{number}}", "x"), want: []string{"pr-4 x"}},
		"repository gone": {reason: "a repository that is gone is an error", set: withTemplate(pulls(""), "x", "x"), change: func(s *services) { s.err = rutter.Errorf(rutter.CodeNotFound, "no such repository") },
			complete: generate.Failed, errs: "no such repository"},
		"repository gone, expected": {reason: "unless the set says that it has no pull requests then", set: withTemplate(pulls("continueOnRepoNotFoundError: true"), "x", "x"), change: func(s *services) { s.err = rutter.Errorf(rutter.CodeNotFound, "no such repository") }},
		"unavailable is not gone": {reason: "which does not hold for an outage", set: withTemplate(pulls("continueOnRepoNotFoundError: true"), "x", "x"), change: func(s *services) { s.err = rutter.Errorf(rutter.CodeUnavailable, "502") },
			complete: generate.Failed, errs: "502"},
		"state": {reason: "GitLab's states are known", set: withTemplate("- pullRequest: {gitlab: {project: '1', pullRequestState: open}}", "x", "x"), complete: generate.Failed, errs: `pullRequestState: "open" is not opened`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newServices()
			if tc.change != nil {
				tc.change(s)
			}
			res := generate.Generate(setOf(t, tc.set), s)
			var got []string
			for _, app := range res.Applications {
				got = append(got, strings.TrimSpace(app.Name+" "+app.Spec.Source.Path))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s%s", tc.reason, diff, problems(res))
			}
			if tc.complete == "" {
				tc.complete = generate.Complete
			}
			if res.Completeness != tc.complete || !strings.Contains(problems(res), tc.errs) || tc.errs == "" && problems(res) != "" {
				t.Errorf("%s: %s, want %s and %q: %s", tc.reason, res.Completeness, tc.complete, tc.errs, problems(res))
			}
			if len(s.lookedAt) != tc.looked {
				t.Errorf("%s: looked for %q, want %d", tc.reason, s.lookedAt, tc.looked)
			}
		})
	}
}

// TestForgeQueries: each provider's fields become the question, with Secrets by
// name and in the namespace of the set.
func TestForgeQueries(t *testing.T) {
	token := func(key string) *rutter.SecretRef { return &rutter.SecretRef{Namespace: "team", Name: "s", Key: key} }
	for text, want := range map[string]rutter.ForgeQuery{
		"- scmProvider: {cloneProtocol: https, github: {organization: o, api: a, tokenRef: {secretName: s, key: k}, appSecretName: app, allBranches: true, excludeArchivedRepos: true}}": {
			Provider: "github", API: "a", Owner: "o", Token: token("k"), AppSecret: "app", AllBranches: true, CloneProtocol: "https"},
		"- scmProvider: {gitlab: {group: g, includeSubgroups: true, api: a, insecure: true, caRef: {configMapName: s, key: k}, topic: t}}": {
			Provider: "gitlab", API: "a", Owner: "g", IncludeSubgroups: true, IncludeShared: true, Insecure: true, CA: token("k"), Topic: "t"},
		"- scmProvider: {gitlab: {group: g, includeSharedProjects: false, includeArchivedRepos: true}}": {Provider: "gitlab", Owner: "g", IncludeArchived: true},
		"- scmProvider: {gitea: {owner: o, api: a, tokenRef: {secretName: s, key: k}}}":                 {Provider: "gitea", API: "a", Owner: "o", Token: token("k"), IncludeArchived: true},
		"- scmProvider: {bitbucketServer: {project: p, api: a, basicAuth: {username: u, passwordRef: {secretName: s, key: k}}, allBranches: true}}": {
			Provider: "bitbucketServer", API: "a", Owner: "p", User: "u", Password: token("k"), AllBranches: true, IncludeArchived: true},
		"- scmProvider: {bitbucketServer: {project: p, api: a, bearerToken: {tokenRef: {secretName: s, key: k}}}}": {
			Provider: "bitbucketServer", API: "a", Owner: "p", Token: token("k"), IncludeArchived: true},
		"- scmProvider: {bitbucket: {owner: o, user: u, appPasswordRef: {secretName: s, key: k}}}": {Provider: "bitbucket", Owner: "o", User: "u", Password: token("k"), IncludeArchived: true},
		"- scmProvider: {azureDevOps: {organization: o, teamProject: p, api: a, accessTokenRef: {secretName: s, key: k}}}": {
			Provider: "azureDevOps", API: "a", Owner: "o", Project: "p", Token: token("k"), IncludeArchived: true},
		"- scmProvider: {cloneProtocol: https-fips, awsCodeCommit: {region: r, role: arn, tagFilters: [{key: a, value: b}, {key: c}]}}": {
			Provider: "awsCodeCommit", Region: "r", Role: "arn", TagFilters: map[string]string{"a": "b", "c": ""}, IncludeArchived: true, CloneProtocol: "https-fips"},
		"- pullRequest: {github: {owner: o, repo: r, api: a, appSecretName: app, labels: [x]}}":                                  {Provider: "github", API: "a", Owner: "o", Repo: "r", AppSecret: "app", Labels: []string{"x"}},
		"- pullRequest: {gitlab: {project: g/p, pullRequestState: opened, labels: [x], tokenRef: {secretName: s, key: k}}}":      {Provider: "gitlab", Project: "g/p", State: "opened", Labels: []string{"x"}, Token: token("k")},
		"- pullRequest: {gitea: {owner: o, repo: r, api: a, insecure: true, labels: [x]}}":                                       {Provider: "gitea", API: "a", Owner: "o", Repo: "r", Insecure: true, Labels: []string{"x"}},
		"- pullRequest: {bitbucketServer: {project: p, repo: r, api: a, bearerToken: {tokenRef: {secretName: s, key: k}}}}":      {Provider: "bitbucketServer", API: "a", Owner: "p", Repo: "r", Token: token("k")},
		"- pullRequest: {bitbucket: {owner: o, repo: r, basicAuth: {username: u, passwordRef: {secretName: s, key: k}}}}":        {Provider: "bitbucket", Owner: "o", Repo: "r", User: "u", Password: token("k")},
		"- pullRequest: {azuredevops: {organization: o, project: p, repo: r, labels: [x], tokenRef: {secretName: s, key: 'k'}}}": {Provider: "azureDevOps", Owner: "o", Project: "p", Repo: "r", Labels: []string{"x"}, Token: token("k")},
	} {
		s := newServices()
		set := setOf(t, withTemplate(text, "x", "x"))
		set.Namespace = "team"
		res := generate.Generate(set, s)
		if len(s.queries) != 1 {
			t.Errorf("%s: asked %d times: %s", text, len(s.queries), problems(res))
			continue
		}
		if diff := cmp.Diff(want, s.queries[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestPlacements(t *testing.T) {
	decision := func(rest string) string { return "- clusterDecisionResource: {configMapRef: cm, " + rest + "}" }
	placed := func(name string, clusters ...any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"decisions": clusters}}
	}
	at := func(name string) any {
		return map[string]any{"clusterName": name, "score": int64(7), "live": true, "zones": []any{"a"}}
	}
	config := map[string]string{"apiVersion": "p.example.com/v1", "kind": "placements", "statusListKey": "decisions", "matchKey": "clusterName"}
	for name, tc := range map[string]struct {
		reason, set string
		resources   []map[string]any
		without     string
		want        []string
		errs        string
		warning     string
	}{
		"matched": {reason: "members that are named, with all keys as texts", set: withTemplate(decision("name: p, values: {v: '{{score}}-{{live}}'}"), "{{name}}", "{{server}} {{clusterName}} {{zones.0}} {{values.v}}"),
			resources: []map[string]any{placed("b", at("west")), placed("a", at("lab"))}, want: []string{"lab https://lab.example.com lab a 7-true", "west https://west.example.com west a 7-true"}},
		"Go template": {reason: "lists stay lists", set: goTemplated(withTemplate(decision("labelSelector: {matchLabels: {a: b}}"), "{{.name}}", "{{index .zones 0}}{{.score}}")),
			resources: []map[string]any{placed("a", at("lab"))}, want: []string{"lab a7"}},
		"elsewhere": {reason: "a cluster that is no member is left out, and said", set: withTemplate(decision("name: p"), "{{name}}", "x"), resources: []map[string]any{placed("a", at("mars"), at("lab"))},
			want: []string{"lab x"}, warning: `"mars" is no member cluster`},
		"no key": {reason: "an item that names nothing stops itself", set: withTemplate(decision("name: p"), "{{name}}", "x"), resources: []map[string]any{placed("a", map[string]any{"x": "y"}, at("lab"))},
			want: []string{"lab x"}, errs: `placements "a": status.decisions[0]: has no clusterName`},
		"empty":       {reason: "an empty list is an answer", set: withTemplate(decision("name: p"), "{{name}}", "x"), resources: []map[string]any{placed("a")}},
		"no list":     {reason: "so is a status without it", set: withTemplate(decision("name: p"), "{{name}}", "x"), resources: []map[string]any{{"status": map[string]any{}}}},
		"no status":   {reason: "nothing decided yet is none", set: withTemplate(decision("name: p"), "{{name}}", "x"), resources: []map[string]any{{}}, errs: "has no status yet"},
		"none":        {reason: "nor is no resource", set: withTemplate(decision("name: p"), "{{name}}", "x"), errs: "no placements is selected"},
		"no question": {reason: "name or labelSelector", set: withTemplate(decision("values: {}"), "{{name}}", "x"), errs: "set name or labelSelector"},
		"no matchKey": {reason: "the ConfigMap says how", set: withTemplate(decision("name: p"), "{{name}}", "x"), without: "matchKey", errs: "ConfigMap cm has no matchKey"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServices()
			s.resources, s.configMap = tc.resources, map[string]string{}
			for k, v := range config {
				if k != tc.without {
					s.configMap[k] = v
				}
			}
			res := generate.Generate(setOf(t, tc.set), s)
			var got []string
			for _, app := range res.Applications {
				got = append(got, app.Name+" "+app.Spec.Source.Path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s:\n%s%s", tc.reason, diff, problems(res))
			}
			if !strings.Contains(problems(res), tc.errs) || (tc.errs == "") != (res.Completeness == generate.Complete) {
				t.Errorf("%s: %s %q", tc.reason, res.Completeness, problems(res))
			}
			if !strings.Contains(strings.Join(res.Warnings, "\n"), tc.warning) {
				t.Errorf("%s: warnings %q", tc.reason, res.Warnings)
			}
		})
	}
}

func TestPlugins(t *testing.T) {
	text := `- matrix:
    generators:
    - list: {elements: [{env: prod}]}
    - plugin:
        configMapRef: {name: cm}
        input: {parameters: {env: 'E', list: [1, two]}}
        values: {v: 'V'}`
	for mode, set := range map[string]string{
		"fast": withTemplate(strings.NewReplacer("E", "{{env}}", "V", "{{env}}-{{name}}").Replace(text), "{{name}}", "{{deep.n}} {{generator.input.parameters.env}} {{generator.input.parameters.list.1}} {{values.v}}"),
		"go": goTemplated(withTemplate(strings.NewReplacer("E", "{{.env}}", "V", "{{.env}}-{{.name}}").Replace(text), "{{.name}}",
			"{{.deep.n}} {{.generator.input.parameters.env}} {{index .generator.input.parameters.list 1}} {{.values.v}}")),
	} {
		s := newServices()
		s.reply = []map[string]any{{"name": "a", "deep": map[string]any{"n": 1e6}}, {"name": "b", "deep": map[string]any{"n": 0.5}}}
		res := generate.Generate(setOf(t, set), s)
		var got []string
		for _, app := range res.Applications {
			got = append(got, app.Name+" "+app.Spec.Source.Path)
		}
		if diff := cmp.Diff([]string{"a 1000000 prod two prod-a", "b 0.5 prod two prod-b"}, got); diff != "" {
			t.Errorf("%s:\n%s%s", mode, diff, problems(res))
		}
		want := generate.PluginQuery{ConfigMap: "cm", Namespace: "argocd", Set: "set", Input: map[string]any{"env": "prod", "list": []any{int64(1), "two"}}}
		if diff := cmp.Diff(want, s.plugin); diff != "" {
			t.Errorf("%s: the question:\n%s", mode, diff)
		}
	}
}

func TestRequeue(t *testing.T) {
	for text, want := range map[string]string{
		"- list: {}\n- clusters: {}":                                                                     "0s",
		"- git: {repoURL: r, directories: [{path: x}]}":                                                  "3m0s",
		"- plugin: {configMapRef: {name: x}}\n- git: {repoURL: r, requeueAfterSeconds: 0}":               "30m0s",
		"- matrix: {generators: [{list: {}}, {merge: {generators: [{git: {requeueAfterSeconds: 7}}]}}]}": "7s",
		"- pullRequest: {requeueAfterSeconds: 90}\n- scmProvider: {}\n- clusterDecisionResource: {}":     "1m30s",
	} {
		set := setOf(t, withTemplate(text, "x", "x"))
		if got := fmt.Sprint(generate.RequeueDefaults{}.Requeue(set)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
