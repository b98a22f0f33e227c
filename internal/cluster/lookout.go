package cluster

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/rutterhq/rutter"
)

// metadataOnly asks for events without what the objects say.
const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// lookOut has the definitions of the cluster watched while a kind is wanted that it
// does not serve: an operator may define it at any time, and then nobody waits for
// the next look (scenario B33).
func (d *discovery) lookOut(gvk rutter.GVK) {
	d.mu.Lock()
	d.missing[gvk] = true
	begin := !d.looking
	d.looking = true
	d.mu.Unlock()
	if begin {
		d.m.spawn(func() { d.followDefinitions(d.m.ctx) })
	}
}

// followDefinitions ends when no kind is missing any more.
func (d *discovery) followDefinitions(ctx context.Context) {
	for delay := d.m.timing.retryMin; d.stillMissing(); delay = min(2*delay, d.m.timing.retryMax) {
		if d.m.breaker.awaitClosed(ctx) != nil {
			return
		}
		if d.readDefinitions(ctx) {
			delay = d.m.timing.retryMin
		}
		if d.stillMissing() && pause(ctx, delay) != nil {
			return
		}
	}
}

func (d *discovery) stillMissing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looking = len(d.missing) > 0
	return d.looking
}

// readDefinitions reads the events of one connection; true when there was one. The
// first are those of all definitions, so that none is missed.
func (d *discovery) readDefinitions(ctx context.Context) bool {
	d.m.requests.watch.Add(1)
	resp, err := d.m.open(ours(ctx), request{method: http.MethodGet, path: definitionsPath, accept: metadataOnly,
		query: url.Values{"watch": {"1"}, "timeoutSeconds": {"300"}}})
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false // they may not be read here: the pauses of the watches have to do
	}
	dec := stdjson.NewDecoder(resp.Body)
	for {
		var event struct {
			Type   string `json:"type"`
			Object struct {
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			} `json:"object"`
		}
		if dec.Decode(&event) != nil || event.Type == "ERROR" {
			return true
		}
		if event.Type != "DELETED" && d.wants(event.Object.Metadata.Name) {
			d.defined(ctx, event.Object.Metadata.Name)
		}
		if !d.stillMissing() {
			return true
		}
	}
}

// wants reports whether a definition is of the group of a missing kind that is not
// waited for yet.
func (d *discovery) wants(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for gvk := range d.missing {
		if _, expected := d.expected[gvk]; !expected && gvk.Group != "" && strings.HasSuffix(name, "."+gvk.Group) {
			return true
		}
	}
	return false
}

// defined reads a definition and sees to it that its kinds are found when they are served.
func (d *discovery) defined(ctx context.Context, name string) {
	d.m.requests.get.Add(1)
	body, err := d.m.do(ours(ctx), request{method: http.MethodGet, path: definitionsPath + "/" + name})
	crd := &unstructured.Unstructured{}
	if err != nil || json.Unmarshal(body, &crd.Object) != nil || crd.Object == nil {
		return // the next event, or the next look, tells
	}
	if kinds := d.expect(crd); len(kinds) > 0 {
		d.m.spawn(func() { d.follow(crd, kinds) }) //nolint:contextcheck // it goes on after the event
	}
}
