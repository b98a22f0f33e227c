package e2e

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cli"
	"github.com/rutterhq/rutter/internal/controller/argo"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/testenv"
)

// The scenarios of generators that break nothing but the fleet. Those with
// outages are in generators_outage_test.go.

// TestGeneratorsB4FallsToNothing takes 40 elements to 39, and then to none.
func TestGeneratorsB4FallsToNothing(t *testing.T) {
	t.Parallel()
	all := numbered(40)
	s := start(t).scene(t, "b4", all...)
	text := func(names ...string) string {
		return s.text(listOf(names...), "", `, annotations: {rutter.dev/deletion-budget: "10%"}`)
	}
	s.create(t, text(all...))
	s.awaitSynced(t, all...)
	s.deleted(t)

	s.change(t, text(all[:39]...)) // one is within the budget
	s.awaitApps(t, all[:39]...)
	s.w.awaitGone(t, s.app(all[39]))
	s.deleted(t, all[39])

	s.change(t, text())
	digest := s.awaitHeld(t, 39, "generates nothing")
	s.deleted(t, all[39])
	if n := len(s.objects(t)); n != 39 {
		t.Errorf("%d objects are there while the removals wait, wanted 39", n)
	}
	s.change(t, text("e40")) // growth goes on meanwhile, and what waits is another plan then
	s.repo.push(t, appFolders("1", "e40"))
	s.awaitSynced(t, "e40")
	s.approve(t, digest)
	digest = s.awaitHeld(t, 39)
	s.deleted(t, all[39])

	s.approve(t, digest)
	s.awaitApps(t, "e40")
	for _, e := range all {
		s.w.awaitGone(t, s.app(e))
	}
	s.deleted(t, all...)
	s.awaitWell(t)
	if got := slices.Collect(maps.Keys(s.objects(t))); !slices.Equal(got, []string{"e40"}) {
		t.Errorf("the objects are %v, wanted that of e40", got)
	}
}

// TestGeneratorsB4FallsFromFortyToNothing takes 40 elements to none at once; all
// 40 go when that is approved.
func TestGeneratorsB4FallsFromFortyToNothing(t *testing.T) {
	t.Parallel()
	all := numbered(40)
	s := start(t).scene(t, "b4all", all...)
	budget := `, annotations: {rutter.dev/deletion-budget: "10%"}`
	s.create(t, s.text(listOf(all...), "", budget))
	s.awaitSynced(t, all...)
	s.change(t, s.text(listOf(), "", budget))
	digest := s.awaitHeld(t, 40, "generates nothing")
	testenv.Eventually(t, patience, func() error { // it is counted after it is shown
		if n := counter(t, s.w.addr, fmt.Sprintf("rutter_appset_held_deletions{name=%q,namespace=%q}", s.set, controlNamespace)); n != 40 {
			return fmt.Errorf("the metric of what waits is %v", n)
		}
		return nil
	})
	code, out := s.rutter(t, "approve", "appset/"+s.set)
	if code != cli.ExitBlocked || strings.Count(out, "\n  - ") != 40 || !strings.Contains(out, digest) {
		t.Errorf("rutter approve ends with %d and shows:\n%s", code, out)
	}
	if code, out = s.rutter(t, "approve", "appset/"+s.set, "0123456789abcdef"); code == 0 { // of something else
		t.Errorf("another plan is approved: %s", out)
	}
	s.deleted(t)
	if code, out = s.rutter(t, "approve", "appset/"+s.set, digest); code != 0 {
		t.Errorf("rutter approve ends with %d: %s", code, out)
	}
	s.awaitApps(t)
	s.deleted(t, all...)
}

// TestGeneratorsCascadeDoesNotGuess deletes a set while the member does not say whose
// one of the objects is by now: it may be another's, so it waits, and goes after that.
func TestGeneratorsCascadeDoesNotGuess(t *testing.T) {
	t.Parallel()
	s := start(t).scene(t, "noguess", "one")
	s.create(t, s.text(listOf("one"), "", ""))
	s.awaitSynced(t, "one")
	f := s.ways[0].inject(always, func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, s.ns+"/configmaps/one")
	}, fail(http.StatusInternalServerError))
	deleteSet(t, s.w, s.set)
	f.await(t, 2)
	s.w.awaitCondition(t, s.app("one"), "DeletionError", "ConfigMap/"+s.ns+"/one", "whose it is by now is not known")
	if asked := s.ways[0].paths("DELETE", s.ns+"/configmaps/one"); len(asked) > 0 || len(s.objects(t)) != 1 {
		t.Errorf("it was not known whose it is, and it was deleted: %v", asked)
	}
	s.ways[0].mend()
	s.w.awaitGone(t, s.app("one"))
	if left := s.objects(t); len(left) > 0 {
		t.Errorf("objects are left: %v", left)
	}
}

// TestGeneratorsB5PolicyOutlivesTheSet deletes a set that may create and update.
func TestGeneratorsB5PolicyOutlivesTheSet(t *testing.T) {
	t.Parallel()
	all := numbered(3)
	s := start(t).scene(t, "b5", all...)
	s.create(t, s.text(listOf(all...), "  syncPolicy: {applicationsSync: create-update}\n", ""))
	s.awaitSynced(t, all...)
	before := s.objects(t)
	deleteSet(t, s.w, s.set)
	await(t, s.w.hub.client, &v1alpha1.ApplicationSetList{}, controlNamespace, s.set, func(set *v1alpha1.ApplicationSet) error {
		if set != nil {
			return errors.New("the set is still there")
		}
		return nil
	})
	for _, e := range all {
		app := s.w.awaitApp(t, s.app(e), func(app *v1alpha1.Application) error {
			if app.Annotations[argo.AnnotationDetached] != s.set {
				return fmt.Errorf("it does not say of which set it was: %v", app.Annotations)
			}
			return nil
		})
		if slices.ContainsFunc(app.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "ApplicationSet" }) {
			t.Errorf("%s is still owned, so that it will be collected: %+v", app.Name, app.OwnerReferences)
		}
	}
	s.repo.push(t, appFolders("2", all...)) // and they go on
	s.awaitSynced(t, all...)
	s.deleted(t)
	if !maps.Equal(before, s.objects(t)) {
		t.Errorf("the objects were replaced: %v, now %v", before, s.objects(t))
	}
}

// TestGeneratorsB6AbsentKeys has a template with two keys that one element lacks.
func TestGeneratorsB6AbsentKeys(t *testing.T) {
	t.Parallel()
	s := start(t).scene(t, "b6", "base", "gold")
	s.create(t, strings.NewReplacer("apps/{{.name}}", `apps/{{.dir | default "base"}}`, "labels: {", `labels: {tier: "{{.tier}}", `).
		Replace(s.text("    - list: {elements: [{name: one, tier: a}, {name: two, dir: gold, tier: b}, {name: three}]}", "", "")))
	s.awaitSynced(t, "one", "two")
	s.awaitReason(t, v1alpha1.ApplicationSetConditionErrorOccurred, v1alpha1.ApplicationSetReasonRenderTemplateParamsError,
		`name="three"`, "spec.template.metadata.labels.tier", `there is no parameter "tier"`)
	s.awaitApps(t, "one", "two")
	if got := get(t, s.w.hub, controlNamespace, s.app("one"), &v1alpha1.Application{}).Spec.Source.Path; got != "apps/base" {
		t.Errorf("the path of the element without one is %q", got)
	}
	if _, ok := s.objects(t)["base"]; !ok {
		t.Error("the default was not deployed")
	}
	s.deleted(t)
}

// TestGeneratorsB8Products multiplies three generators, the inner of which read
// what the outer ones gave, and nests them three deep.
func TestGeneratorsB8Products(t *testing.T) {
	t.Parallel()
	s := start(t).scene(t, "b8", "shop", "cart")
	twin := s.set + "-twin"
	for _, name := range []string{s.set + "-one", twin} {
		s.join(t, name, map[string]string{"fleet": s.set})
	}
	product := `    - matrix:
        generators:
        - clusters: {selector: {matchLabels: {fleet: "${SET}"}}, values: {cluster: '{{.name}}'}}
        - git: {repoURL: "${REPO}", revision: main, directories: [{path: apps/*}]}
        - list: {elements: [{tier: 'hot-{{.path.basename}}'}, {tier: cold}]}`
	nested := `    - matrix:
        generators:
        - list: {elements: [{zone: z}]}
        - matrix:
            generators:
            - clusters: {selector: {matchLabels: {fleet: "${SET}"}}}
            - matrix:
                generators:
                - list: {elements: [{kind: 'deep-{{.zone}}'}]}
                - git: {repoURL: "${REPO}", revision: main, directories: [{path: 'apps/{{if eq .kind "deep-z"}}cart{{end}}'}]}`
	name := `{{trimPrefix "` + s.set + `-" .name}}-{{.path.basename}}-{{or (index . "tier") (index . "kind")}}`
	s.create(t, strings.NewReplacer(s.set+"-{{.name}}", s.set+"-"+name, "apps/{{.name}}", "{{.path.path}}", "[missingkey=error]", "[missingkey=default]").
		Replace(s.text(product+"\n"+nested, "", "")))
	want := []string{"one-cart-cold", "one-cart-deep-z", "one-cart-hot-cart", "one-shop-cold", "one-shop-hot-shop",
		"twin-cart-cold", "twin-cart-deep-z", "twin-cart-hot-cart", "twin-shop-cold", "twin-shop-hot-shop"}
	s.awaitApps(t, want...)
	s.awaitWell(t)
	versions := func() string {
		var list v1alpha1.ApplicationList
		if err := s.w.hub.client.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var out []string
		for i := range list.Items {
			if app := &list.Items[i]; app.Labels["set"] == s.set {
				out = append(out, fmt.Sprint(app.Name, "@", app.Generation))
			}
		}
		return strings.Join(out, " ")
	}
	before := versions()
	s.w.hub.patch(t, &v1alpha1.ApplicationSet{}, controlNamespace, s.set, `{"metadata":{"annotations":{"argocd.argoproj.io/application-set-refresh":"true"}}}`)
	s.awaitSet(t, func(set *v1alpha1.ApplicationSet) error {
		if len(set.Annotations) > 0 {
			return errors.New("the refresh is not done")
		}
		return nil
	})
	if got := versions(); got != before {
		t.Errorf("a second evaluation gives others:\n%s\n%s", before, got)
	}
	s.deleted(t)
}

// TestGeneratorsB9Collisions has two generators with one key.
func TestGeneratorsB9Collisions(t *testing.T) {
	t.Parallel()
	s := start(t).scene(t, "b9", "mine", "theirs")
	s.join(t, s.set+"-one", map[string]string{"fleet": s.set, "env": "theirs"})
	text := strings.NewReplacer(s.set+"-{{.name}}", s.set+"-x", "apps/{{.name}}", "apps/{{.metadata.labels.env}}").Replace(s.text(`    - matrix:
        generators:
        - clusters: {selector: {matchLabels: {fleet: "${SET}"}}}
        - list: {elements: [{metadata: {labels: {env: mine}}}]}`, "", ""))
	s.create(t, text)
	s.awaitReason(t, v1alpha1.ApplicationSetConditionErrorOccurred, v1alpha1.ApplicationSetReasonRenderTemplateParamsError,
		`parameter "metadata`, "generators[0].matrix.generators[0].clusters", "generators[0].matrix.generators[1].list", generate.AnnotationCollisions)
	s.awaitApps(t)
	for _, c := range []struct{ precedence, want string }{{"first", "theirs"}, {"last", "mine"}} {
		s.w.hub.patch(t, &v1alpha1.ApplicationSet{}, controlNamespace, s.set, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, generate.AnnotationCollisions, c.precedence))
		s.w.awaitApp(t, s.app("x"), func(app *v1alpha1.Application) error {
			if got := app.Spec.Source.Path; got != "apps/"+c.want {
				return fmt.Errorf("%s: the path is %q", c.precedence, got)
			}
			return nil
		})
		s.awaitSynced(t, "x")
	}
	s.w.hub.patch(t, &v1alpha1.ApplicationSet{}, controlNamespace, s.set, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, generate.AnnotationCollisions))
	s.awaitReason(t, v1alpha1.ApplicationSetConditionErrorOccurred, v1alpha1.ApplicationSetReasonRenderTemplateParamsError, `parameter "metadata`)
	s.awaitApps(t, "x") // an error of the set takes nothing away
	if gone := s.seen.deleted(); len(gone) > 0 {
		t.Errorf("Applications were deleted: %v", gone)
	}
}

// TestGeneratorsB10BadElements has four bad ones among 50.
func TestGeneratorsB10BadElements(t *testing.T) {
	t.Parallel()
	all := numbered(50)
	s := start(t).scene(t, "b10", all...)
	text := func(value string, bad bool) string {
		var out strings.Builder
		out.WriteString("    - list:\n        elements:")
		for i, name := range all {
			cluster, folder := s.member, name
			if bad {
				switch i {
				case 7:
					cluster = "mars"
				case 20, 31:
					name = "e20"
				case 44:
					name = ""
				}
			}
			fmt.Fprintf(&out, "\n        - {name: %q, cluster: %q, folder: %q, value: %q}", name, cluster, folder, value)
		}
		return strings.NewReplacer(`name: "`+s.member+`"`, `name: "{{.cluster}}"`, "apps/{{.name}}", "apps/{{.folder}}", s.set+"-{{.name}}", "{{with .name}}"+s.set+"-{{.}}{{end}}",
			"labels: {", `labels: {value: "{{.value}}", `).Replace(s.text(out.String(), "", ""))
	}
	s.create(t, text("one", false))
	s.awaitSynced(t, all...)
	s.change(t, text("two", true))
	s.awaitReason(t, v1alpha1.ApplicationSetConditionErrorOccurred, v1alpha1.ApplicationSetReasonRenderTemplateParamsError)
	good := map[string]int{}
	testenv.Eventually(t, patience, func() error {
		var list v1alpha1.ApplicationList
		if err := s.w.hub.client.List(t.Context(), &list); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		good = map[string]int{}
		for i := range list.Items {
			app := &list.Items[i]
			bad := slices.Contains([]string{s.app("e07"), s.app("e20"), s.app("e31"), s.app("e44")}, app.Name)
			switch {
			case app.Labels["set"] != s.set:
			case bad && app.Labels["value"] != "one":
				t.Errorf("%s did not keep its last good state", app.Name)
			default:
				good[app.Labels["value"]]++
			}
		}
		if good["one"] != 4 || good["two"] != 46 {
			return fmt.Errorf("old and new ones are %v, wanted 4 and 46", good)
		}
		return nil
	})
	s.awaitSet(t, func(set *v1alpha1.ApplicationSet) error { // each bad one is told of, or counted
		for _, c := range set.Status.Conditions {
			if c.Type == v1alpha1.ApplicationSetConditionErrorOccurred && containsAll(c.Message, []string{"element 20", "element 44"}) {
				return nil
			}
		}
		return fmt.Errorf("the bad elements are not named: %+v", set.Status.Conditions)
	})
	s.deleted(t)
	s.change(t, text("three", false))
	s.awaitWell(t)
	s.awaitSynced(t, all...)
	s.deleted(t)
}

// TestGeneratorsB11Types puts booleans, numbers and lists into fields of theirs.
func TestGeneratorsB11Types(t *testing.T) {
	t.Parallel()
	s := start(t).scene(t, "b11", "one", "two")
	s.create(t, strings.NewReplacer("automated: {prune: true, selfHeal: true}", `automated: {prune: "{{.prune}}", selfHeal: "{{.heal}}"}, syncOptions: "{{.options}}", retry: {limit: "{{.limit}}"}`).
		Replace(strings.Replace(s.text(`    - list:
        elements:
        - {name: one, prune: true, heal: false, limit: 7, options: [CreateNamespace=true, PruneLast=true]}
        - {name: two, prune: "perhaps", heal: false, limit: 7, options: []}
        template:
          metadata: {}
          spec: {syncPolicy: {automated: {prune: true, selfHeal: true}}}`, "", ""), "      syncPolicy: {automated: {prune: true, selfHeal: true}}\n", "", 1)))
	s.awaitSynced(t, "one")
	p := get(t, s.w.hub, controlNamespace, s.app("one"), &v1alpha1.Application{}).Spec.SyncPolicy
	if !p.Automated.Prune || p.Automated.SelfHeal || p.Retry.Limit != 7 || !slices.Equal(p.SyncOptions, []string{"CreateNamespace=true", "PruneLast=true"}) {
		t.Errorf("the sync policy is %+v %+v", p.Automated, p)
	}
	s.awaitReason(t, v1alpha1.ApplicationSetConditionErrorOccurred, v1alpha1.ApplicationSetReasonRenderTemplateParamsError,
		`name="two"`, "syncPolicy.automated.prune", "want a boolean")
	s.awaitApps(t, "one")
	s.deleted(t)
}

// TestGeneratorsX6Hold pauses an Application of a set, as a person does in an
// incident; the set lets that stand until the hold ends by itself.
func TestGeneratorsX6Hold(t *testing.T) {
	t.Parallel()
	all := []string{"one", "two", "three"}
	s := start(t).scene(t, "x6", all...)
	s.create(t, s.text(listOf(all...), "", ""))
	s.awaitSynced(t, all...)
	until := time.Now().Add(10 * time.Second).UTC().Truncate(time.Second)
	if code, out := s.rutter(t, "hold", s.app("one"), "--who", "ada", "--why", "incident 7", "--until", until.Format(time.RFC3339)); code != 0 {
		t.Fatalf("rutter hold ends with %d: %s", code, out)
	}
	if _, out := s.rutter(t, "holds"); !containsAll(out, []string{s.app("one"), "ada", "incident 7"}) && time.Now().Before(until) {
		t.Errorf("the list of holds does not show it:\n%s", out)
	}
	commit := s.repo.push(t, appFolders("2", all...))
	s.w.awaitSynced(t, s.app("two"), commit)
	s.change(t, strings.Replace(s.text(listOf(all...), "", ""), "labels: {", "labels: {again: x, ", 1))
	for _, e := range all { // the set goes on with all else
		s.w.awaitApp(t, s.app(e), func(app *v1alpha1.Application) error {
			if app.Labels["again"] == "" {
				return errors.New("the set has not written it again")
			}
			return nil
		})
	}
	held := get(t, s.w.hub, controlNamespace, s.app("one"), &v1alpha1.Application{})
	if value := get(t, s.w.alpha, s.ns, "one", &corev1.ConfigMap{}).Data["value"]; time.Now().Before(until) && (value != "1" || held.Annotations[generate.AnnotationHold] == "") {
		t.Errorf("the hold was undone: the object holds %q, the annotations are %v", value, held.Annotations)
	}
	s.w.awaitSynced(t, s.app("one"), commit) // it has ended, and nobody did anything
	if now := time.Now(); now.Before(until) {
		t.Errorf("it was synced at %s, before the hold ended at %s", now, until)
	}
	s.w.awaitApp(t, s.app("one"), func(app *v1alpha1.Application) error {
		if app.Annotations[generate.AnnotationHold] != "" {
			return errors.New("the hold that has ended is still there")
		}
		return nil
	})
	s.deleted(t)
}

// TestGeneratorsX6HoldOutlivesTheSet deletes a set of which a person holds one
// Application.
func TestGeneratorsX6HoldOutlivesTheSet(t *testing.T) {
	t.Parallel()
	all := []string{"one", "two"}
	s := start(t).scene(t, "x6set", all...)
	s.create(t, s.text(listOf(all...), "", ""))
	s.awaitSynced(t, all...)
	s.w.editApp(t, s.app("one"), fmt.Sprintf(`{"metadata":{"annotations":{%q:"who=ada; why=incident 7; until=%s"}},"spec":{"syncPolicy":{"automated":null}}}`,
		generate.AnnotationHold, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	s.change(t, strings.Replace(s.text(listOf("two"), "", ""), "labels: {", "labels: {again: x, ", 1)) // it is not even wanted any more
	s.w.awaitApp(t, s.app("two"), func(app *v1alpha1.Application) error {
		if app.Labels["again"] == "" {
			return errors.New("the set has not written it again")
		}
		return nil
	})
	s.deleted(t)
	s.awaitSet(t, func(set *v1alpha1.ApplicationSet) error { // it is known by now
		if len(set.Finalizers) == 0 {
			return errors.New("nothing keeps the set for the hold's sake")
		}
		return nil
	})
	deleteSet(t, s.w, s.set)
	s.w.awaitGone(t, s.app("two"))
	app := s.w.awaitApp(t, s.app("one"), func(app *v1alpha1.Application) error {
		if metav1.GetControllerOf(app) != nil {
			return errors.New("it is still owned")
		}
		return nil
	})
	if app.Spec.SyncPolicy.Automated != nil {
		t.Error("the pause was undone")
	}
	s.deleted(t, "two")
}
