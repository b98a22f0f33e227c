package daemon

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// quiet is how long all must have been Synced and Healthy before the demo says
// that it is done: sets may be about to make more Applications.
const quiet = 1500 * time.Millisecond

// pushed tells the controller of a push, as a forge's webhook does.
func (d *demo) pushed(repo string) {
	addr := <-d.webhook
	d.webhook <- addr
	url := d.git.URL() + "/" + strings.TrimPrefix(repo, "/")
	body, err := json.Marshal(map[string]any{"ref": "refs/heads/main", "repository": map[string]any{"clone_url": url, "default_branch": "main"}})
	if err != nil {
		return
	}
	mac := hmac.New(sha256.New, []byte(d.secret))
	mac.Write(body)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) //nolint:forbidigo // called by the Git server, which has no context for it
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/api/webhook", bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("X-Github-Event", "push")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.cfg.Logger.Warn("the webhook was not delivered", "err", err)
		return
	}
	resp.Body.Close()
}

// follow shows the Applications as they change, until all is well (when that
// is asked for) or ctx ends.
func (d *demo) follow(ctx context.Context, started time.Time) error {
	var list v1alpha1.ApplicationList
	w, err := d.client.Watch(ctx, &list, client.InNamespace("argocd"))
	if err != nil {
		return fmt.Errorf("watch Applications: %w", err)
	}
	defer w.Stop()
	apps := map[string]v1alpha1.Application{}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	told := false
	for {
		select {
		case ev, ok := <-w.ResultChan():
			if !ok {
				return d.ended(ctx)
			}
			note(apps, ev)
			d.cfg.Show(sortedApps(apps), d.servers, started)
			timer.Reset(quiet)
		case <-timer.C:
			if !allWell(apps) || told {
				continue
			}
			if d.cfg.ExitWhenSynced {
				return d.cfg.Final(sortedApps(apps), d.servers)
			}
			d.tell(time.Since(started) - quiet)
			told = true
		case <-ctx.Done():
			return d.ended(ctx)
		}
	}
}

// ended says why the demo ends: a person's Ctrl-C is no error, a time-out is.
func (d *demo) ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && strings.Contains(cause.Error(), "within") {
		return cause
	}
	return nil
}

func note(apps map[string]v1alpha1.Application, ev watch.Event) {
	app, ok := ev.Object.(*v1alpha1.Application)
	switch {
	case !ok:
	case ev.Type == watch.Deleted:
		delete(apps, app.Name)
	default:
		apps[app.Name] = *app
	}
}

func sortedApps(apps map[string]v1alpha1.Application) []v1alpha1.Application {
	out := make([]v1alpha1.Application, 0, len(apps))
	for _, a := range apps {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b v1alpha1.Application) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func allWell(apps map[string]v1alpha1.Application) bool {
	for _, a := range apps {
		if a.Status.Sync.Status != string(rutter.Synced) || a.Status.Health.Status != string(rutter.Healthy) {
			return false
		}
	}
	return len(apps) > 1
}

// tell says what to try.
func (d *demo) tell(took time.Duration) {
	say := d.cfg.Say
	say("\nAll Synced and Healthy after %s. Try:\n", took.Round(100*time.Millisecond))
	say("  export KUBECONFIG=%s      # the control plane; then: bin/rutter app list", d.hub.Kubeconfig)
	say("  bin/rutter-localcluster kubectl --kubeconfig %s -n storefront scale deployment storefront --replicas=9", d.members["dev"].Kubeconfig)
	say("                                 # an edit by hand: it is put back at once")
	say("  git clone %s", d.cloneURL())
	say("                                 # change something, commit, push: it rolls out by the webhook")
	for _, m := range members {
		say("  %-11s kubeconfig: %s", m.name, d.members[m.name].Kubeconfig)
	}
	say("\nCtrl-C ends everything.")
}
