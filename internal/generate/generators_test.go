package generate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/generate"
)

// withTemplate is a set of generators whose Applications are named so; the
// path of the source shows one more parameter.
func withTemplate(generators, name, path string, extra ...string) string {
	return strings.Join(extra, "\n") + "\nspec:\n" + indent("generators:\n"+generators, 2) + fmt.Sprintf(`
  template:
    metadata: {name: '%s'}
    spec:
      project: default
      source: {repoURL: https://git.example.com/fleet, targetRevision: main, path: '%s'}
      destination: {server: https://kubernetes.default.svc, namespace: x}
`, name, path)
}

func goTemplated(text string, options ...string) string {
	return strings.Replace(text, "spec:\n", "spec:\n  goTemplate: true\n  goTemplateOptions: ["+strings.Join(options, ",")+"]\n", 1)
}

func indent(text string, n int) string {
	pad := strings.Repeat(" ", n)
	return pad + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+pad)
}

type generatorCase struct {
	reason string
	set    string
	facts  *facts
	opts   generate.Options
	// want are "name path" of the Applications.
	want     []string
	complete generate.Completeness
	// errs are parts of the errors that must be there.
	errs []string
	// code is that of the first error of a generator.
	code rutter.Code
}

func runCases(t *testing.T, cases map[string]generatorCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := tc.facts
			if f == nil {
				f = fleet()
			}
			res := tc.opts.Generate(setOf(t, tc.set), f)
			got := make([]string, 0, len(res.Applications))
			for _, app := range res.Applications {
				got = append(got, strings.TrimSpace(app.Name+" "+app.Spec.Source.Path))
			}
			if diff := cmp.Diff(append([]string{}, tc.want...), got); diff != "" {
				t.Errorf("%s\nApplications (-want +got):\n%s%s", tc.reason, diff, problems(res))
			}
			if tc.complete == "" {
				tc.complete = generate.Complete
			}
			if res.Completeness != tc.complete {
				t.Errorf("%s\ncompleteness is %s, want %s\n%s", tc.reason, res.Completeness, tc.complete, problems(res))
			}
			all := problems(res)
			for _, part := range tc.errs {
				if !strings.Contains(all, part) {
					t.Errorf("%s\nno error says %q:\n%s", tc.reason, part, all)
				}
			}
			if len(tc.errs) == 0 && all != "" {
				t.Errorf("%s\nunexpected errors:\n%s", tc.reason, all)
			}
			if tc.code != "" && (len(res.Errors) == 0 || rutter.CodeOf(res.Errors[0]) != tc.code) {
				t.Errorf("%s\nerrors %v, want code %s", tc.reason, res.Errors, tc.code)
			}
		})
	}
}

func TestList(t *testing.T) {
	runCases(t, map[string]generatorCase{
		"texts": {
			reason: "each element is an Application; names are sorted",
			set:    withTemplate("- list: {elements: [{cluster: b, env: dev}, {cluster: a, env: prod}]}", "api-{{cluster}}", "apps/{{ env }}"),
			want:   []string{"api-a apps/prod", "api-b apps/dev"},
		},
		"values": {
			reason: "the key values of an element is a map of texts",
			set:    withTemplate("- list: {elements: [{name: a, values: {tier: gold}}]}", "{{name}}", "{{values.tier}}"),
			want:   []string{"a gold"},
		},
		"not a text": {
			reason:   "{{key}} renders texts only; the bad element stops only itself, but nothing is known of its name",
			set:      withTemplate("- list: {elements: [{name: a, num: 3}, {name: b}]}", "{{name}}", "x"),
			want:     []string{"b x"},
			complete: generate.Partial,
			errs:     []string{"generators[0].list element 0", "generators[0].list.elements[0].num: is a number, want a string", "goTemplate: true"},
		},
		"nested types with Go templates": {
			reason: "objects are passed as they are; whole numbers stay whole",
			set: goTemplated(withTemplate(`- list: {elements: [{name: a, num: 1000000, tags: [x, z], deep: {live: true}}]}`,
				"{{.name}}", `{{.num}}-{{index .tags 1}}-{{.deep.live}}-{{if eq .num 1000000}}same{{end}}`)),
			want: []string{"a 1000000-z-true-same"},
		},
		"elementsYaml": {
			reason: "its items are appended",
			set:    withTemplate("- list: {elements: [{name: a, p: x}], elementsYaml: '[{name: b, p: z}]'}", "{{name}}", "{{p}}"),
			want:   []string{"a x", "b z"},
		},
		"elementsYaml is no list": {
			reason:   "its elements are unknown, the written ones are not",
			set:      withTemplate("- list: {elements: [{name: a}], elementsYaml: 'name: b'}", "{{name}}", "x"),
			want:     []string{"a x"},
			complete: generate.Partial,
			errs:     []string{"generators[0].list.elementsYaml", "an object"},
		},
		"none": {
			reason: "no elements is a complete answer",
			set:    withTemplate("- list: {elements: []}", "{{name}}", "x"),
		},
	})
}

func TestClusters(t *testing.T) {
	runCases(t, map[string]generatorCase{
		"all": {
			reason: "an empty selector includes the local cluster without a Secret",
			set:    withTemplate("- clusters: {}", "{{name}}", "{{server}}"),
			want: []string{"east https://east.example.com", "in-cluster https://kubernetes.default.svc",
				"lab https://lab.example.com", "west https://west.example.com"},
		},
		"selector": {
			reason: "labels select and are parameters",
			set:    withTemplate("- clusters: {selector: {matchLabels: {env: production}}}", "{{name}}", "{{metadata.labels.region}}"),
			want:   []string{"east us-east", "west us-west"},
		},
		"any selector leaves the implicit cluster out": {
			reason: "reference 5.4: even one that would match no labels at all",
			set:    withTemplate("- clusters: {selector: {matchExpressions: [{key: env, operator: NotIn, values: [production]}]}}", "{{name}}", "x"),
			want:   []string{"lab x"},
		},
		"secret-type": {
			reason: "selecting on the label of all cluster Secrets is how sets leave the implicit cluster out",
			set:    withTemplate("- clusters: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster}}}", "{{name}}", "x"),
			want:   []string{"east x", "lab x", "west x"},
		},
		"local cluster with a Secret": {
			reason: "B13: once a Secret describes it, it has labels and is selected",
			facts: &facts{clusters: []rutter.ClusterInfo{{Name: "hub", Server: generate.InClusterServer,
				Labels: map[string]string{"env": "hub"}}}},
			set:  withTemplate("- clusters: {selector: {matchLabels: {env: hub}}}", "{{name}}", "x"),
			want: []string{"hub x"},
		},
		"values": {
			reason: "values are rendered once with the cluster's parameters",
			set:    withTemplate("- clusters: {selector: {matchLabels: {env: staging}}, values: {dir: 'on-{{name}}', again: '{{values.dir}}'}}", "{{name}}", "{{values.dir}} {{values.again}}"),
			want:   []string{"lab on-lab {{values.dir}}"},
		},
		"Go template": {
			reason: "labels are nested",
			set:    goTemplated(withTemplate("- clusters: {selector: {matchLabels: {env: staging}}, values: {v: '{{.name}}!'}}", "{{.nameNormalized}}", "{{.metadata.labels.region}}{{.values.v}}")),
			want:   []string{"lab eulab!"},
		},
		"flatList": {
			reason: "one element with all clusters",
			set:    goTemplated(withTemplate("- clusters: {flatList: true, selector: {matchLabels: {env: production}}}", "all", "{{range .clusters}}{{.name}},{{end}}")),
			want:   []string{"all east,west,"},
		},
		"flatList of none": {
			reason: "it is still one element",
			set:    goTemplated(withTemplate("- clusters: {flatList: true, selector: {matchLabels: {env: none}}}", "all", "{{len .clusters}}")),
			want:   []string{"all 0"},
		},
		"the list fails": {
			reason:   "B1: not being able to look is not an empty fleet",
			facts:    &facts{clustersErr: rutter.Errorf(rutter.CodeUnavailable, "the API server answers 500")},
			set:      withTemplate("- clusters: {}", "{{name}}", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].clusters", "500"},
			code:     rutter.CodeUnavailable,
		},
		"bad operator": {
			reason:   "an invalid selector names its place",
			set:      withTemplate("- clusters: {selector: {matchExpressions: [{key: env, operator: Like, values: [p]}]}}", "{{name}}", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].clusters.selector.matchExpressions[0]", `"Like"`},
			code:     rutter.CodeInvalid,
		},
	})
}

func TestGitDirectories(t *testing.T) {
	git := func(rest string) string { return "- git: {repoURL: https://git.example.com/fleet, " + rest + "}" }
	runCases(t, map[string]generatorCase{
		"one level": {
			reason: "* stays within a segment, and hidden directories are left out",
			set:    withTemplate(git("directories: [{path: apps/*}]"), "{{path.basename}}", "{{path}} {{path[0]}} {{path.basenameNormalized}}"),
			want:   []string{"cart apps/cart apps cart", "old apps/old apps old", "shop apps/shop apps shop"},
		},
		"exclude wins": {
			reason: "whatever the order of the items",
			set:    withTemplate(git("directories: [{path: apps/old, exclude: true}, {path: apps/*}]"), "{{path.basename}}", "x"),
			want:   []string{"cart x", "shop x"},
		},
		"root": {
			reason: "the root is not listed, files neither",
			set:    withTemplate(git("directories: [{path: '*'}]"), "{{path.basename}}", "x"),
			want:   []string{"apps x", "clusters x", "infrastructure x", "tenants x"},
		},
		"two levels": {
			reason: "each segment has its own glob",
			set:    withTemplate(git("directories: [{path: '*/*/base'}]"), "{{path[1]}}", "{{path}}"),
			want:   []string{"cart apps/cart/base", "shop apps/shop/base"},
		},
		"prefix": {
			reason: "pathParamPrefix keeps two generators apart",
			set:    withTemplate(git("pathParamPrefix: my, directories: [{path: apps/shop}]"), "{{my.path.basename}}", "{{my.path}} {{my.path[1]}}"),
			want:   []string{"shop apps/shop shop"},
		},
		"Go template": {
			reason: "path is a map",
			set:    goTemplated(withTemplate(git("directories: [{path: apps/shop}]"), "{{.path.basename}}", "{{.path.path}} {{index .path.segments 1}}")),
			want:   []string{"shop apps/shop shop"},
		},
		"Go template with prefix": {
			reason: "below the prefix",
			set:    goTemplated(withTemplate(git("pathParamPrefix: my, directories: [{path: apps/shop}]"), "{{.my.path.basename}}", "{{.my.path.path}}")),
			want:   []string{"shop apps/shop"},
		},
		"bad glob": {
			reason:   "a pattern that cannot match is an error and not an empty answer",
			set:      withTemplate(git("directories: [{path: 'apps/['}]"), "{{path}}", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].git.directories[0].path", "apps/["},
		},
		"neither": {
			reason:   "a git generator needs one of the two",
			set:      withTemplate(git("revision: main"), "{{path}}", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].git: set directories or files"},
		},
		"repository gone": {
			reason:   "B3: the others go on, and nothing is known to be unwanted",
			set:      withTemplate("- git: {repoURL: https://git.example.com/gone, directories: [{path: '*'}]}\n- list: {elements: [{path.basename: a}]}", "{{path.basename}}", "x"),
			want:     []string{"a x"},
			complete: generate.Partial,
			errs:     []string{"generators[0].git", "https://git.example.com/gone does not exist"},
			code:     rutter.CodeNotFound,
		},
	})
}

func TestGitFiles(t *testing.T) {
	git := func(rest string) string { return "- git: {repoURL: https://git.example.com/fleet, " + rest + "}" }
	runCases(t, map[string]generatorCase{
		"yaml": {
			reason: "keys of the file and its place; by default * crosses segments",
			set:    withTemplate(git("files: [{path: 'clusters/*/config.yaml'}]"), "{{cluster}}", "{{path}} {{path.basename}} {{path.filename}} {{env}}"),
			want:   []string{"deep clusters/east/deep deep config.yaml none", "east clusters/east east config.yaml production", "west clusters/west west config.yaml production"},
		},
		"new globbing": {
			reason: "with the switch * stays within a segment",
			opts:   generate.Options{NewFileGlobbing: true},
			set:    withTemplate(git("files: [{path: 'clusters/*/config.yaml'}]"), "{{cluster}}", "x"),
			want:   []string{"east x", "west x"},
		},
		"new globbing across": {
			reason: "with the switch ** crosses segments",
			opts:   generate.Options{NewFileGlobbing: true},
			set:    withTemplate(git("files: [{path: 'clusters/**/config.yaml'}]"), "{{cluster}}", "x"),
			want:   []string{"deep x", "east x", "west x"},
		},
		"list": {
			reason: "each object of a list is an element",
			set:    withTemplate(git("files: [{path: 'clusters/lab/*'}]"), "{{cluster}}", "{{path.filenameNormalized}}"),
			want:   []string{"lab-1 config.json", "lab-2 config.json"},
		},
		"flattened": {
			reason: "lists and numbers become texts; large numbers have no exponent",
			set:    withTemplate(git("files: [{path: clusters/east/config.yaml}]"), "{{cluster}}", "{{replicas}} {{zones.1}} {{ratio}}"),
			want:   []string{"east 1000000 b 0.5"},
		},
		"directory name": {
			reason: "as in a git pathspec it selects all that is in it",
			set:    withTemplate(git("files: [{path: clusters/west}]"), "{{cluster}}", "x"),
			want:   []string{"west x"},
		},
		"exclude": {
			reason: "excluded files are taken out",
			set:    withTemplate(git("files: [{path: 'clusters/*.yaml'}, {path: '*/deep/*', exclude: true}]"), "{{cluster}}", "x"),
			want:   []string{"east x", "west x"},
		},
		"empty file": {
			reason: "counts as one empty object",
			set:    withTemplate(git("files: [{path: 'tenants/*'}]"), "{{path.basename}}", "{{path[0]}}"),
			want:   []string{"team-a tenants"},
		},
		"root": {
			reason: "a file at the root has the path .",
			facts:  &facts{repos: singleRepo(map[string]string{"config.yaml": "name: a"})},
			set:    withTemplate(git("files: [{path: config.yaml}]"), "{{name}}", "{{path}}"),
			want:   []string{"a ."},
		},
		"own path": {
			reason: "a file's own key path is overwritten",
			facts:  &facts{repos: singleRepo(map[string]string{"d/config.yaml": "name: a\npath: mine"})},
			set:    goTemplated(withTemplate(git("files: [{path: d/config.yaml}]"), "{{.name}}", "{{.path.path}}")),
			want:   []string{"a d"},
		},
		"broken file": {
			reason: "it stops only its own elements, and is named with its line",
			facts: &facts{repos: singleRepo(map[string]string{
				"c/a/config.yaml": "name: a", "c/b/config.yaml": "name: b\n  bad: x", "c/c/config.yaml": "name: c\nname: d"})},
			set:      withTemplate(git("files: [{path: c/*}]"), "{{name}}", "x"),
			want:     []string{"a x"},
			complete: generate.Partial,
			errs:     []string{"generators[0].git element 1", "c/b/config.yaml: ", "line 2", "c/c/config.yaml: ", `"name" already set`},
		},
		"values": {
			reason: "values see the file's keys",
			set:    withTemplate(git("values: {id: '{{cluster}}-{{env}}'}, files: [{path: clusters/west/config.yaml}]"), "{{values.id}}", "x"),
			want:   []string{"west-production x"},
		},
	})
}

func TestMatrix(t *testing.T) {
	runCases(t, map[string]generatorCase{
		"clusters by directories": {
			reason: "every directory on every cluster",
			set: withTemplate(`- matrix:
    generators:
    - clusters: {selector: {matchLabels: {env: production}}}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/*}, {path: apps/old, exclude: true}]}`,
				"{{name}}-{{path.basename}}", "{{path}}/{{metadata.labels.env}}"),
			want: []string{"east-cart apps/cart/production", "east-shop apps/shop/production",
				"west-cart apps/cart/production", "west-shop apps/shop/production"},
		},
		"three, the inner reads the outer": {
			reason: "B8: products of any number, with inner fields rendered by outer values",
			set: withTemplate(`- matrix:
    generators:
    - clusters: {selector: {matchLabels: {env: production}}}
    - git: {repoURL: https://git.example.com/fleet, directories: [{path: apps/cart}, {path: apps/shop}]}
    - list: {elements: [{tier: 'hot-{{path.basename}}-{{name}}'}]}`, "{{name}}-{{path.basename}}", "{{tier}}"),
			want: []string{"east-cart hot-cart-east", "east-shop hot-shop-east", "west-cart hot-cart-west", "west-shop hot-shop-west"},
		},
		"nested three deep with Go templates": {
			reason: "B8: the innermost sees everything outside of it",
			set: goTemplated(withTemplate(`- matrix:
    generators:
    - list: {elements: [{a: x}, {a: z}]}
    - matrix:
        generators:
        - list: {elements: [{b: '{{.a}}1'}]}
        - matrix:
            generators:
            - list: {elements: [{c: '{{.b}}2'}]}
            - list: {elements: [{d: '{{.a}}{{.b}}{{.c}}'}]}`, "{{.d}}", "{{.c}}"), "missingkey=error"),
			want: []string{"xx1x12 x12", "zz1z12 z12"},
		},
		"templated globs and elementsYaml": {
			reason: "fields of the inner generator are rendered, not only elements",
			set: goTemplated(withTemplate(`- matrix:
    generators:
    - git: {repoURL: https://git.example.com/fleet, files: [{path: clusters/east/config.yaml}]}
    - list: {elementsYaml: '{{.zones | toJson}}', elements: []}`, "{{.cluster}}", "x")),
			complete: generate.Partial,
			errs:     []string{"elementsYaml[0]: is a string, want an object"},
		},
		"values of the inner see both": {
			reason: "values are rendered with the outer parameters and its own",
			set: goTemplated(withTemplate(`- matrix:
    generators:
    - list: {elements: [{app: shop}]}
    - clusters: {selector: {matchLabels: {env: staging}}, values: {id: '{{.app}}-{{.name}}'}}`, "{{.values.id}}", "x"), "missingkey=error"),
			want: []string{"shop-lab x"},
		},
	})
}

func TestMatrixConflictsAndFailures(t *testing.T) {
	runCases(t, map[string]generatorCase{
		"collision": {
			reason: "with {{key}} two values of a key are an error that names both producers",
			set: withTemplate(`- matrix:
    generators:
    - list: {elements: [{name: a}, {name: lab}]}
    - clusters: {selector: {matchLabels: {env: staging}}}`, "{{name}}", "x"),
			want:     []string{"lab x"},
			complete: generate.Partial,
			errs: []string{`parameter "name" is "a" from generators[0].matrix.generators[0].list and "lab" from ` +
				`generators[0].matrix.generators[1].clusters`},
		},
		"precedence with Go templates": {
			reason: "with the reference's rules maps are merged and the first value wins",
			opts:   generate.Options{ReferenceCollisions: true},
			set: goTemplated(withTemplate(`- matrix:
    generators:
    - list: {elements: [{name: a, m: {x: 1}}]}
    - list: {elements: [{name: b, m: {x: 2, z: 3}}]}`, "{{.name}}", "{{.m.x}}{{.m.z}}")),
			want: []string{"a 13"},
		},
		"one child": {
			reason:   "a product of one is a mistake",
			set:      withTemplate("- matrix: {generators: [{list: {elements: []}}]}", "a", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].matrix: has 1 generators"},
		},
		"two types in a child": {
			reason:   "an item of a combination is one generator",
			set:      withTemplate("- matrix: {generators: [{list: {elements: []}, clusters: {}}, {clusters: {}}]}", "a", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].matrix.generators[0]", "list and clusters"},
		},
		"an inner failure": {
			reason: "only the combinations of that outer element are unknown",
			set: withTemplate(`- matrix:
    generators:
    - list: {elements: [{repo: fleet}, {repo: gone}]}
    - git: {repoURL: 'https://git.example.com/{{repo}}', directories: [{path: apps/shop}]}`, "{{repo}}-{{path.basename}}", "x"),
			want:     []string{"fleet-shop x"},
			complete: generate.Partial,
			errs:     []string{"generators[0].matrix.generators[1].git", "git.example.com/gone"},
		},
		"nested mistake": {
			reason: "a combination in a combination is kept as written by the API server, so it is checked here, " +
				"and even where nothing outside of it is produced: the mistake must not read as an empty answer",
			set:      withTemplate("- matrix: {generators: [{list: {elements: []}}, {matrix: {generators: nonsense}}]}", "a", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].matrix.generators[1].matrix: "},
			code:     rutter.CodeInvalid,
		},
	})
}

func TestMerge(t *testing.T) {
	runCases(t, map[string]generatorCase{
		"override": {
			reason: "later children override the base by key; what is not in the base is dropped",
			set: withTemplate(`- merge:
    mergeKeys: [server]
    generators:
    - clusters: {selector: {matchLabels: {env: production}}, values: {size: small}}
    - list: {elements: [{server: https://east.example.com, values.size: large}, {server: https://other, values.size: huge}]}`,
				"{{name}}", "{{values.size}}"),
			want: []string{"east large", "west small"},
		},
		"deep with Go templates": {
			reason: "maps are merged and an empty text erases nothing, but false is a value",
			set: goTemplated(withTemplate(`- merge:
    mergeKeys: [name]
    generators:
    - list: {elements: [{name: a, v: {x: 1, w: 2, t: z, live: true}}]}
    - list: {elements: [{name: a, v: {x: 5, t: '', live: false}}]}`, "{{.name}}", "{{.v.x}}{{.v.w}}{{.v.t}}{{.v.live}}")),
			want: []string{"a 52zfalse"},
		},
		"not unique": {
			reason: "keys name one element of each child",
			set: withTemplate(`- merge: {mergeKeys: [env], generators: [{list: {elements: [{name: a, env: x}, {name: b, env: x}]}}, {list: {elements: []}}]}`,
				"{{name}}", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].merge.generators[0].list", `{"env":"x"}`, "unique"},
		},
		"no keys": {
			reason:   "a merge needs keys",
			set:      withTemplate("- merge: {mergeKeys: [], generators: [{list: {}}, {list: {}}]}", "a", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].merge.mergeKeys"},
		},
		"an override fails": {
			reason: "a base without an override that is only unknown would change Applications",
			set: withTemplate(`- merge: {mergeKeys: [name], generators: [{list: {elements: [{name: a}]}},
      {git: {repoURL: https://git.example.com/gone, files: [{path: x}]}}]}`, "{{name}}", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0].merge.generators[1].git"},
		},
		"inside a matrix": {
			reason: "combinations nest in each other",
			set: withTemplate(`- matrix:
    generators:
    - list: {elements: [{app: shop}]}
    - merge:
        mergeKeys: [id]
        generators:
        - list: {elements: [{id: '1', v: '{{app}}-base'}, {id: '2', v: '{{app}}-base'}]}
        - list: {elements: [{id: '2', v: '{{app}}-over'}]}`, "{{app}}-{{id}}", "{{v}}"),
			want: []string{"shop-1 shop-base", "shop-2 shop-over"},
		},
	})
}

func TestSelectorsAndUnsupported(t *testing.T) {
	runCases(t, map[string]generatorCase{
		"selector on flattened parameters": {
			reason: "values may hold what label values may not",
			set: withTemplate(`- list: {elements: [{name: a, path: 'x/y z'}, {name: b, path: other}]}
  selector: {matchLabels: {path: 'x/y z'}}`, "{{name}}", "x"),
			want: []string{"a x"},
		},
		"selector on nested values": {
			reason: "keys are dotted, values are texts",
			set: goTemplated(withTemplate(`- list: {elements: [{name: a, m: {num: 3}}, {name: b, m: {num: 4}}]}
  selector: {matchExpressions: [{key: m.num, operator: In, values: ['3']}]}`, "{{.name}}", "x")),
			want: []string{"a x"},
		},
		"nested selector": {
			reason: "selectors inside a combination always apply, and see outer values",
			set: withTemplate(`- matrix:
    generators:
    - list: {elements: [{want: east}]}
    - clusters: {}
      selector: {matchLabels: {name: '{{want}}'}}`, "{{name}}", "x"),
			want: []string{"east x"},
		},
		"several types in one item": {
			reason: "at the top all of them run",
			set:    withTemplate("- list: {elements: [{name: a}]}\n  clusters: {selector: {matchLabels: {env: staging}}}", "{{name}}", "x"),
			want:   []string{"a x", "lab x"},
		},
		"scmProvider": {
			reason:   "what cannot be asked is named, and proposes no removals",
			set:      withTemplate("- list: {elements: [{name: a}]}\n- scmProvider: {github: {organization: o}}", "{{name}}", "x"),
			want:     []string{"a x"},
			complete: generate.Partial,
			errs:     []string{"generators[1].scmProvider: hosting services cannot be asked here"},
			code:     rutter.CodeUnsupported,
		},
		"no type": {
			reason:   "an item of an unknown type must not read as an empty answer",
			set:      withTemplate("- {}", "{{name}}", "x"),
			complete: generate.Failed,
			errs:     []string{"generators[0]: no known generator is set"},
			code:     rutter.CodeInvalid,
		},
	})
}

func TestSetsThatCannotBeEvaluated(t *testing.T) {
	empty := setOf(t, withTemplate(listOf("a"), "{{name}}", "x"))
	empty.Spec.Generators = nil
	if res := generate.Generate(empty, fleet()); res.Completeness != generate.Failed || !strings.Contains(problems(res), "spec.generators: is empty") {
		t.Errorf("nothing to ask is not an empty answer: %s %s", res.Completeness, problems(res))
	}
	runCases(t, map[string]generatorCase{
		"option": {
			reason:   "an unknown option would make the template engine panic",
			set:      goTemplated(withTemplate("- list: {elements: [{name: a}]}", "{{.name}}", "x"), "missingkey=never"),
			complete: generate.Failed,
			errs:     []string{`spec.goTemplateOptions[0]: "missingkey=never"`},
			code:     rutter.CodeInvalid,
		},
	})
}

func TestErrorsKeepTheirCause(t *testing.T) {
	cause := errors.New("boom")
	res := generate.Generate(setOf(t, withTemplate("- clusters: {}", "a", "x")), &facts{clustersErr: cause})
	if len(res.Errors) != 1 || !errors.Is(res.Errors[0], cause) {
		t.Errorf("errors %v do not wrap the cause", res.Errors)
	}
}

func TestFileGlobbing(t *testing.T) {
	text := "- git: {repoURL: https://git.example.com/fleet, files: [{path: 'clusters/*/config.yaml'}]}"
	for annotation, want := range map[string]string{"": "deep east west", "pathspec": "deep east west", "segments": "east west"} {
		for _, operator := range []bool{false, true} {
			set := setOf(t, withTemplate(text, "{{cluster}}", "x"))
			if annotation != "" {
				set.Annotations = map[string]string{generate.AnnotationFileGlobbing: annotation}
			}
			expect := want
			if annotation == "" && operator {
				expect = "east west"
			}
			res := generate.Options{NewFileGlobbing: operator}.Generate(set, fleet())
			if got := strings.Join(names(res), " "); got != expect {
				t.Errorf("%q, operator %v: %s, want %s", annotation, operator, got, expect)
			}
			warned := strings.Contains(strings.Join(res.Warnings, ""), `generators[0].git.files: "clusters/*/config.yaml" also matches clusters/east/deep/config.yaml`)
			if warned != strings.Contains(expect, "deep") {
				t.Errorf("%q, operator %v: what matches by surprise is said: %v", annotation, operator, res.Warnings)
			}
		}
	}
	set := setOf(t, withTemplate(text, "x", "x", "metadata: {annotations: {rutter.dev/file-globbing: new}}"))
	if res := generate.Generate(set, fleet()); res.Completeness != generate.Failed || !strings.Contains(problems(res), "is not segments or pathspec") {
		t.Error(problems(res))
	}
}

func TestProducersOfParameters(t *testing.T) {
	res := generate.Generate(setOf(t, goTemplated(withTemplate(`- matrix:
    generators:
    - list: {elements: [{app: x, shared: a}]}
    - clusters: {selector: {matchLabels: {env: staging}}, values: {v: '1'}}`, "{{.name}}", "x"))), fleet())
	want := map[string]string{"app": "generators[0].matrix.generators[0].list", "shared": "generators[0].matrix.generators[0].list"}
	for _, k := range []string{"name", "nameNormalized", "server", "project", "metadata", "values"} {
		want[k] = "generators[0].matrix.generators[1].clusters"
	}
	if diff := cmp.Diff(want, res.Elements[0].Producers()); diff != "" {
		t.Error(diff)
	}
}
