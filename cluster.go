package rutter

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ClusterInfo is what is declared about a member cluster.
type ClusterInfo struct {
	Name   string
	Server string
	// Project scopes the cluster to one project; empty means unscoped.
	Project     string
	Labels      map[string]string
	Annotations map[string]string
	// Namespaces restricts management to these; empty means all.
	Namespaces []string
	// ClusterResources allows cluster-scoped kinds when Namespaces is set.
	ClusterResources bool
}

// Mapping is how a kind is served by a cluster.
type Mapping struct {
	Resource   string
	Namespaced bool
}

// ApplyOptions adjusts one server-side apply.
type ApplyOptions struct {
	// DryRun asks the server what would happen, without doing it.
	DryRun bool
	// Takeover is asked for the patch that makes an object ours that another tool
	// has applied; nil where there was none.
	Takeover Takeover
	// Part is what of an object is applied, under a name of its own, so that it and
	// the rest do not take each other's fields away; empty is the object.
	Part string
	Manner
}

// Manner is how an object is sent, where something else is asked for than a
// validated server-side apply that takes over what other tools have applied.
type Manner struct {
	// Replace sends the whole object in the place of the one that is there, so that
	// nothing stays of what is not declared, and creates it where there is none.
	Replace bool
	// Unvalidated has the server ignore fields that it does not know.
	Unvalidated bool
	// KeepFormer leaves what other tools have applied with them.
	KeepFormer bool
	// Former is one more manager whose fields are taken over.
	Former string
}

// Describer is a Cluster that describes the types of its kinds.
type Describer interface {
	// Descriptions are the URLs of the OpenAPI v3 documents of the group versions
	// that are served, by "apis/group/version". A URL names the content too.
	Descriptions(ctx context.Context) (map[string]string, error)
	// Description is the document at a URL.
	Description(ctx context.Context, url string) ([]byte, error)
}

// Takeover returns the JSON patch that makes a live object ours in one write,
// given the server's answer to a dry run of its apply. False where anything but
// marks and owners is to change.
type Takeover func(live, told *unstructured.Unstructured) (patch []byte, ok bool)

// behalf is the key of what OnBehalf puts into a context.
type behalf struct{}

// OnBehalf says for which unit calls are made: at a cluster that is busy with
// writes, units take turns.
func OnBehalf(ctx context.Context, id UnitID) context.Context {
	return context.WithValue(ctx, behalf{}, id)
}

// BehalfOf is the unit that calls are made for; empty when that was not said.
func BehalfOf(ctx context.Context) UnitID {
	id, _ := ctx.Value(behalf{}).(UnitID)
	return id
}

// DeleteOptions adjusts one deletion.
type DeleteOptions struct {
	// UID must match; empty means whatever is there.
	UID string
	// Propagation is foreground, background or orphan.
	Propagation string
}

// Mark says whose an object is. It changes only if it is the object with that UID
// that carries the mark of the unit that gives it.
type Mark struct {
	UID string
	// From and To are values of LabelUnit, and Tracking is the annotation of the
	// unit that takes it.
	From, To, Tracking string
}

// Named is what is known of an object by its name alone.
type Named struct {
	Ref
	// Owned says that another object owns it.
	Owned bool
	// Unit is its LabelUnit.
	Unit string
}

// Cluster is one member. Every method takes the kind by GVK as the caller
// wrote it. Errors: CodeNotFound (object, or kind not served), CodeForbidden,
// CodeInvalid (refused by validation), CodeConflict, CodeUnavailable.
type Cluster interface {
	Info() ClusterInfo
	// Mapping looks a kind up; unknown kinds are asked of the server again at
	// most every few seconds, and at once after a CRD was applied.
	Mapping(ctx context.Context, gvk GVK) (Mapping, error)
	// Apply is a forced server-side apply as FieldManager of the given JSON.
	Apply(ctx context.Context, obj *unstructured.Unstructured, opts ApplyOptions) (*unstructured.Unstructured, error)
	Get(ctx context.Context, gvk GVK, namespace, name string) (*unstructured.Unstructured, error)
	// Delete is idempotent: an object that is gone, or has another UID, is no error.
	Delete(ctx context.Context, gvk GVK, namespace, name string, opts DeleteOptions) error
	// Mark writes the marks of another unit on an object, and nothing else, and
	// returns the object. CodeConflict when it is not that object, or not that
	// unit's, any more.
	Mark(ctx context.Context, gvk GVK, namespace, name string, mark Mark) (*unstructured.Unstructured, error)
	// Unfinalize takes finalizers off an object with that UID, and nothing else.
	// An object that is gone, is another one or has none of them is no error.
	Unfinalize(ctx context.Context, gvk GVK, namespace, name, uid string, finalizers ...string) error
	// Unmark takes the marks of a unit off an object, and nothing else; From says
	// whose they must be. CodeConflict as for Mark.
	Unmark(ctx context.Context, gvk GVK, namespace, name string, mark Mark) error
	// Watch makes sure that objects of the kind that carry LabelUnit are
	// watched, and returns at once. What is seen goes to the LiveSink.
	Watch(gvk GVK)
	// Synced reports whether the kind's first listing has been delivered.
	Synced(gvk GVK) bool
	// Version is the server's version ("v1.37.2") and the API versions it
	// serves (group/version and group/version/Kind), for Helm's capabilities. The
	// list is shared and must not be changed; while it stays equal it is the same.
	Version(ctx context.Context) (version string, apiVersions []string, err error)
	// Names lists what there is in a namespace, of the kinds that are wanted: names and
	// owners only, a page at a time. A kind that may not be listed is left out.
	Names(ctx context.Context, namespace string, want func(GVK) bool, see func(Named)) error
	// As is the same cluster, with every call that concerns an object made with the
	// rights of a user, whom the engine's own identity impersonates; empty is the
	// engine's own. What all units share stays the engine's: what the API serves and
	// the watches.
	As(user string) Cluster
	// LookupAs reads objects with the rights of a user, whom the engine's own
	// identity impersonates; what the user may not read is CodeForbidden.
	LookupAs(user string) Lookup
}

// Amender is a Cluster on which what a person asks for can be done beside syncs. It
// writes as ActionManager, so that what a sync owns stays known.
type Amender interface {
	// Amend sends a JSON merge patch of an object, and returns what it became.
	// CodeConflict when it is not that object, or not in that version, any more.
	Amend(ctx context.Context, live *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error)
	// Create makes an object. CodeConflict when there is one by that name.
	Create(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error)
}

// Clusters finds members.
type Clusters interface {
	// Lookup resolves a target by server or name (reference 1.9). CodeNotFound
	// when there is none, CodeInvalid when a name is ambiguous.
	Lookup(target Target) (Cluster, error)
	List() []ClusterInfo
}

// LiveEvent is one observation of a managed object.
type LiveEvent struct {
	// Server is the cluster's API server URL, the key of the cluster.
	Server string
	GVK    GVK
	// Object is complete when it exists; the sink must not keep it.
	Object *unstructured.Unstructured
	// Deleted says that the object is gone; Object is its last state.
	Deleted bool
	// Epoch numbers listings: objects of the kind whose last event has a lower
	// epoch when Listed is called with this one no longer exist.
	Epoch int64
}

// LiveSink receives what the clusters show. Calls for one kind of one cluster
// come in order; the sink must be quick.
type LiveSink interface {
	Observed(ev LiveEvent)
	// Listed says that a (re)listing of a kind is complete.
	Listed(server string, gvk GVK, epoch int64)
	// Tainted says that a kind cannot be watched, with the cause; nil clears it.
	// What was known of that kind is then stale: Unknown, never Missing.
	Tainted(server string, gvk GVK, err error)
	// Reachable reports the state of a whole cluster when it changes; err nil means it answers.
	Reachable(server string, err error)
}
