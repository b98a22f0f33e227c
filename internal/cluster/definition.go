package cluster

import (
	"context"
	stdjson "encoding/json"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

const (
	// establishTime is how long a kind may take to be served after its
	// definition was applied.
	establishTime = 10 * time.Second
	// servedPoll is the first pause between looks at whether an established
	// kind is served; they grow.
	servedPoll = 25 * time.Millisecond
)

// definitions are the paths of what makes a server serve more kinds.
const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// applied takes note of an object that changes what is served.
func (d *discovery) applied(gvk rutter.GVK, live *unstructured.Unstructured) {
	switch {
	case gvk.Group == "apiregistration.k8s.io" && gvk.Kind == "APIService":
		d.expire()
	case gvk.Group == "apiextensions.k8s.io" && gvk.Kind == "CustomResourceDefinition":
		if kinds := d.expect(live); len(kinds) > 0 {
			d.m.spawn(func() { d.follow(live, kinds) })
		}
	}
}

// expect notes the kinds of a definition that are not served yet.
func (d *discovery) expect(crd *unstructured.Unstructured) []rutter.GVK {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	d.mu.Lock()
	defer d.mu.Unlock()
	var kinds []rutter.GVK
	for _, v := range versions {
		v, _ := v.(map[string]any)
		name, _ := v["name"].(string)
		gvk := rutter.GVK{Group: group, Version: name, Kind: kind}
		if _, known := d.kinds[gvk]; known || v["served"] != true {
			continue
		}
		d.expected[gvk] = time.Now().Add(establishTime)
		kinds = append(kinds, gvk)
	}
	if len(kinds) > 0 {
		d.announce() // who has been told that the kind is not served asks again
	}
	return kinds
}

// follow watches a definition until it is established and then looks until its
// kinds are served. Whatever comes of it, nobody waits for longer.
func (d *discovery) follow(crd *unstructured.Unstructured, kinds []rutter.GVK) {
	ctx, cancel := context.WithTimeout(d.m.ctx, establishTime)
	defer cancel()
	if established(crd) || d.awaitEstablished(ctx, crd) {
		for wait := servedPoll; ctx.Err() == nil; wait = min(2*wait, time.Second) {
			if d.refresh(ctx) == nil && d.serves(kinds) {
				return
			}
			if pause(ctx, wait) != nil {
				break
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, gvk := range kinds {
		delete(d.expected, gvk)
	}
	d.stale = true
	d.announce()
}

func (d *discovery) serves(kinds []rutter.GVK) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, gvk := range kinds {
		if _, known := d.kinds[gvk]; !known {
			return false
		}
	}
	return true
}

// awaitEstablished reads the definition's events. Where they cannot be read,
// its kinds are looked for all the same. False means that its names are taken.
func (d *discovery) awaitEstablished(ctx context.Context, crd *unstructured.Unstructured) bool {
	q := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + crd.GetName()}, "resourceVersion": {crd.GetResourceVersion()}, "timeoutSeconds": {"10"}}
	d.m.requests.watch.Add(1)
	resp, err := d.m.open(ours(ctx), request{method: http.MethodGet, path: definitionsPath, query: q})
	if err != nil {
		return true
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return true
	}
	dec := stdjson.NewDecoder(resp.Body)
	for {
		var f struct {
			Object map[string]any `json:"object"`
		}
		if dec.Decode(&f) != nil {
			return true
		}
		u := &unstructured.Unstructured{Object: f.Object}
		switch {
		case established(u):
			return true
		case condition(u, "NamesAccepted") == "False":
			return false
		}
	}
}

func established(crd *unstructured.Unstructured) bool { return condition(crd, "Established") == "True" }

// condition is the status of one of u's conditions.
func condition(u *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, _ := c.(map[string]any); c["type"] == kind {
			status, _ := c["status"].(string)
			return status
		}
	}
	return ""
}
