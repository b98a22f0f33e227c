package cluster

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/rutterhq/rutter"
)

const (
	pageSize     = "500"
	watchMinimum = 5 * time.Minute
	taintRetry   = time.Second
	taintMax     = time.Minute
)

// errRelist says that a watch cannot go on from where it was.
var errRelist = errors.New("the watch's position is too old")

// watch follows the marked objects of one kind.
type watch struct {
	m      *member
	gvk    rutter.GVK
	epoch  int64
	synced atomic.Bool
}

// Watch implements rutter.Cluster.
func (m *member) Watch(gvk rutter.GVK) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.watches[gvk] != nil {
		return
	}
	w := &watch{m: m, gvk: gvk}
	m.watches[gvk] = w
	m.wg.Go(func() { w.run(m.ctx) })
}

// Synced implements rutter.Cluster.
func (m *member) Synced(gvk rutter.GVK) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watches[gvk]
	return w != nil && w.synced.Load()
}

// run lists and watches until ctx ends. What fails is tried again with growing
// pauses; a kind that is not served is tried again when discovery learns it.
func (w *watch) run(ctx context.Context) {
	pauseFor := taintRetry
	for ctx.Err() == nil {
		if w.m.breaker.awaitClosed(ctx) != nil {
			return
		}
		learned := w.m.discovery.wait()
		started := time.Now()
		err := w.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errRelist) || err == nil {
			continue
		}
		if rutter.CodeOf(err) != rutter.CodeUnavailable {
			w.m.sink.Tainted(w.m.server, w.gvk, err)
		}
		if time.Since(started) > taintMax {
			pauseFor = taintRetry
		}
		timer := time.NewTimer(pauseFor + rand.N(pauseFor/4)) //nolint:gosec // spreads retries, not a secret
		select {
		case <-timer.C:
		case <-learned:
		case <-ctx.Done():
		}
		timer.Stop()
		pauseFor = min(2*pauseFor, taintMax)
	}
}

// round is one listing and the watches that follow from it.
func (w *watch) round(ctx context.Context) error {
	mapping, err := w.m.discovery.mapping(ctx, w.gvk)
	if err != nil {
		return err
	}
	w.epoch++
	scopes := w.scopes(mapping)
	versions := make([]string, len(scopes))
	for i, ns := range scopes {
		if versions[i], err = w.list(ctx, pathOf(w.gvk, mapping, ns, "")); err != nil {
			return err
		}
	}
	w.m.sink.Tainted(w.m.server, w.gvk, nil)
	w.synced.Store(true)
	w.m.sink.Listed(w.m.server, w.gvk, w.epoch)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	errs := make(chan error, len(scopes))
	for i, ns := range scopes {
		wg.Go(func() {
			errs <- w.follow(ctx, pathOf(w.gvk, mapping, ns, ""), versions[i])
			cancel() // one scope that must list again makes all list again
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errRelist
}

// scopes are the namespaces to look at, or one empty string for all.
func (w *watch) scopes(mapping rutter.Mapping) []string {
	info := w.m.Info()
	if len(info.Namespaces) == 0 {
		return []string{""}
	}
	if !mapping.Namespaced {
		if info.ClusterResources {
			return []string{""}
		}
		return nil
	}
	return info.Namespaces
}

// list delivers every marked object and returns the position to watch from.
func (w *watch) list(ctx context.Context, path string) (string, error) {
	q := url.Values{"labelSelector": {rutter.LabelUnit}, "limit": {pageSize}}
	for {
		w.m.requests.list.Add(1)
		body, err := w.m.do(ctx, request{method: http.MethodGet, path: path, query: q})
		if err != nil {
			return "", err
		}
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []stdjson.RawMessage `json:"items"`
		}
		if err := stdjson.Unmarshal(body, &page); err != nil {
			return "", rutter.Errorf(rutter.CodeInternal, "decode the list of %s: %w", w.gvk.Kind, err)
		}
		for _, item := range page.Items {
			w.deliver(item, false)
		}
		if page.Metadata.Continue == "" {
			return page.Metadata.ResourceVersion, nil
		}
		q.Set("continue", page.Metadata.Continue)
	}
}

// follow watches from a position, and on from where it got to when the
// connection ends, until the position is too old.
func (w *watch) follow(ctx context.Context, path, version string) error {
	for {
		err := w.stream(ctx, path, &version)
		switch {
		case ctx.Err() != nil:
			return context.Canceled
		case errors.Is(err, errRelist), rutter.CodeOf(err) == rutter.CodeForbidden, rutter.CodeOf(err) == rutter.CodeNotFound:
			return err
		case err != nil:
			if err := w.m.breaker.awaitClosed(ctx); err != nil {
				return context.Canceled
			}
			if err := pause(ctx, 200*time.Millisecond+rand.N(300*time.Millisecond)); err != nil { //nolint:gosec // spreads reconnects
				return context.Canceled
			}
		}
	}
}

// frame is one event of a watch as it comes over the wire.
type frame struct {
	Type   string             `json:"type"`
	Object stdjson.RawMessage `json:"object"`
}

// stream reads one watch connection to its end.
func (w *watch) stream(ctx context.Context, path string, version *string) error {
	seconds := int((watchMinimum + rand.N(watchMinimum)).Seconds()) //nolint:gosec // spreads reconnects
	q := url.Values{"watch": {"1"}, "labelSelector": {rutter.LabelUnit}, "allowWatchBookmarks": {"true"},
		"resourceVersion": {*version}, "timeoutSeconds": {strconv.Itoa(seconds)}}
	w.m.requests.watch.Add(1)
	resp, err := w.m.open(ctx, request{method: http.MethodGet, path: path, query: q})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusGone {
		return errRelist
	}
	if resp.StatusCode != http.StatusOK {
		return statusError(resp.StatusCode, []byte(resp.Status))
	}
	dec := stdjson.NewDecoder(resp.Body)
	for {
		var f frame
		if err := dec.Decode(&f); err != nil {
			return fmt.Errorf("the watch ended: %w", err)
		}
		if err := w.take(f, version); err != nil {
			return err
		}
	}
}

func (w *watch) take(f frame, version *string) error {
	switch f.Type {
	case "ERROR":
		return errRelist
	case "BOOKMARK":
		var b struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
			} `json:"metadata"`
		}
		if err := stdjson.Unmarshal(f.Object, &b); err == nil && b.Metadata.ResourceVersion != "" {
			*version = b.Metadata.ResourceVersion
		}
	default:
		if rv := w.deliver(f.Object, f.Type == "DELETED"); rv != "" {
			*version = rv
		}
	}
	return nil
}

// deliver decodes one object and hands it to the sink. One that cannot be
// decoded is logged and left out; the rest goes on.
func (w *watch) deliver(raw []byte, deleted bool) (version string) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil || u.Object == nil {
		w.m.log.Warn("an object cannot be decoded and is left out", "kind", w.gvk.Kind, "err", err)
		return ""
	}
	// Items of a list carry no kind of their own.
	gv := w.gvk.Version
	if w.gvk.Group != "" {
		gv = w.gvk.Group + "/" + w.gvk.Version
	}
	u.SetAPIVersion(gv)
	u.SetKind(w.gvk.Kind)
	w.m.sink.Observed(rutter.LiveEvent{Server: w.m.server, GVK: w.gvk, Object: u, Deleted: deleted, Epoch: w.epoch})
	return u.GetResourceVersion()
}
