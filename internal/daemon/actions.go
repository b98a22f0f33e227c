package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/actions"
	"github.com/rutterhq/rutter/internal/cluster"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

// ActionConfig says whose objects are acted on.
type ActionConfig struct {
	REST      *rest.Config
	Namespace string
	App       client.ObjectKey
	Which     actions.Which
}

const (
	// actionTimeout bounds all questions of a list, and all writes of a run.
	actionTimeout = 2 * time.Minute
	// actionTries is how often an object that changes at the same moment is acted on.
	actionTries = 5
)

// Actions says what can be done to the objects of an Application. It changes nothing.
func Actions(ctx context.Context, cfg ActionConfig) (actions.Offers, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, actionTimeout, errors.New("no answer in time"))
	defer cancel()
	h, err := newHandler(ctx, cfg)
	if err != nil {
		return actions.Offers{}, err
	}
	defer h.members.Close()
	out := actions.Offers{Objects: []actions.Offer{}, Problems: h.problems}
	for _, r := range h.objects {
		if !h.book.Knows(r.Group, r.Kind) {
			continue
		}
		offer := actions.Offer{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
		live, err := h.live(ctx, r)
		if err == nil {
			offer.Actions, err = h.book.List(live, time.Now())
		}
		if err != nil {
			offer.Problem = err.Error()
		}
		out.Objects = append(out.Objects, offer)
	}
	return out, nil
}

// RunAction has an action done to an object of an Application, or with all to each
// that is meant. What was done before an error is in the answer.
func RunAction(ctx context.Context, cfg ActionConfig, name string, params actions.Params, all bool) ([]actions.Done, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, actionTimeout, errors.New("no answer in time"))
	defer cancel()
	h, err := newHandler(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer h.members.Close()
	switch {
	case len(h.objects) == 0:
		return nil, rutter.Errorf(rutter.CodeNotFound, "application %q has no object that is meant by %s", cfg.App.Name, cfg.Which)
	case len(h.objects) > 1 && !all:
		return nil, rutter.Errorf(rutter.CodeInvalid, "%d objects of application %q are meant by %s: name one with --resource-name and --namespace, or use --all", len(h.objects), cfg.App.Name, cfg.Which)
	}
	var done []actions.Done
	for _, r := range h.objects {
		what, err := h.act(ctx, r, name, params)
		done = append(done, what...)
		if rutter.CodeOf(err) == rutter.CodeNotFound && len(h.problems) > 0 {
			err = fmt.Errorf("%w (%s cannot be read in full: %s)", err, argo.ConfigMapName, h.problems[0])
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// handler acts on the objects of an Application.
type handler struct {
	unit    rutter.Unit
	members *cluster.Registry
	member  rutter.Cluster
	permit  func(rutter.Unit, rutter.ClusterInfo, rutter.Ref, bool) error
	book    *actions.Book
	// problems are what is wrong with the operator's own actions.
	problems []string
	objects  []v1alpha1.ResourceStatus
}

func newHandler(ctx context.Context, cfg ActionConfig) (*handler, error) {
	c, err := NewClient(cfg.REST)
	if err != nil {
		return nil, err
	}
	var app v1alpha1.Application
	if err := c.Get(ctx, cfg.App, &app); err != nil {
		return nil, fmt.Errorf("read application %q in namespace %q: %w", cfg.App.Name, cfg.App.Namespace, err)
	}
	projects, err := readProjects(ctx, c, cfg.Namespace)
	if err != nil {
		return nil, err
	}
	identities, err := readIdentities(ctx, c, cfg.Namespace)
	if err != nil {
		return nil, err
	}
	h := &handler{permit: permitObject(projects)}
	if h.unit, _ = argo.ToUnit(&app, argo.Config{Namespace: cfg.Namespace}, projects); h.unit.Problem != nil {
		return nil, fmt.Errorf("application %q: %w", app.Name, h.unit.Problem)
	}
	h.objects = meant(&app, cfg.Which)
	if err := h.readBook(ctx, c, cfg.Namespace); err != nil {
		return nil, err
	}
	h.members = cluster.New(cluster.Options{Logger: slog.New(slog.DiscardHandler), Sink: deafSink{}})
	if err := h.reach(ctx, c, cfg, func(info rutter.ClusterInfo) (string, error) {
		return argo.Identity(h.unit, info, projects, identities)
	}); err != nil {
		h.members.Close()
		return nil, err
	}
	return h, nil
}

// meant are the objects of an Application that are asked for. A status that is too
// large lists one object of each kind: another one of the kind can be named, and its label
// says whose it is.
func meant(app *v1alpha1.Application, which actions.Which) []v1alpha1.ResourceStatus {
	var out []v1alpha1.ResourceStatus
	for _, r := range app.Status.Resources {
		if which.Means(r.Group, r.Kind, r.Namespace, r.Name) {
			out = append(out, r)
		}
	}
	if len(out) > 0 || which.Kind == "" || which.Name == "" {
		return out
	}
	for _, r := range app.Status.Resources {
		if r.Kind == which.Kind && (which.Group == "" || r.Group == which.Group) {
			if r.Namespace != "" {
				r.Namespace = cmp.Or(which.Namespace, app.Spec.Destination.Namespace)
			}
			return []v1alpha1.ResourceStatus{{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: which.Name}}
		}
	}
	return nil
}

// reach finds the member, spoken to with the rights that the unit has there.
func (h *handler) reach(ctx context.Context, c client.Client, cfg ActionConfig, identity func(rutter.ClusterInfo) (string, error)) error {
	if err := errors.Join(h.members.SetLocal(cfg.REST), declareClusters(ctx, c, cfg.Namespace, h.members)); err != nil {
		return err
	}
	member, err := h.members.Lookup(h.unit.Target)
	if err != nil {
		return fmt.Errorf("the cluster of application %q: %w", h.unit.ID.Name, err)
	}
	user, err := identity(member.Info())
	if err != nil {
		return err
	}
	h.member = member.As(user)
	return nil
}

func (h *handler) readBook(ctx context.Context, c client.Client, namespace string) error {
	var cm corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argo.ConfigMapName}, &cm); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s: %w", argo.ConfigMapName, err)
	}
	scripts, problems := argo.ParseActions(&cm)
	book, errs := actions.NewBook(scripts)
	for _, err := range errs {
		problems = append(problems, err.Error())
	}
	h.book, h.problems = book, problems
	return nil
}

// live is an object as its cluster has it, where the project permits it and it is the
// Application's.
func (h *handler) live(ctx context.Context, r v1alpha1.ResourceStatus) (*unstructured.Unstructured, error) {
	gvk := rutter.GVK{Group: r.Group, Version: r.Version, Kind: r.Kind}
	if err := h.permitted(ctx, gvk, r.Namespace, r.Name); err != nil {
		return nil, err
	}
	live, err := h.member.Get(ctx, gvk, r.Namespace, r.Name)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the object
	}
	if live.GetLabels()[rutter.LabelUnit] != h.unit.ID.Hash() {
		return nil, rutter.Errorf(rutter.CodeForbidden, "%s %s is not managed by application %q: it has not the label of it", r.Kind, r.Name, h.unit.ID.Name)
	}
	return live, nil
}

func (h *handler) permitted(ctx context.Context, gvk rutter.GVK, namespace, name string) error {
	mapping, err := h.member.Mapping(ctx, gvk)
	if err != nil {
		return err //nolint:wrapcheck // it names the kind and the cluster
	}
	ref := rutter.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: namespace, Name: name}
	return h.permit(h.unit, h.member.Info(), ref, mapping.Namespaced)
}

// act has the action done to one object. Where the object changes at the same moment, the
// action looks at it anew.
func (h *handler) act(ctx context.Context, r v1alpha1.ResourceStatus, name string, params actions.Params) ([]actions.Done, error) {
	for try := 1; ; try++ {
		live, err := h.live(ctx, r)
		if err != nil {
			return nil, err
		}
		changes, err := h.book.Run(live, name, params, time.Now())
		if err != nil {
			return nil, err
		}
		if err := h.permitCreated(ctx, changes); err != nil {
			return nil, err
		}
		done, err := h.carryOut(ctx, live, name, changes)
		if rutter.CodeOf(err) != rutter.CodeConflict || len(done) > 0 || try == actionTries {
			return done, err
		}
	}
}

// permitCreated looks at all that an action creates before any of it is created.
func (h *handler) permitCreated(ctx context.Context, changes []actions.Change) error {
	for _, c := range changes {
		if !c.Create {
			continue
		}
		gvk := rutter.GVKOf(c.Object)
		mapping, err := h.member.Mapping(ctx, gvk)
		if err != nil {
			return err //nolint:wrapcheck // it names the kind and the cluster
		}
		if !mapping.Namespaced { // it lies beside nothing
			c.Object.SetNamespace("")
		}
		if err := h.permitted(ctx, gvk, c.Object.GetNamespace(), c.Object.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func (h *handler) carryOut(ctx context.Context, live *unstructured.Unstructured, name string, changes []actions.Change) (done []actions.Done, err error) {
	amender, ok := h.member.(rutter.Amender)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeInternal, "cluster %s cannot be acted on", h.member.Info().Name)
	}
	// What is changed comes first: it is what fails when somebody else was quicker.
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(x, y actions.Change) int { return rank(x) - rank(y) })
	for _, c := range changes {
		what, told := "changed", live
		switch {
		case c.Create:
			what = "created"
			if told, err = amender.Create(ctx, unmarked(c.Object)); err != nil {
				return done, fmt.Errorf("create %s %s: %w", c.Object.GetKind(), c.Object.GetName(), err)
			}
		case len(c.Patch) == 0:
			what = "unchanged"
		default:
			if told, err = amender.Amend(ctx, live, c.Patch); err != nil {
				return done, fmt.Errorf("change %s %s: %w", live.GetKind(), live.GetName(), err)
			}
			live = told
		}
		done = append(done, actions.Done{Action: name, What: what, Group: told.GroupVersionKind().Group, Kind: told.GetKind(), Namespace: told.GetNamespace(), Name: told.GetName()})
	}
	return done, nil
}

func rank(c actions.Change) int {
	if c.Create {
		return 1
	}
	return 0
}

// unmarked has none of our marks: no Application declares what an action creates, and
// with the marks of one it would be pruned.
func unmarked(obj *unstructured.Unstructured) *unstructured.Unstructured {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	delete(labels, rutter.LabelUnit)
	delete(annotations, rutter.AnnotationTracking)
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	return obj
}
