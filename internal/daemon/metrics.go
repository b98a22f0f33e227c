package daemon

import (
	"github.com/prometheus/client_golang/prometheus"
)

// collector exposes the counters of the parts. Names are Rutter's own; the
// reference's metric names come with the issue on observability.
func (d *daemon) collector() prometheus.Collector {
	s := d.engine.Stats()
	counters := map[string]struct {
		help string
		get  func() float64
	}{
		"rutter_units_processed_total":    {"Units looked at.", func() float64 { return float64(s.Processed.Load()) }},
		"rutter_renders_total":            {"Renders in which a tool ran.", func() float64 { return float64(s.Renders.Load()) }},
		"rutter_render_store_hits_total":  {"Renders answered by the store because no input changed.", func() float64 { return float64(s.RenderHit.Load()) }},
		"rutter_objects_applied_total":    {"Objects sent to members.", func() float64 { return float64(s.Applies.Load()) }},
		"rutter_objects_removed_total":    {"Objects removed from members.", func() float64 { return float64(s.Prunes.Load()) }},
		"rutter_objects_healed_total":     {"Objects put back after a live edit.", func() float64 { return float64(s.Heals.Load()) }},
		"rutter_server_comparisons_total": {"Server-side dry runs made to compare.", func() float64 { return float64(s.DryRuns.Load()) }},
		"rutter_syncs_total":              {"Sync operations started.", func() float64 { return float64(s.Syncs.Load()) }},
	}
	g := group{}
	for name, c := range counters {
		g = append(g, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: c.help}, c.get))
	}
	return append(g, requests{d})
}

// requests counts the requests to all members by verb.
type requests struct{ d *daemon }

var requestsDesc = prometheus.NewDesc("rutter_cluster_requests_total", "Requests to the API servers of members.", []string{"verb"}, nil)

// Describe implements prometheus.Collector.
func (requests) Describe(ch chan<- *prometheus.Desc) { ch <- requestsDesc }

// Collect implements prometheus.Collector.
func (r requests) Collect(ch chan<- prometheus.Metric) {
	for verb, n := range r.d.clusters.Requests() {
		ch <- prometheus.MustNewConstMetric(requestsDesc, prometheus.CounterValue, float64(n), verb)
	}
}

// group is several collectors as one.
type group []prometheus.Collector

// Describe implements prometheus.Collector.
func (g group) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range g {
		c.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (g group) Collect(ch chan<- prometheus.Metric) {
	for _, c := range g {
		c.Collect(ch)
	}
}
