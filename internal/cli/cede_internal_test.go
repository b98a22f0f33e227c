package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/fieldpath"
)

func TestCedeNamesOneObject(t *testing.T) {
	app := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	app.Status.Resources = []v1alpha1.ResourceStatus{
		{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"},
		{Kind: "Service", Namespace: "shop", Name: "web"},
		{Kind: "ConfigMap", Namespace: "shop", Name: "web"},
		{Kind: "ConfigMap", Namespace: "other", Name: "web"},
		{Kind: "Namespace", Name: "shop"},
	}
	for _, c := range []struct{ text, want string }{
		{"Deployment/web", "apps/Deployment/shop/web"},
		{"deployment/web", "apps/Deployment/shop/web"},
		{"apps/Deployment/shop/web", "apps/Deployment/shop/web"},
		{"apps/Deployment/web", "apps/Deployment/shop/web"},
		{"Deployment/shop/web", "apps/Deployment/shop/web"},
		{"ConfigMap/other/web", "ConfigMap/other/web"},
		{"Namespace/shop", "Namespace/shop"},
		{"ConfigMap/web", "names 2 objects of Application shop: ConfigMap/shop/web, ConfigMap/other/web"},
		{"web", `has no object "web"; it has apps/Deployment/shop/web, `},
		{"batch/Deployment/web", "has no object"},
	} {
		got, err := resourceOf(app, c.text)
		if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got.String() != c.want {
			t.Errorf("%s: %s, %v; want %s", c.text, got, err, c.want)
		}
	}
	if _, err := resourceOf(&v1alpha1.Application{}, "ConfigMap/web"); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Error(err)
	}
}

func TestCedeRule(t *testing.T) {
	ref := rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	head := "spec:\n  ignoreDifferences:\n    - group: \"apps\"\n      kind: \"Deployment\"\n      namespace: \"shop\"\n      name: \"web\"\n"
	for _, c := range []struct{ field, want string }{
		{".spec.replicas", head + "      jsonPointers: [\"/spec/replicas\"]\n"},
		{"spec.replicas", head + "      jsonPointers: [\"/spec/replicas\"]\n"},
		{"/spec/replicas", head + "      jsonPointers: [\"/spec/replicas\"]\n"},
		{`.spec.template.spec.containers[name="web"].image`, head + `      jqPathExpressions: [".[\"spec\"][\"template\"][\"spec\"][\"containers\"][] | select(.[\"name\"] == \"web\") | .[\"image\"]"]` + "\n"},
	} {
		rule, err := ruleFor(ref, c.field)
		if got := fieldpath.Text(rule); err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.field, err, got, c.want)
		}
	}
	for _, bad := range []string{"", ".", "spec..x", ".spec[", "and 3 more"} {
		if rule, err := ruleFor(ref, bad); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("%q: %+v, %v", bad, rule, err)
		}
	}
}
