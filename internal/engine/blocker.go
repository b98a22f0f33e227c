package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// blockers are the objects of a step that have been going for a while, each with
// what keeps it as far as that can be known, the first of them in detail. soonest is when
// another one will have.
func (e *Engine) blockers(ctx context.Context, u *state, c rutter.Cluster, del *deletion, step []plan.Doomed) (found []rutter.Blocker, soonest time.Duration) {
	now := e.now()
	for _, x := range step {
		since, going := u.goingSince(x.Ref)
		if !going {
			continue
		}
		if left := lookIn - now.Sub(since); left > 0 {
			if soonest == 0 || left < soonest {
				soonest = left
			}
			continue
		}
		b := rutter.Blocker{Ref: x.Ref, UID: x.UID, Since: since, Reason: "not looked into"}
		if len(found) < mostBlockers {
			b.Reason = e.blocked(ctx, c, del, x)
		}
		found = append(found, b)
	}
	return found, soonest
}

// blocked says why an object that is being deleted is still there.
func (e *Engine) blocked(ctx context.Context, c rutter.Cluster, del *deletion, x plan.Doomed) string {
	live, err := c.Get(ctx, x.GVK, x.Ref.Namespace, x.Ref.Name)
	switch {
	case rutter.CodeOf(err) == rutter.CodeNotFound:
		return "it goes just now"
	case err != nil:
		return fmt.Sprintf("it cannot be read: %v", err)
	}
	var words []string
	if x.Ref.Kind == "Namespace" && x.Ref.Group == "" {
		words = remains(live)
	}
	for _, f := range live.GetFinalizers() {
		words = append(words, e.finalizerWords(ctx, c, del, live, f))
	}
	if x.Ref.Group == "argoproj.io" && x.Ref.Kind == "Application" {
		words = append(words, childWords(live)...)
	}
	if w := unavailable(ctx, c, x.GVK); w != "" {
		words = append(words, w)
	}
	if len(words) == 0 {
		return "it has no finalizer and ends by itself"
	}
	return strings.Join(words, "; ")
}

// remains are what a namespace says is left in it.
func remains(ns *unstructured.Unstructured) []string {
	var words []string
	conditions, _, _ := unstructured.NestedSlice(ns.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if !ok || m["status"] != "True" {
			continue
		}
		if text, ok := m["message"].(string); ok && strings.HasPrefix(fmt.Sprint(m["type"]), "Namespace") {
			words = append(words, text)
		}
	}
	return words
}

// childWords are what an Application that is going says of itself.
func childWords(app *unstructured.Unstructured) []string {
	var words []string
	conditions, _, _ := unstructured.NestedSlice(app.Object, "status", "conditions")
	for _, c := range conditions {
		m, ok := c.(map[string]any)
		if ok && (m["type"] == rutter.CondDeletion || m["type"] == rutter.CondDeletionBlocked) {
			words = append(words, fmt.Sprint(m["message"]))
		}
	}
	return words
}

// wellKnown are finalizers of Kubernetes and of the Argo CD dialect, and what each waits for.
func wellKnown(finalizer string) string {
	switch {
	case finalizer == "foregroundDeletion":
		return "objects that it owns go first"
	case finalizer == "orphan":
		return "the garbage collector frees what it owns"
	case finalizer == "kubernetes.io/pvc-protection":
		return "a Pod uses it"
	case finalizer == "kubernetes.io/pv-protection":
		return "a PersistentVolumeClaim is bound to it"
	case finalizer == "service.kubernetes.io/load-balancer-cleanup":
		return "the cloud controller takes the load balancer down first"
	case strings.HasPrefix(finalizer, "resources-finalizer.argocd.argoproj.io"):
		return "what it manages goes first"
	case strings.Contains(finalizer, "-delete-finalizer.argocd.argoproj.io"):
		return "its hooks run first"
	}
	return ""
}

// finalizerWords name a finalizer, who set it, and whether a controller that could
// remove it is there.
func (e *Engine) finalizerWords(ctx context.Context, c rutter.Cluster, del *deletion, live *unstructured.Unstructured, finalizer string) string {
	if known := wellKnown(finalizer); known != "" {
		return fmt.Sprintf("finalizer %s: %s", finalizer, known)
	}
	writer := finalizerWriter(live, finalizer)
	text := "finalizer " + finalizer
	if writer != "" {
		text += " (set by " + writer + ")"
	}
	names := controllerNames(writer, finalizer, live.GroupVersionKind().Group)
	if len(names) == 0 {
		return text
	}
	if del.workloads == nil || e.now().Sub(del.workloads.at) > time.Minute {
		del.workloads = e.listWorkloads(ctx, c)
	}
	return text + ": " + del.workloads.words(names)
}

// finalizerWriter is the field manager that set a finalizer, empty when unknown.
func finalizerWriter(live *unstructured.Unstructured, finalizer string) string {
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Finalizers map[string]json.RawMessage `json:"f:finalizers"`
			} `json:"f:metadata"`
		}
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		quoted, err := json.Marshal(finalizer)
		if err != nil {
			continue
		}
		if _, ok := fields.Metadata.Finalizers["v:"+string(quoted)]; ok {
			return entry.Manager
		}
	}
	return ""
}

// controllerNames are what the workload of a controller may be called: after the
// field manager, and the domains of the finalizer and of the kind.
func controllerNames(writer, finalizer, group string) []string {
	names := map[string]bool{}
	if w := strings.ToLower(writer); len(w) > 3 && !anybody(w) {
		names[w] = true
	}
	domain, _, _ := strings.Cut(finalizer, "/")
	for _, d := range []string{domain, group} {
		labels := strings.Split(d, ".")
		if len(labels) < 2 || plan.BuiltIn(d) {
			continue
		}
		for _, l := range labels[:len(labels)-1] {
			if len(l) > 3 && !anybody(l) {
				names[l] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// anybody reports whether a name says nothing of who it is.
func anybody(name string) bool {
	switch name {
	case "manager", "rutter", "finalizer", "finalizers", "kubernetes", "x-k8s", "example", "controller", "operator", "unknown", "before-first-apply", "apps":
		return true
	}
	return strings.HasPrefix(name, "kubectl") || strings.HasSuffix(name, ".test") || strings.HasPrefix(name, "argocd")
}

// unavailable says that the server behind an API of its own does not answer.
func unavailable(ctx context.Context, c rutter.Cluster, gvk rutter.GVK) string {
	if plan.BuiltIn(gvk.Group) {
		return ""
	}
	name := gvk.Version + "." + gvk.Group
	service, err := c.Get(ctx, rutter.GVK{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "", name)
	if err != nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, cond := range conditions {
		if m, ok := cond.(map[string]any); ok && m["type"] == "Available" && m["status"] == "False" {
			return fmt.Sprintf("APIService %s is not available: %v", name, m["message"])
		}
	}
	return ""
}

// workloads are what controllers run as, by kind, namespace and name, with
// whether a Pod of each is ready.
type workloads struct {
	at    time.Time
	err   error
	ready map[rutter.Ref]bool
}

func (e *Engine) listWorkloads(ctx context.Context, c rutter.Cluster) *workloads {
	w := &workloads{at: e.now(), ready: map[rutter.Ref]bool{}}
	look := c.LookupAs("")
	for kind, field := range map[string]string{"Deployment": "readyReplicas", "StatefulSet": "readyReplicas", "DaemonSet": "numberReady"} {
		answer, err := look(ctx, "apps/v1", kind, "", "")
		if err != nil {
			w.err = err
			continue
		}
		items, _ := answer["items"].([]any)
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				u := unstructured.Unstructured{Object: m}
				n, _, _ := unstructured.NestedInt64(m, "status", field)
				w.ready[rutter.Ref{Kind: kind, Namespace: u.GetNamespace(), Name: u.GetName()}] = n > 0
			}
		}
	}
	return w
}

// words say which workload bears one of the names.
func (w *workloads) words(names []string) string {
	var best rutter.Ref
	for ref, ready := range w.ready {
		fits := slices.ContainsFunc(names, func(n string) bool {
			return strings.Contains(ref.Name, n) || strings.Contains(n, ref.Name) && len(ref.Name) > 3
		})
		switch {
		case !fits:
		case best.Name == "", ready && !w.ready[best], ready == w.ready[best] && ref.Compare(best) < 0:
			best = ref
		}
	}
	switch {
	case best.Name == "" && w.err != nil:
		return fmt.Sprintf("whether its controller is there is not known: %v", w.err)
	case best.Name == "":
		return "its controller is gone: no Deployment, StatefulSet or DaemonSet is named like " + strings.Join(names, " or ")
	case w.ready[best]:
		return fmt.Sprintf("its controller seems to be %s %s/%s, which runs", best.Kind, best.Namespace, best.Name)
	}
	return fmt.Sprintf("its controller seems to be %s %s/%s, of which no Pod is ready", best.Kind, best.Namespace, best.Name)
}
