package model

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter"
)

const server = "https://member"

var (
	configMaps  = rutter.GVK{Version: "v1", Kind: "ConfigMap"}
	deployments = rutter.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}
	jobs        = rutter.GVK{Group: "batch", Version: "v1", Kind: "Job"}
	boats       = rutter.GVK{Group: "example.com", Version: "v1", Kind: "Boat"}
)

// cluster is an API server with the controllers of Deployments and Jobs, in memory.
type cluster struct {
	rnd *rand.Rand
	spy *monitor

	mu      sync.Mutex
	objects map[rutter.Ref]*unstructured.Unstructured
	rv      int64
	uid     int64
	sink    rutter.LiveSink
	watched map[rutter.GVK]bool
	synced  map[rutter.GVK]bool
	ctx     context.Context
	line    chan func() // what the controller is told, in order
	served  map[rutter.GVK]bool
	down    bool
	epoch   int64
	// failing says which Jobs fail, and stuck which Deployments never become ready.
	failing, stuck bool
	rollout        time.Duration
}

func newCluster(seed uint64, spy *monitor) *cluster {
	return &cluster{rnd: rand.New(rand.NewPCG(seed, 7)), spy: spy, objects: map[rutter.Ref]*unstructured.Unstructured{},
		served: map[rutter.GVK]bool{configMaps: true, deployments: true, jobs: true}, rollout: 3 * time.Second}
}

// attach is a controller that starts: it watches anew.
func (c *cluster) attach(ctx context.Context, sink rutter.LiveSink) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.sink, c.watched, c.synced = ctx, sink, map[rutter.GVK]bool{}, map[rutter.GVK]bool{}
	line := make(chan func(), 10000)
	c.line = line
	go func() {
		for {
			select {
			case f := <-line:
				f()
			case <-ctx.Done():
				return
			}
		}
	}()
}

// deliver hands something to the controller after a while, in order; c.mu is held.
func (c *cluster) deliver(f func()) {
	due, ctx := time.Now().Add(2*time.Millisecond), c.ctx
	c.line <- func() {
		time.Sleep(time.Until(due))
		if ctx.Err() == nil {
			f()
		}
	}
}

func (c *cluster) latency() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(1+c.rnd.IntN(20)) * time.Millisecond
}

// call is the way to the server and its refusals.
func (c *cluster) call(ctx context.Context, gvk rutter.GVK) error {
	select {
	case <-time.After(c.latency()):
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down:
		return rutter.Errorf(rutter.CodeUnavailable, "the cluster does not answer")
	case !c.served[gvk]:
		return rutter.Errorf(rutter.CodeNotFound, "kind %s is not served", gvk.Kind)
	}
	return nil
}

func (c *cluster) Info() rutter.ClusterInfo {
	return rutter.ClusterInfo{Name: "member", Server: server}
}

func (c *cluster) Mapping(_ context.Context, gvk rutter.GVK) (rutter.Mapping, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.served[gvk] {
		return rutter.Mapping{}, rutter.Errorf(rutter.CodeNotFound, "kind %s is not served", gvk.Kind)
	}
	return rutter.Mapping{Resource: gvk.Kind, Namespaced: true}, nil
}

func (c *cluster) Version(context.Context) (string, []string, error) { return "v1.37.2", nil, nil }
func (c *cluster) As(string) rutter.Cluster                          { return c }
func (c *cluster) Names(context.Context, string, func(rutter.GVK) bool, func(rutter.Named)) error {
	return nil
}
func (c *cluster) LookupAs(string) rutter.Lookup { return nil }

func (c *cluster) Mark(context.Context, rutter.GVK, string, string, rutter.Mark) (*unstructured.Unstructured, error) {
	return nil, rutter.Errorf(rutter.CodeUnsupported, "nothing is handed over here")
}

func (c *cluster) Unmark(context.Context, rutter.GVK, string, string, rutter.Mark) error {
	return rutter.Errorf(rutter.CodeUnsupported, "nothing is let go of here")
}

func (c *cluster) Get(ctx context.Context, gvk rutter.GVK, namespace, name string) (*unstructured.Unstructured, error) {
	if err := c.call(ctx, gvk); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	obj := c.objects[rutter.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}]
	if obj == nil {
		return nil, rutter.Errorf(rutter.CodeNotFound, "%s %s is not there", gvk.Kind, name)
	}
	return obj.DeepCopy(), nil
}

// Apply sends the declared fields; what the object says besides stays.
func (c *cluster) Apply(ctx context.Context, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	gvk := rutter.GVKOf(obj)
	if err := c.call(ctx, gvk); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ref := rutter.RefOf(obj)
	if obj.GetAnnotations()["bad"] != "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s is invalid", ref)
	}
	next, old := obj.DeepCopy(), c.objects[ref]
	if old != nil {
		if text(next, "spec", "run") == "" { // a contested field that rests: who wrote it last keeps it
			_ = unstructured.SetNestedField(next.Object, text(old, "spec", "run"), "spec", "run")
		}
		if gvk == jobs && text(old, "spec", "run") != text(next, "spec", "run") {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s: field is immutable", ref)
		}
		next.SetUID(old.GetUID())
		next.SetGeneration(old.GetGeneration())
		next.SetDeletionTimestamp(old.GetDeletionTimestamp())
		if text(old, "spec", "run") != text(next, "spec", "run") {
			next.SetGeneration(old.GetGeneration() + 1)
		}
		if status, ok := old.Object["status"]; ok {
			next.Object["status"] = status
		}
	} else {
		c.uid++
		next.SetUID(types.UID(strconv.FormatInt(c.uid, 10)))
		next.SetGeneration(1)
	}
	if opts.DryRun {
		return next, nil
	}
	c.spy.applied(c.objects, old, next)
	c.store(ref, next)
	c.control(ref, next)
	return next.DeepCopy(), nil
}

// store keeps an object and tells the watch; c.mu is held.
func (c *cluster) store(ref rutter.Ref, obj *unstructured.Unstructured) {
	c.rv++
	obj.SetResourceVersion(strconv.FormatInt(c.rv, 10))
	c.objects[ref] = obj
	c.tell(obj, false)
}

// tell sends an event after a while, in the order of the changes; c.mu is held.
func (c *cluster) tell(obj *unstructured.Unstructured, deleted bool) {
	gvk := rutter.GVKOf(obj)
	if c.sink == nil || !c.watched[gvk] || c.down {
		return
	}
	sink, ev := c.sink, rutter.LiveEvent{Server: server, GVK: gvk, Object: obj.DeepCopy(), Deleted: deleted, Epoch: c.epoch}
	c.deliver(func() { sink.Observed(ev) })
}

// control is what the cluster's own controllers make of an object; c.mu is held.
func (c *cluster) control(ref rutter.Ref, obj *unstructured.Unstructured) {
	switch uid, generation := obj.GetUID(), obj.GetGeneration(); rutter.GVKOf(obj) {
	case deployments:
		if c.stuck {
			return
		}
		time.AfterFunc(c.rollout, func() {
			c.update(ref, uid, func(o *unstructured.Unstructured) bool {
				if o.GetGeneration() != generation {
					return false
				}
				o.Object["status"] = map[string]any{"observedGeneration": generation, "replicas": int64(1), "updatedReplicas": int64(1), "availableReplicas": int64(1), "readyReplicas": int64(1)}
				return true
			})
		})
	case jobs:
		fails := c.failing
		time.AfterFunc(c.rollout, func() {
			c.update(ref, uid, func(o *unstructured.Unstructured) bool {
				if _, over := o.Object["status"]; over {
					return false
				}
				kind := "Complete"
				if fails {
					kind = "Failed"
				}
				o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": kind, "status": "True"}}}
				return true
			})
		})
	}
}

func (c *cluster) update(ref rutter.Ref, uid types.UID, change func(*unstructured.Unstructured) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.objects[ref]; old != nil && old.GetUID() == uid {
		if next := old.DeepCopy(); change(next) {
			c.spy.controlled(next)
			c.store(ref, next)
		}
	}
}

func (c *cluster) Delete(ctx context.Context, gvk rutter.GVK, namespace, name string, opts rutter.DeleteOptions) error {
	if err := c.call(ctx, gvk); err != nil {
		if rutter.CodeOf(err) == rutter.CodeNotFound {
			return nil
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ref := rutter.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}
	old := c.objects[ref]
	if old == nil || opts.UID != "" && string(old.GetUID()) != opts.UID {
		return nil
	}
	c.spy.deleted(old)
	c.remove(ref, old)
	return nil
}

// remove takes an object away, or marks it while a finalizer keeps it; c.mu is held.
func (c *cluster) remove(ref rutter.Ref, old *unstructured.Unstructured) {
	if len(old.GetFinalizers()) > 0 {
		next := old.DeepCopy()
		now := metav1.Now()
		next.SetDeletionTimestamp(&now)
		c.store(ref, next)
		return
	}
	c.rv++
	delete(c.objects, ref)
	last := old.DeepCopy()
	last.SetResourceVersion(strconv.FormatInt(c.rv, 10))
	c.tell(last, true)
}

func (c *cluster) Unfinalize(ctx context.Context, gvk rutter.GVK, namespace, name, uid string, finalizers ...string) error {
	if err := c.call(ctx, gvk); err != nil {
		if rutter.CodeOf(err) == rutter.CodeNotFound {
			return nil
		}
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ref := rutter.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}
	old := c.objects[ref]
	if old == nil || string(old.GetUID()) != uid {
		return nil
	}
	next := old.DeepCopy()
	next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(f string) bool { return slices.Contains(finalizers, f) }))
	if len(next.GetFinalizers()) == 0 {
		next.SetFinalizers(nil)
	}
	c.store(ref, next)
	if next.GetDeletionTimestamp() != nil {
		c.remove(ref, next)
	}
	return nil
}

// Watch lists the kind and tells of it from then on.
func (c *cluster) Watch(gvk rutter.GVK) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[gvk] {
		return
	}
	c.watched[gvk] = true
	c.list(gvk)
}

// list delivers what there is of a kind; c.mu is held.
func (c *cluster) list(gvk rutter.GVK) {
	ctx, sink := c.ctx, c.sink
	if c.down {
		return // it is listed when the cluster answers again
	}
	if !c.served[gvk] {
		c.deliver(func() {
			sink.Tainted(server, gvk, rutter.Errorf(rutter.CodeNotFound, "kind %s is not served", gvk.Kind))
		})
		return
	}
	c.epoch++
	epoch := c.epoch
	var all []*unstructured.Unstructured
	for _, o := range c.objects {
		if rutter.GVKOf(o) == gvk && o.GetLabels()[rutter.LabelUnit] != "" {
			all = append(all, o.DeepCopy())
		}
	}
	c.deliver(func() {
		sink.Tainted(server, gvk, nil)
		for _, o := range all {
			sink.Observed(rutter.LiveEvent{Server: server, GVK: gvk, Object: o, Epoch: epoch})
		}
		c.mu.Lock()
		c.synced[gvk] = ctx == c.ctx || c.synced[gvk]
		c.mu.Unlock()
		sink.Listed(server, gvk, epoch)
	})
}

func (c *cluster) Synced(gvk rutter.GVK) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.synced[gvk]
}

// serve has a kind served from now on.
func (c *cluster) serve(gvk rutter.GVK) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.served[gvk] {
		return
	}
	c.served[gvk] = true
	if c.watched[gvk] {
		c.list(gvk)
	}
}

// outage cuts the cluster off, or ends that: then everything is listed anew.
func (c *cluster) outage(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down == down {
		return
	}
	c.down = down
	sink := c.sink
	var err error
	if down {
		err = rutter.Errorf(rutter.CodeUnavailable, "the cluster does not answer")
	}
	c.deliver(func() { sink.Reachable(server, err) })
	if !down {
		for _, gvk := range slices.SortedFunc(maps.Keys(c.watched), func(a, b rutter.GVK) int { return slices.Compare([]string{a.Kind}, []string{b.Kind}) }) {
			c.list(gvk)
		}
	}
}

// edit changes an object by hand, or deletes it.
func (c *cluster) edit(pick int, remove bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var refs []rutter.Ref
	for ref, o := range c.objects {
		if o.GetAnnotations()["argocd.argoproj.io/hook"] == "" {
			refs = append(refs, ref)
		}
	}
	if len(refs) == 0 {
		return
	}
	slices.SortFunc(refs, rutter.Ref.Compare)
	ref := refs[pick%len(refs)]
	if remove {
		c.spy.byHand[ref] = true
		c.remove(ref, c.objects[ref])
		return
	}
	next := c.objects[ref].DeepCopy()
	_ = unstructured.SetNestedField(next.Object, "by hand", "spec", "run")
	next.SetGeneration(next.GetGeneration() + 1)
	c.store(ref, next)
	c.control(ref, next)
}

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

// Lookup and List make the cluster a fleet of one.
func (c *cluster) Lookup(rutter.Target) (rutter.Cluster, error) { return c, nil }

// List implements rutter.Clusters.
func (c *cluster) List() []rutter.ClusterInfo { return []rutter.ClusterInfo{c.Info()} }

// trouble sets what goes wrong; Deployments that were stuck go on.
func (c *cluster) trouble(failing, stuck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failing, c.stuck = failing, stuck
	for ref, o := range c.objects {
		if rutter.GVKOf(o) == deployments && !stuck {
			c.control(ref, o)
		}
	}
}
