package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// TestHandOverKilled kills the controller at random moments while a set gives
// its Applications other names, back and forth: whenever that is, the end is the
// same, and no workload is deleted.
func TestHandOverKilled(t *testing.T) {
	w := start(t)
	if err := daemon.Install(t.Context(), w.alpha.rest, controlNamespace); err != nil {
		t.Fatal(err)
	}
	const rounds = 6
	control := &world{hub: w.alpha, alpha: w.alpha}
	f := control.fleet(t, "killed", 4)
	id := unique("k") + "-"
	v := vars{"REPO": w.repo(t, "killed", tree{"app/web.yaml": workload["app/web.yaml"]}).url}
	set := func(round int) string {
		text := listSet(id+"set", fmt.Sprintf("%sn%d-{{.ns}}", id, round%2), automated, f.namespaces...)
		return strings.Replace(text, "name: alpha", "server: https://kubernetes.default.svc", 1)
	}
	name := func(round int) func(string) string {
		return func(ns string) string { return fmt.Sprintf("%sn%d-%s", id, round%2, ns) }
	}
	slow, err := local.NewProxy(t.Context(), w.alpha.rest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	data := t.TempDir()
	p := startProcess(t, w.alpha.rest, data)
	control.create(t, set(0), v)
	f.look(t, control, name(0))

	r := rand.New(rand.NewPCG(16, 2026))
	slow.SetDelay(20 * time.Millisecond)
	for round := 1; round <= rounds; round++ {
		p.kill(t)
		p = startProcess(t, slow.RESTConfig(w.alpha.rest), data)
		control.replace(t, set(round), v)
		pause := time.Duration(r.IntN(3000)) * time.Millisecond
		time.Sleep(pause)
		var apps v1alpha1.ApplicationList
		if err := w.alpha.client.List(t.Context(), &apps, client.InNamespace(controlNamespace)); err != nil {
			t.Fatal(err)
		}
		t.Logf("round %d: killed %s after the change, with %d Applications", round, pause, len(apps.Items))
	}
	p.kill(t)
	p = startProcess(t, w.alpha.rest, data)
	f.moved(t, control, name(rounds+1), name(rounds))
	if n := counter(t, p.addr, "rutter_objects_removed_total"); n != 0 {
		t.Errorf("%v objects were removed", n)
	}
	p.kill(t)
}
