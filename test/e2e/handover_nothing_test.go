package e2e

import (
	"testing"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// TestNothingToHandOver: an Application that has no objects goes at once, although
// another of the same source, that cannot be rendered, may declare any.
func TestNothingToHandOver(t *testing.T) {
	t.Parallel()
	w := start(t)
	ns, one, two := w.alpha.namespace(t, "nothing"), unique("nothing"), unique("nothing")
	r := w.repo(t, "nothing", tree{"README.md": "no application\n"})
	v := vars{"REPO": r.url, "NS": ns}
	w.create(t, application(one, "absent", ""), v)
	w.create(t, application(two, "absent", ""), v)
	w.awaitCondition(t, one, "ComparisonError", "absent")
	w.awaitCondition(t, two, "ComparisonError", "absent")
	w.editApp(t, one, `{"metadata":{"finalizers":["resources-finalizer.argocd.argoproj.io"]}}`)
	app := &v1alpha1.Application{}
	app.Namespace, app.Name = controlNamespace, one
	if err := w.hub.client.Delete(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, one)
}
