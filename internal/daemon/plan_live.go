package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ktypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/cluster"
	"github.com/rutterhq/rutter/internal/dialect/argo"
	"github.com/rutterhq/rutter/internal/generate"
	"github.com/rutterhq/rutter/internal/preview"
)

// live reads members, projects, credentials, keys and settings from the control plane.
func (p *planner) live(ctx context.Context) error {
	c, err := NewClient(p.cfg.REST)
	if err != nil {
		return err
	}
	p.control = c
	if p.sets, err = setOptions(ctx, SetConfig{}, c, p.cfg.Namespace, p.cfg.Logger); err != nil {
		return err
	}
	if err := p.rendering.declare(ctx, c, p.cfg.Namespace, p.cfg.Logger); err != nil {
		return err
	}
	var projects v1alpha1.AppProjectList
	if err := c.List(ctx, &projects, client.InNamespace(p.cfg.Namespace)); err != nil {
		return fmt.Errorf("list AppProjects: %w", err)
	}
	p.projects = map[string]*v1alpha1.AppProject{}
	for i := range projects.Items {
		p.projects[projects.Items[i].Name] = &projects.Items[i]
	}
	if p.around, err = readSurroundings(ctx, c, p.cfg.Namespace); err != nil {
		return err
	}
	if err := p.identify(ctx, c); err != nil {
		return err
	}
	if p.cfg.Inventory == nil {
		inv, err := ExportClusters(ctx, ExportConfig{REST: p.cfg.REST, Namespace: p.cfg.Namespace})
		if err != nil {
			return err
		}
		p.inventory = inv
	}
	return nil
}

// identify notes which sets and Applications are on the control plane, so that
// what would be held is named as the controller will name it.
func (p *planner) identify(ctx context.Context, c client.Client) error {
	p.uids = map[string]ktypes.UID{}
	for kind, list := range map[string]*metav1.PartialObjectMetadataList{"ApplicationSet": {}, "Application": {}} {
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind + "List"))
		if err := c.List(ctx, list); err != nil {
			return fmt.Errorf("list %ss: %w", kind, err)
		}
		for i := range list.Items {
			p.uids[kind+"/"+list.Items[i].Namespace+"/"+list.Items[i].Name] = list.Items[i].UID
		}
	}
	var sets v1alpha1.ApplicationSetList
	if err := c.List(ctx, &sets, client.InNamespace(p.cfg.Namespace)); err != nil {
		return fmt.Errorf("list ApplicationSets: %w", err)
	}
	for i := range sets.Items {
		if set := &sets.Items[i]; set.DeletionTimestamp == nil && p.reads(set) {
			p.liveSets = append(p.liveSets, set)
		}
	}
	return nil
}

// memory is what the controller remembers of the generators of a set, so that
// those that a plan does not ask are shown with their last good answer, and of what
// it removed lately, which counts towards the set's budget.
func (p *planner) memory(ctx context.Context, set *v1alpha1.ApplicationSet) (answers generate.Memory, removed string) {
	uid := p.uids["ApplicationSet/"+set.Namespace+"/"+set.Name]
	if p.control == nil || uid == "" {
		return generate.Memory{}, ""
	}
	stored := &corev1.ConfigMap{}
	name := generate.MemoryName(&v1alpha1.ApplicationSet{ObjectMeta: metav1.ObjectMeta{UID: uid}})
	if err := p.control.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, stored); err != nil {
		return generate.Memory{}, "" // the generator says that it cannot be asked
	}
	answers, err := generate.DecodeMemory(stored.BinaryData[generate.MemoryAnswers])
	if err != nil {
		answers = generate.Memory{}
	}
	return answers, stored.Data[generate.MemoryRemoved]
}

// note says once what the plan could not take into account.
func (p *planner) note(text string) {
	if !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// heldDigest is the digest of the removals of a set that wait, as the controller
// will have it; empty where that is not known.
func (p *planner) heldDigest(ps *planSet) string {
	set := &v1alpha1.ApplicationSet{}
	set.Spec.SyncPolicy = ps.set.Spec.SyncPolicy // whether objects stay is part of it
	set.UID = p.uids["ApplicationSet/"+ps.set.Namespace+"/"+ps.set.Name]
	apps := make([]*v1alpha1.Application, 0, len(ps.waits))
	for _, name := range ps.waits {
		app := &v1alpha1.Application{}
		app.Name, app.UID = name, p.uids["Application/"+ps.set.Namespace+"/"+name]
		apps = append(apps, app)
	}
	return generate.PlanDigest(set, apps)
}

// deafSink is for who asks clusters and watches nothing.
type deafSink struct{}

// Observed implements rutter.LiveSink.
func (deafSink) Observed(rutter.LiveEvent) {}

// Listed implements rutter.LiveSink.
func (deafSink) Listed(string, rutter.GVK, int64) {}

// Tainted implements rutter.LiveSink.
func (deafSink) Tainted(string, rutter.GVK, error) {}

// Reachable implements rutter.LiveSink.
func (deafSink) Reachable(string, error) {}

// ExportConfig is what ExportClusters needs.
type ExportConfig struct {
	REST      *rest.Config
	Namespace string
	// Timeout bounds the questions to one member; default 20 s.
	Timeout time.Duration
}

// ExportClusters is the inventory of a control plane's members: what their
// Secrets say without the credentials, and what those that answer serve.
func ExportClusters(ctx context.Context, cfg ExportConfig) (preview.Inventory, error) {
	inv := preview.Inventory{APIVersion: preview.InventoryVersion, Kind: preview.InventoryKind, Clusters: []preview.ClusterFacts{}}
	c, err := NewClient(cfg.REST)
	if err != nil {
		return inv, err
	}
	var secrets corev1.SecretList
	if err := c.List(ctx, &secrets, client.InNamespace(cfg.Namespace), client.MatchingLabels{argo.LabelSecretType: argo.SecretTypeCluster}); err != nil {
		return inv, fmt.Errorf("list Secrets of clusters: %w", err)
	}
	members := cluster.New(cluster.Options{Logger: slog.New(slog.DiscardHandler), Sink: deafSink{}})
	defer members.Close()
	if err := members.SetLocal(cfg.REST); err != nil {
		return inv, fmt.Errorf("reach the control plane's own cluster: %w", err)
	}
	local := false
	for i := range secrets.Items {
		info, cred, err := argo.ParseCluster(&secrets.Items[i], nil)
		if info.Server == "" {
			continue // its Secret names no cluster
		}
		if err == nil {
			err = members.Set(info, cred)
		}
		facts := preview.FactsOf(info)
		delete(facts.Labels, argo.LabelSecretType)
		if err != nil {
			facts.Unreachable = err.Error()
		}
		local = local || info.Server == cluster.LocalServer
		inv.Clusters = append(inv.Clusters, facts)
	}
	if !local {
		inv.Clusters = append(inv.Clusters, preview.ClusterFacts{Name: cluster.LocalName, Server: cluster.LocalServer})
	}
	slices.SortFunc(inv.Clusters, func(a, b preview.ClusterFacts) int { return strings.Compare(a.Name, b.Name) })
	for i := range inv.Clusters {
		askMember(ctx, cfg, members, &inv.Clusters[i])
	}
	return inv, nil
}

// askMember fills in what a member serves. One that does not answer is exported
// without, and says so.
func askMember(ctx context.Context, cfg ExportConfig, members *cluster.Registry, facts *preview.ClusterFacts) {
	if facts.Unreachable != "" {
		return
	}
	timeout := cfg.Timeout
	if timeout <= 0 {
		timeout = 20 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errors.New("it does not answer in time"))
	defer cancel()
	member, err := members.Lookup(rutter.Target{Server: facts.Server})
	if err == nil {
		facts.Version, facts.APIVersions, err = member.Version(ctx)
	}
	if err != nil {
		facts.Unreachable = err.Error()
		return
	}
	slices.Sort(facts.APIVersions)
	for _, api := range facts.APIVersions {
		gvk, ok := kindOf(api)
		if !ok || !preview.Namespaced(gvk, nil, *facts) {
			continue
		}
		key := gvk.Group + "/" + gvk.Kind
		if m, err := member.Mapping(ctx, gvk); err == nil && !m.Namespaced && !slices.Contains(facts.ClusterScoped, key) {
			facts.ClusterScoped = append(facts.ClusterScoped, key)
		}
	}
	slices.Sort(facts.ClusterScoped)
}

// kindOf reads group/version/Kind, or version/Kind of the core group.
func kindOf(api string) (rutter.GVK, bool) {
	parts := strings.Split(api, "/")
	last := parts[len(parts)-1]
	if last == "" || last[0] < 'A' || last[0] > 'Z' {
		return rutter.GVK{}, false
	}
	switch len(parts) {
	case 2:
		return rutter.GVK{Version: parts[0], Kind: parts[1]}, true
	case 3:
		return rutter.GVK{Group: parts[0], Version: parts[1], Kind: parts[2]}, true
	}
	return rutter.GVK{}, false
}
