package argo

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// setMetrics are what is measured of sets (reference 10.5), and how many
// deletions wait for an approval.
type setMetrics struct {
	reconcile *prometheus.HistogramVec

	mu sync.Mutex
	by map[types.NamespacedName]setFigures
}

// setFigures are those of one set.
type setFigures struct {
	upToDate string
	owned    int64
	held     int
}

func newSetMetrics() *setMetrics {
	return &setMetrics{by: map[types.NamespacedName]setFigures{}, reconcile: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "argocd_appset_reconcile", Help: "Seconds that evaluations of an ApplicationSet took.",
		Buckets: []float64{.25, .5, 1, 2, 4, 8, 16, 32},
	}, []string{"namespace", "name"})}
}

// note takes what the status of a set says.
func (m *setMetrics) note(set *v1alpha1.ApplicationSet) {
	f := setFigures{upToDate: "Unknown", owned: set.Status.ResourcesCount}
	for _, c := range set.Status.Conditions {
		if c.Type == v1alpha1.ApplicationSetConditionResourcesUpToDate && c.Reason != "" {
			f.upToDate = c.Reason
		}
	}
	key := types.NamespacedName{Namespace: set.Namespace, Name: set.Name}
	m.mu.Lock()
	defer m.mu.Unlock()
	f.held = m.by[key].held
	m.by[key] = f
}

// wait takes the deletions that wait in a set.
func (m *setMetrics) wait(key types.NamespacedName, h *generate.Held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.by[key]
	f.held = 0
	if h != nil {
		f.held = len(h.Names)
	}
	m.by[key] = f
}

func (m *setMetrics) evaluated(key types.NamespacedName, took time.Duration) {
	m.reconcile.WithLabelValues(key.Namespace, key.Name).Observe(took.Seconds())
}

// drop forgets a set that is gone.
func (m *setMetrics) drop(key types.NamespacedName) {
	m.reconcile.DeleteLabelValues(key.Namespace, key.Name)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.by, key)
}

// setDescs describe the figures of sets.
type setDescs struct{ info, owned, held *prometheus.Desc }

func newSetDescs() setDescs {
	labels := []string{"namespace", "name"}
	return setDescs{
		info:  prometheus.NewDesc("argocd_appset_info", "ApplicationSets, by the reason of their condition ResourcesUpToDate.", append(labels, "resource_update_status"), nil),
		owned: prometheus.NewDesc("argocd_appset_owned_applications", "Applications of an ApplicationSet.", labels, nil),
		held:  prometheus.NewDesc("rutter_appset_held_deletions", "Applications of an ApplicationSet whose deletion waits for an approval.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *setMetrics) Describe(ch chan<- *prometheus.Desc) {
	m.reconcile.Describe(ch)
	d := newSetDescs()
	ch <- d.info
	ch <- d.owned
	ch <- d.held
}

// Collect implements prometheus.Collector.
func (m *setMetrics) Collect(ch chan<- prometheus.Metric) {
	m.reconcile.Collect(ch)
	d := newSetDescs()
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, f := range m.by {
		ch <- prometheus.MustNewConstMetric(d.info, prometheus.GaugeValue, 1, key.Namespace, key.Name, f.upToDate)
		ch <- prometheus.MustNewConstMetric(d.owned, prometheus.GaugeValue, float64(f.owned), key.Namespace, key.Name)
		ch <- prometheus.MustNewConstMetric(d.held, prometheus.GaugeValue, float64(f.held), key.Namespace, key.Name)
	}
}

// Metrics are what the controllers measure.
func (c *Controllers) Metrics() prometheus.Collector { return c.sets.metrics }
