package e2e

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestChangeOne pushes a change of one overlay of six, and then of their base:
// exactly the Applications that read what changed are rendered again.
func TestChangeOne(t *testing.T) {
	w := start(t) // not parallel: the time means something
	ns := w.alpha.namespace(t, "change")
	prefix := unique("change") // in the content too: what was rendered before is not rendered again
	files := tree{"base/kustomization.yaml": "resources: [config.yaml]\n", "base/config.yaml": configMap("settings", prefix)}
	apps := make([]string, 0, 6)
	for i := range 6 {
		files[fmt.Sprintf("overlays/o%d/kustomization.yaml", i)] = overlay(i, prefix+"-old")
		apps = append(apps, fmt.Sprintf("%s-%d", prefix, i))
	}
	r := w.repo(t, "change", files)
	for i, app := range apps {
		w.create(t, application(app, fmt.Sprintf("overlays/o%d", i), ""), vars{"REPO": r.url, "NS": ns})
	}
	for _, app := range apps {
		w.awaitSynced(t, app, "")
	}

	before := w.renders(t, apps...)
	commit := r.commit(t, tree{"overlays/o3/kustomization.yaml": overlay(3, prefix+"-new")})
	begun := time.Now()
	pushed(t, w.addr, r.url)
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "o3-settings", labelled(prefix+"-new"))
	applied := time.Since(begun)
	w.awaitSynced(t, apps[3], commit)
	t.Logf("webhook to applied %s, to Synced %s", applied.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	for _, app := range apps {
		w.awaitSynced(t, app, commit) // the others know the commit, and that it is none of theirs
	}
	want := maps.Clone(before)
	want[apps[3]]++
	if diff := cmp.Diff(want, w.renders(t, apps...)); diff != "" {
		t.Errorf("renders after a change of one overlay (-want +got):\n%s", diff)
	}

	commit = r.push(t, tree{"base/config.yaml": configMap("settings", prefix+"-changed")})
	for i, app := range apps {
		w.awaitSynced(t, app, commit)
		want[app]++
		if got := get(t, w.alpha, ns, fmt.Sprintf("o%d-settings", i), &corev1.ConfigMap{}).Data["value"]; got != prefix+"-changed" {
			t.Errorf("%s has %q", app, got)
		}
	}
	if diff := cmp.Diff(want, w.renders(t, apps...)); diff != "" {
		t.Errorf("renders after a change of the base (-want +got):\n%s", diff)
	}

	commit = r.push(t, tree{"README.md": "nobody reads this\n"})
	for _, app := range apps {
		w.awaitSynced(t, app, commit)
	}
	if diff := cmp.Diff(want, w.renders(t, apps...)); diff != "" {
		t.Errorf("renders after a change that nobody reads (-want +got):\n%s", diff)
	}
}

// TestPoll pushes without a webhook: the commit is found by asking.
func TestPoll(t *testing.T) {
	t.Parallel()
	w := start(t)
	app := unique("poll")
	ns := w.alpha.namespace(t, "poll")
	r := w.repo(t, "poll", tree{"app/c.yaml": configMap("c", "1")})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})
	w.awaitSynced(t, app, "")
	begun := time.Now()
	w.awaitSynced(t, app, r.commit(t, tree{"app/c.yaml": configMap("c", "2")}))
	t.Logf("found by polling after %s, interval %s", time.Since(begun).Round(time.Millisecond), pollEvery)
}

func overlay(i int, version string) string {
	return fmt.Sprintf("resources: [../../base]\nnamePrefix: o%d-\nlabels: [{pairs: {version: %s}}]\n", i, version)
}

func labelled(version string) func(*corev1.ConfigMap) error {
	return func(c *corev1.ConfigMap) error {
		if c == nil || c.Labels["version"] != version {
			return errors.New("it is not " + version)
		}
		return nil
	}
}
