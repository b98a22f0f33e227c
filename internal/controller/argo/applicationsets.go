package argo

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

const (
	annSetRefresh = "argocd.argoproj.io/application-set-refresh"
	ownerIndex    = "ownerSet"
	// setRetry is the longest pause after a failed generation (reference 5.2), and
	// setRetryFirst the first one: most failures are over in a moment.
	setRetry      = 3 * time.Minute
	setRetryFirst = 5 * time.Second
	// setStatusDelay gathers the changes of generated Applications into one
	// write of their set's status, which lists all of them: the longer the list,
	// the longer the pause, for each so many Applications by as much again.
	setStatusDelay = 3 * time.Second
	setStatusApps  = 1000
	setStatusSlow  = 30 * time.Second
	// setEvaluations is how many sets are evaluated at one time.
	setEvaluations = 4
	// setWriters bounds the Applications of one set that are written at one time.
	setWriters = 16
)

// applicationSets evaluates ApplicationSets and writes their Applications.
type applicationSets struct {
	*Controllers

	wakes wakes

	mu     sync.Mutex
	states map[types.NamespacedName]*setState
	// primed is false until every member and project that is declared is known:
	// a list of members that is not whole must never be taken for one.
	primed bool
	// written are the versions of Applications that sets wrote and no event has told of.
	written map[types.NamespacedName]string

	memories memories
	moves    *moves
	keepers  keepers
	metrics  *setMetrics
	events   eventSink
	// listeners are the sets that asked hosting services or services of parameters.
	listeners listeners
	outages   outages
	// placements are watched for the sets that ask for them.
	placements placements
	factCounts
}

func newApplicationSets(c *Controllers) *applicationSets {
	return &applicationSets{Controllers: c, states: map[types.NamespacedName]*setState{},
		written: map[types.NamespacedName]string{}, metrics: newSetMetrics(), moves: newMoves()}
}

func (s *applicationSets) setup(mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Application{}, ownerIndex, ownerOf) //nolint:forbidigo // set-up, before any context exists
	if err != nil {
		return fmt.Errorf("index Applications by their set: %w", err)
	}
	s.events = eventSink{mgr.GetEventRecorder("rutter-applicationset")}
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(mgr).Named("applicationset").
		For(&v1alpha1.ApplicationSet{}, builder.WithPredicates(changed, predicate.NewPredicateFuncs(s.noteDirty))).
		Watches(&v1alpha1.Application{}, handler.EnqueueRequestsFromMapFunc(s.setOf), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: s.childChanged, CreateFunc: s.childCreated,
			DeleteFunc: s.childDeleted,
		})).
		WatchesRawSource(source.Func(s.wakes.start)).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(s.opts.Sets.Concurrency, setEvaluations)}).
		Complete(s)
}

// Reconcile implements reconcile.Reconciler.
func (s *applicationSets) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	key := req.NamespacedName
	var set v1alpha1.ApplicationSet
	if err := s.client.Get(ctx, key, &set); err != nil {
		if apierrors.IsNotFound(err) {
			s.leaves(key)
			s.forget(key)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read ApplicationSet %s: %w", req, err)
	}
	if !s.opts.manages(set.Namespace) {
		return reconcile.Result{}, nil
	}
	if set.DeletionTimestamp != nil {
		s.leaves(key)
		if !s.ready(key) { // which clusters there are is not known: their objects would be left behind
			return reconcile.Result{}, nil
		}
		return s.teardown(ctx, &set)
	}
	if !s.take(key) {
		result, err := s.statusOnly(ctx, &set)
		// The queue keeps one time for a set, and this event has taken the place of it.
		result.RequeueAfter = earliest(result.RequeueAfter, s.untilDue(key))
		return result, err
	}
	began := s.opts.Now()
	result, err := s.evaluate(ctx, &set)
	s.metrics.evaluated(key, s.opts.Now().Sub(began))
	if err != nil {
		s.moves.fail(key)
		s.mark(key)
		return reconcile.Result{}, err
	}
	s.ended(key)
	return result, nil
}

func (s *applicationSets) forget(key types.NamespacedName) {
	s.opts.Engine.Repos().Unsubscribe("appset/" + key.String())
	s.memories.drop(key)
	s.retain(key, nil) // what it was about to give up is its owner's, or nobody's
	s.moves.forget(key)
	s.keepers.drop(key.Namespace)
	s.metrics.drop(key)
	s.listeners.drop(key)
	s.placements.settle(key, nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, key)
}

// evaluate generates, writes what changed, and records how it went.
func (s *applicationSets) evaluate(ctx context.Context, set *v1alpha1.ApplicationSet) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(set)
	before, err := s.recall(ctx, set)
	if err != nil {
		return reconcile.Result{}, err
	}
	fresh := set.Annotations[annSetRefresh] != "" || s.takeAsk(key)
	facts := s.facts(ctx, set, fresh)
	// Who may wake the set is noted before anything is read, so that what changes
	// while it is evaluated is not missed.
	s.note(key, set)
	options := s.opts.Sets.Generate
	options.Memory = before.answers
	o := outcome{result: options.Generate(set, facts)}
	s.remember(key, facts.repos)
	if ctx.Err() != nil {
		return reconcile.Result{}, context.Cause(ctx) // what was not answered says nothing
	}
	if o.result.Completeness == generate.Complete { // else some questions were not come to
		s.listeners.settle(key, facts.asked, facts.plugins)
		s.placements.settle(key, facts.kinds)
	}
	if err := s.decide(ctx, set, before, &o); err != nil {
		return reconcile.Result{}, err
	}
	if err := s.guard(ctx, set, &o); err != nil {
		return reconcile.Result{}, err
	}
	s.carryOut(ctx, set, before, &o)
	s.logEvaluation(key, &o)
	s.tell(set, before, &o)
	if err := s.writeStatus(ctx, set, &o); err != nil {
		return reconcile.Result{}, err
	}
	if set.Annotations[annSetRefresh] != "" && !s.opts.Sets.DryRun {
		if err := s.clearRefresh(ctx, set); err != nil {
			return reconcile.Result{}, err
		}
	}
	return s.next(key, &o), nil
}

// decide compares what is generated with what is there.
func (s *applicationSets) decide(ctx context.Context, set *v1alpha1.ApplicationSet, before memory, o *outcome) error {
	live, err := s.concerned(ctx, set, &o.result)
	if err != nil {
		return err
	}
	policy, err := s.policy(ctx, set)
	if err != nil {
		return err
	}
	s.noteGenerated(set, o.result)
	policy.Ticket, policy.Waiting, policy.Removed, policy.Elsewhere = before.ticket, before.waiting, before.removed, s.elsewhere(set, live)
	o.decision = generate.Decide(set, o.result, s.staying(set, live), policy)
	o.unsure = o.decision.Waiting != "" && o.decision.Ticket == "" && o.result.Completeness != generate.Complete
	return s.handOver(ctx, set, o)
}

// policy is what holds for all sets, as of now.
func (s *applicationSets) policy(ctx context.Context, set *v1alpha1.ApplicationSet) (generate.Policy, error) {
	op := s.opts.Sets
	siblings, err := s.siblings(ctx, set.Namespace)
	if err != nil {
		return generate.Policy{}, err
	}
	keeper, err := s.keeper(ctx, set.Namespace)
	if err != nil {
		return generate.Policy{}, err
	}
	return generate.Policy{
		Applications: op.Policy, AllowOverride: op.AllowOverride, Budget: op.Budget,
		PreservedAnnotations: op.PreservedAnnotations, PreservedLabels: op.PreservedLabels,
		Clusters: s.opts.Clusters.List(), Projects: s.projects.names(), Now: s.opts.Now(),
		Keeper: keeper, HandOver: true, Sets: siblings,
	}, nil
}

// next notes whom to wake the set for, and says when it is due though nothing
// is heard.
func (s *applicationSets) next(key types.NamespacedName, o *outcome) reconcile.Result {
	failed := len(o.result.Errors) > 0
	if !o.unsure {
		s.metrics.wait(key, o.decision.Held)
	}
	pause := earliest(o.result.Requeue, o.decision.Requeue, o.requeue)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state(key)
	st.failed, st.refused, st.asks = failed, o.refused(), st.asks || failed
	switch {
	case failed || len(o.failures) > 0:
		pause = earliest(pause, min(setRetryFirst<<min(st.attempts, 10), setRetry))
		st.attempts++
	case o.result.Completeness != generate.Complete || len(o.refusals) > 0:
		// Nobody but the user, or something that appears, makes it better.
		pause = earliest(pause, setRetry)
		fallthrough
	default:
		st.attempts = 0
	}
	if pause == 0 {
		return reconcile.Result{}
	}
	st.retryAt = s.opts.Now().Add(pause)
	return reconcile.Result{RequeueAfter: pause}
}

// earliest is the shortest of some pauses; 0 is never.
func earliest(pauses ...time.Duration) time.Duration {
	var first time.Duration
	for _, p := range pauses {
		if p > 0 && (first == 0 || p < first) {
			first = p
		}
	}
	return first
}

func (s *applicationSets) logEvaluation(key types.NamespacedName, o *outcome) {
	held := 0
	if o.decision.Held != nil {
		held = len(o.decision.Held.Names)
	}
	s.opts.Logger.Info("applicationset evaluated", "set", key.String(), "elements", len(o.result.Elements),
		"completeness", string(o.result.Completeness), "created", o.count(generate.Create), "updated", o.count(generate.Update),
		"deleted", o.count(generate.Delete)+o.count(generate.Release), "deletionsHeld", held, "refused", len(o.refusals), "failures", len(o.failures))
}

func (s *applicationSets) clearRefresh(ctx context.Context, set *v1alpha1.ApplicationSet) error {
	path := "/metadata/annotations/argocd.argoproj.io~1application-set-refresh"
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"`+path+`"}]`))
	target := &v1alpha1.ApplicationSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}
	if err := s.client.Patch(ctx, target, patch, FieldOwner); client.IgnoreNotFound(err) != nil && !apierrors.IsInvalid(err) {
		return fmt.Errorf("take back the refresh of ApplicationSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	return nil
}
