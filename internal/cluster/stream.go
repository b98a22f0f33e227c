package cluster

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/rutterhq/rutter"
)

const (
	pageSize = "500"
	// watchMinimum is the least time that one watch connection is asked to last.
	watchMinimum = 5 * time.Minute
	// watchGrace is how much longer it may last before it is given up.
	watchGrace = 30 * time.Second
	// fruitless connections in a row end a watch, so that it lists again.
	fruitless = 3
)

// list delivers every marked object and returns the position to watch from. An
// answer is read object by object and never held as a whole.
func (w *watch) list(ctx context.Context, path string) (string, error) {
	q := url.Values{"labelSelector": {rutter.LabelUnit}, "limit": {pageSize}}
	for {
		w.m.requests.list.Add(1)
		var end page
		err := w.m.call(ctx, request{method: http.MethodGet, path: path, query: q, once: true}, func(resp *http.Response) (err error) {
			end, err = w.page(resp.Body)
			return err
		})
		if err != nil {
			return "", err
		}
		if end.Continue == "" {
			return end.ResourceVersion, nil
		}
		q.Set("continue", end.Continue)
	}
}

// page is the end of one page of a list.
type page struct {
	ResourceVersion string `json:"resourceVersion"`
	Continue        string `json:"continue"`
}

// page delivers one page's objects as they come.
func (w *watch) page(r io.Reader) (end page, err error) {
	dec := stdjson.NewDecoder(r)
	if err := open(dec, '{'); err != nil {
		return end, err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return end, err //nolint:wrapcheck // call says whose answer it was
		}
		switch key {
		case "metadata":
			err = dec.Decode(&end)
		case "items":
			err = w.items(dec)
		default:
			err = dec.Decode(&stdjson.RawMessage{})
		}
		if err != nil {
			return end, err //nolint:wrapcheck // the caller says which watch ended
		}
	}
	if _, err := dec.Token(); err != nil {
		return end, err //nolint:wrapcheck // likewise
	}
	if end.ResourceVersion == "" {
		return end, rutter.Errorf(rutter.CodeInternal, "the list of %s has no position to watch from", w.gvk.Kind)
	}
	return end, nil
}

func (w *watch) items(dec *stdjson.Decoder) error {
	if err := open(dec, '['); err != nil {
		return err
	}
	var raw stdjson.RawMessage
	for dec.More() {
		if err := dec.Decode(&raw); err != nil {
			return err //nolint:wrapcheck // call says whose answer it was
		}
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			w.quarantine(err)
			continue
		}
		w.deliver(object, false)
	}
	_, err := dec.Token()
	return err //nolint:wrapcheck // likewise
}

// open reads the beginning of an object or a list.
func open(dec *stdjson.Decoder, want stdjson.Delim) error {
	if t, err := dec.Token(); err != nil {
		return err //nolint:wrapcheck // call says whose answer it was
	} else if t != want {
		return rutter.Errorf(rutter.CodeInternal, "the list of a kind is not in the form of a list")
	}
	return nil
}

// follow watches from a position, and on from where it got to when a
// connection ends, until the position is too old or nothing comes of it.
func (w *watch) follow(ctx context.Context, path, version string) error {
	failures, delay := 0, w.m.timing.retryMin/4
	for {
		before, started := version, time.Now()
		err := w.stream(ctx, path, &version)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		status, answered := refused(err)
		switch {
		case errors.Is(err, errRelist), answered && status.Code != http.StatusTooManyRequests && status.Code < http.StatusInternalServerError:
			return err
		case err == nil && (version != before || time.Since(started) > w.m.timing.retryMin):
			failures, delay = 0, w.m.timing.retryMin/4
			continue // its time was over
		}
		if w.m.breaker.awaitClosed(ctx) != nil {
			return ctx.Err()
		}
		// A connection that breaks is the network's matter; an answer, or a
		// silence that only this call met, is the kind's.
		if answered || err == nil || errors.Is(err, context.DeadlineExceeded) {
			failures++
		}
		if failures >= fruitless {
			return err
		}
		if pause(ctx, delay/2+rand.N(delay)) != nil { //nolint:gosec // spreads reconnects
			return ctx.Err()
		}
		delay = min(2*delay, 4*w.m.timing.retryMin)
	}
}

// frame is one event of a watch.
type frame struct {
	Type   string         `json:"type"`
	Object map[string]any `json:"object"`
}

// stream reads one watch connection to its end; nil means that its time was over.
func (w *watch) stream(ctx context.Context, path string, version *string) error {
	lasts := watchMinimum + rand.N(watchMinimum) //nolint:gosec // spreads reconnects
	q := url.Values{"watch": {"1"}, "labelSelector": {rutter.LabelUnit}, "allowWatchBookmarks": {"true"},
		"resourceVersion": {*version}, "timeoutSeconds": {strconv.Itoa(int(lasts.Seconds()))}}
	if err := w.m.breaker.check(); err != nil {
		return err
	}
	ctx, done := w.m.breaker.during(ctx)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(w.m.timing.call, func() { cancel(errNoTime) }) // for the first byte
	defer timer.Stop()
	w.m.requests.watch.Add(1)
	resp, err := w.m.open(ctx, request{method: http.MethodGet, path: path, query: q})
	if err != nil {
		return w.m.noAnswer(ctx, err)
	}
	defer resp.Body.Close()
	timer.Reset(lasts + watchGrace)
	if resp.StatusCode != http.StatusOK {
		return w.m.refusal(resp)
	}
	return w.frames(stdjson.NewDecoder(resp.Body), version)
}

// frames takes events as they come. One whose form is wrong is left out; where
// the JSON itself breaks off, so does the connection.
func (w *watch) frames(dec *stdjson.Decoder, version *string) error {
	var raw stdjson.RawMessage
	for {
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			if _, syntax := errors.AsType[*stdjson.SyntaxError](err); !syntax {
				w.m.breaker.failed(err)
			}
			return fmt.Errorf("the watch broke: %w", err)
		}
		var f frame
		if err := json.Unmarshal(raw, &f); err != nil {
			w.quarantine(err)
			continue
		}
		if err := w.take(f, raw, version); err != nil {
			return err
		}
	}
}

func (w *watch) take(f frame, raw []byte, version *string) error {
	switch f.Type {
	case "ERROR":
		var e struct {
			Object metav1.Status `json:"object"`
		}
		if err := stdjson.Unmarshal(raw, &e); err != nil || e.Object.Code == http.StatusGone || e.Object.Reason == metav1.StatusReasonExpired {
			return errRelist
		}
		return &rutter.Error{Code: codeOf(e.Object), Err: &refusal{status: e.Object}}
	case "BOOKMARK":
		u := unstructured.Unstructured{Object: f.Object}
		if rv := u.GetResourceVersion(); rv != "" {
			*version = rv
		}
	case "ADDED", "MODIFIED", "DELETED":
		if rv := w.deliver(f.Object, f.Type == "DELETED"); rv != "" {
			*version = rv
		}
	}
	return nil
}

// deliver hands one object to the sink and returns its position. One that has
// no name is left out; the rest goes on.
func (w *watch) deliver(object map[string]any, deleted bool) (version string) {
	u := &unstructured.Unstructured{Object: object}
	if object == nil || u.GetName() == "" {
		w.quarantine(rutter.Errorf(rutter.CodeInternal, "it has no name"))
		return ""
	}
	// Items of a list carry no kind of their own.
	u.SetAPIVersion(groupVersion(w.gvk.Group, w.gvk.Version))
	u.SetKind(w.gvk.Kind)
	w.order.Lock()
	defer w.order.Unlock()
	w.m.sink.Observed(rutter.LiveEvent{Server: w.m.server, GVK: w.gvk, Object: u, Deleted: deleted, Epoch: w.epoch})
	return u.GetResourceVersion()
}

func (w *watch) quarantine(err error) {
	w.m.log.Warn("an object cannot be read and is left out", "kind", w.gvk.Kind, "group", w.gvk.Group, "err", err)
}
