package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// edits is how often a person scales by hand; repairLimit is no goal but what
// would be broken on any machine.
const (
	edits       = 20
	repairLimit = 10 * time.Second
)

// TestSelfHeal edits and deletes live objects by hand; each is put back.
func TestSelfHeal(t *testing.T) {
	w := start(t) // not parallel: the times mean something
	app := unique("heal")
	ns := w.alpha.namespace(t, "heal")
	text := service("web")
	for i := range edits { // each once: a field that is put back again and again is contested
		text += "---\n" + deployment(fmt.Sprint("web-", i), 2)
	}
	r := w.repo(t, "heal", tree{"app/web.yaml": text})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")

	t.Run("scaled by hand", func(t *testing.T) {
		before := counter(t, w.addr, "rutter_objects_healed_total")
		took := make([]time.Duration, 0, edits)
		for i := range edits {
			took = append(took, scaleAndWait(t, w.alpha, ns, fmt.Sprint("web-", i), int32(3+i%5), 2))
		}
		slices.Sort(took)
		t.Logf("edit to repair, %d edits: p50 %s, p99 %s, max %s", edits, took[len(took)/2], took[len(took)*99/100], took[len(took)-1])
		if last := took[len(took)-1]; last > repairLimit {
			t.Errorf("a repair took %s, more than %s", last, repairLimit)
		}
		if n := counter(t, w.addr, "rutter_objects_healed_total") - before; n < edits {
			t.Errorf("%v repairs are counted, wanted at least %d", n, edits)
		}
	})

	t.Run("deleted by hand", func(t *testing.T) {
		old := get(t, w.alpha, ns, "web", &corev1.Service{})
		if err := w.alpha.client.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		await(t, w.alpha.client, &corev1.ServiceList{}, ns, "web", func(s *corev1.Service) error {
			return isNew(s, old.UID)
		})
		t.Logf("a deleted Service is back after %s", time.Since(begun).Round(time.Millisecond))
		w.awaitSynced(t, app, "")
	})
}

func isNew(s *corev1.Service, old types.UID) error {
	if s == nil || s.UID == old {
		return errors.New("it is not back")
	}
	return nil
}

// scaleAndWait scales a Deployment by hand and returns how long it took until
// it was put back.
func scaleAndWait(t *testing.T, c *cluster, ns, name string, replicas, want int32) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	events, err := c.client.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(ns), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	begun := time.Now()
	c.patch(t, &appsv1.Deployment{}, ns, name, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
	edited := false
	for ev := range events.ResultChan() {
		d, ok := ev.Object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		switch *d.Spec.Replicas {
		case replicas:
			edited = true
		case want:
			if edited {
				return time.Since(begun)
			}
		}
	}
	t.Fatalf("not put back within %s", patience)
	return 0
}

// TestEditedAgain edits a field by hand, undoes that by hand, and edits it again:
// the field is that person's by then, and each of its edits is found all the same.
func TestEditedAgain(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("again")
	ns := w.alpha.namespace(t, "again")
	r := w.repo(t, "again", tree{"app/web.yaml": deployment("web", 2)})
	w.create(t, strings.Replace(application(app, "app", ""), "      selfHeal: true\n", "", 1), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	says := func(sync string) {
		t.Helper()
		w.awaitApp(t, app, func(a *v1alpha1.Application) error {
			if a.Status.Sync.Status != sync {
				return fmt.Errorf("is %s, wanted %s", a.Status.Sync.Status, sync)
			}
			return nil
		})
	}
	for _, replicas := range []int{3, 4, 3} {
		w.alpha.patch(t, &appsv1.Deployment{}, ns, "web", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		says("OutOfSync")
		w.alpha.patch(t, &appsv1.Deployment{}, ns, "web", `{"spec":{"replicas":2}}`)
		says("Synced")
	}
}
