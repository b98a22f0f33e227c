package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/internal/daemon"
	"github.com/rutterhq/rutter/internal/local"
)

// syncKills is how often TestSyncKilled kills the controller; RUTTER_SYNC_KILLS
// changes it.
const syncKills = 4

// runsOfHooks counts the Jobs that were made, by the identity of their run.
type runsOfHooks struct {
	mu   sync.Mutex
	runs map[string]map[string]bool // identity → UIDs
	gone map[string]bool            // ConfigMaps that were deleted
}

func countHooks(t *testing.T, c *cluster, ns string) *runsOfHooks {
	t.Helper()
	r := &runsOfHooks{runs: map[string]map[string]bool{}, gone: map[string]bool{}}
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.ConfigMapList{}} {
		w, err := c.client.Watch(t.Context(), list, client.InNamespace(ns))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		go func() {
			for ev := range w.ResultChan() {
				r.saw(ev)
			}
		}()
	}
	return r
}

func (r *runsOfHooks) saw(ev watch.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := ev.Object.(type) {
	case *batchv1.Job:
		// The start of the operation, the attempt and the manifest at its commit.
		if id := o.Annotations["rutter.dev/hook-run"]; ev.Type == watch.Added && id != "" {
			parts := strings.SplitN(id, ".", 3)
			key := o.Name + " " + parts[2]
			if r.runs[key] == nil {
				r.runs[key] = map[string]bool{}
			}
			r.runs[key][string(o.UID)] = true
		}
	case *corev1.ConfigMap:
		if ev.Type == watch.Deleted {
			r.gone[o.Name] = true
		}
	}
}

// TestSyncKilled kills the controller at random moments of syncs with hooks and
// waves, and cuts the way to its API server in others: the end is always what Git
// has, no hook ran twice for one commit, and nothing is pruned that Git has.
// RUTTER_E2E_SEED repeats a run.
func TestSyncKilled(t *testing.T) {
	w := start(t)
	if err := daemon.Install(t.Context(), w.alpha.rest, controlNamespace); err != nil {
		t.Fatal(err)
	}
	kills, seed := syncKills, uint64(time.Now().UnixNano())
	for name, set := range map[string]func(uint64){"RUTTER_SYNC_KILLS": func(n uint64) { kills = int(n) }, "RUTTER_E2E_SEED": func(n uint64) { seed = n }} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			set(n)
		}
	}
	t.Logf("RUTTER_E2E_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	app := unique("killed")
	ns := w.alpha.namespace(t, "killed")
	r := w.repo(t, "killed", killedAt(0))
	control := &world{hub: w.alpha, alpha: w.alpha}
	proxy, err := local.NewProxy(t.Context(), w.alpha.rest)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	hooks := countHooks(t, w.alpha, ns)
	data := t.TempDir()
	p := startProcess(t, proxy.RESTConfig(w.alpha.rest), data)
	control.create(t, inCluster(app, "app"), vars{"REPO": r.url, "NS": ns})
	control.awaitSynced(t, app, "")
	for n := 1; n <= kills; n++ {
		commit := r.push(t, killedAt(n))
		pushed(t, p.addr, r.url)
		time.Sleep(time.Duration(rnd.IntN(2500)) * time.Millisecond)
		if rnd.IntN(4) == 0 {
			proxy.Cut()
			time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			proxy.Restore()
		} else {
			p.kill(t)
			p = startProcess(t, proxy.RESTConfig(w.alpha.rest), data)
		}
		control.awaitSynced(t, app, commit)
		for _, name := range []string{"first", "second", fmt.Sprintf("only-%d", n)} {
			if err := holds(strconv.Itoa(n))(get(t, w.alpha, ns, name, &corev1.ConfigMap{})); err != nil {
				t.Fatalf("after kill %d: %s: %v", n, name, err)
			}
		}
		await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, fmt.Sprintf("only-%d", n-1), func(cm *corev1.ConfigMap) error {
			if cm != nil {
				return errors.New("is not pruned")
			}
			return nil
		})
	}
	hooks.mu.Lock()
	defer hooks.mu.Unlock()
	for id, uids := range hooks.runs {
		if len(uids) > 1 {
			t.Errorf("hook %s ran %d times", id, len(uids))
		}
	}
	if hooks.gone["first"] || hooks.gone["second"] {
		t.Error("an object was deleted that Git always had")
	}
	t.Logf("%d kills and cuts, %d runs of hooks", kills, len(hooks.runs))
	p.kill(t)
}

// killedAt is the state of a commit: hooks, three waves, one object that comes and one
// that goes.
func killedAt(n int) tree {
	value := strconv.Itoa(n)
	files := tree{
		"app/before.yaml": annotated(job("before", "Never"), "hook", "PreSync"),
		"app/after.yaml":  annotated(job("after", "Never"), "hook", "PostSync"),
		"app/first.yaml":  annotated(configMap("first", value), "sync-wave", "-1"),
		"app/web.yaml":    strings.Replace(deployment("web", 1), "web:1.0.0", "web:1.0."+value, 1),
		"app/second.yaml": annotated(configMap("second", value), "sync-wave", "2"),
		"app/only.yaml":   configMap("only-"+value, value),
	}
	return files
}
