package cluster

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// tenant is a member that is spoken to with the rights of a user. Who holds one
// cannot make a call about an object with ours: the user goes along with the
// context, also into what a verb does besides, such as a read after a refusal.
type tenant struct {
	*member

	user string
}

var _ rutter.Cluster = (*tenant)(nil)

// As implements rutter.Cluster.
func (m *member) As(user string) rutter.Cluster {
	if user == "" {
		return m
	}
	return &tenant{m, user}
}

// acting is the key of the user in a context.
type acting struct{}

func actingAs(ctx context.Context, user string) context.Context {
	return context.WithValue(ctx, acting{}, user)
}

// ours is a context for what all tenants share, such as what the API serves: that
// is asked once, by whoever needs it first, and for all.
func ours(ctx context.Context) context.Context { return actingAs(ctx, "") }

// actor is the user whose rights a call is made with; empty means our own.
func actor(ctx context.Context, r request) string {
	user, _ := ctx.Value(acting{}).(string)
	return cmp.Or(r.as, user)
}

// Apply implements rutter.Cluster.
func (t *tenant) Apply(ctx context.Context, obj *unstructured.Unstructured, opts rutter.ApplyOptions) (*unstructured.Unstructured, error) {
	return t.member.Apply(actingAs(ctx, t.user), obj, opts)
}

// Get implements rutter.Cluster.
func (t *tenant) Get(ctx context.Context, gvk rutter.GVK, namespace, name string) (*unstructured.Unstructured, error) {
	return t.member.Get(actingAs(ctx, t.user), gvk, namespace, name)
}

// Delete implements rutter.Cluster.
func (t *tenant) Delete(ctx context.Context, gvk rutter.GVK, namespace, name string, opts rutter.DeleteOptions) error {
	return t.member.Delete(actingAs(ctx, t.user), gvk, namespace, name, opts)
}

// Mark implements rutter.Cluster.
func (t *tenant) Mark(ctx context.Context, gvk rutter.GVK, namespace, name string, mark rutter.Mark) (*unstructured.Unstructured, error) {
	return t.member.Mark(actingAs(ctx, t.user), gvk, namespace, name, mark)
}

// Unmark implements rutter.Cluster.
func (t *tenant) Unmark(ctx context.Context, gvk rutter.GVK, namespace, name string, mark rutter.Mark) error {
	return t.member.Unmark(actingAs(ctx, t.user), gvk, namespace, name, mark)
}

// Unfinalize implements rutter.Cluster.
func (t *tenant) Unfinalize(ctx context.Context, gvk rutter.GVK, namespace, name, uid string, finalizers ...string) error {
	return t.member.Unfinalize(actingAs(ctx, t.user), gvk, namespace, name, uid, finalizers...)
}

// Names implements rutter.Cluster.
func (t *tenant) Names(ctx context.Context, namespace string, want func(rutter.GVK) bool, see func(rutter.Named)) error {
	return t.member.Names(actingAs(ctx, t.user), namespace, want, see)
}

// Amend implements rutter.Amender.
func (t *tenant) Amend(ctx context.Context, live *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	return t.member.Amend(actingAs(ctx, t.user), live, patch)
}

// Create implements rutter.Amender.
func (t *tenant) Create(ctx context.Context, obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return t.member.Create(actingAs(ctx, t.user), obj)
}

// LookupAs implements rutter.Cluster; without a user it is the tenant who looks.
func (t *tenant) LookupAs(user string) rutter.Lookup { return t.member.LookupAs(cmp.Or(user, t.user)) }
