package daemon

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/forge"
)

// collector exposes the counters of the parts. Names are Rutter's own; the
// reference's metric names come with the issue on observability.
func (d *daemon) collector() prometheus.Collector {
	s := d.engine.Stats()
	counters := map[string]struct {
		help string
		get  func() float64
	}{
		"rutter_units_processed_total":                   {"Units looked at.", func() float64 { return float64(s.Processed.Load()) }},
		"rutter_renders_total":                           {"Renders in which a tool ran.", func() float64 { return float64(s.Renders.Load()) }},
		"rutter_render_store_hits_total":                 {"Renders answered by the store because no input changed.", func() float64 { return float64(s.RenderHit.Load()) }},
		"rutter_objects_applied_total":                   {"Objects sent to members.", func() float64 { return float64(s.Applies.Load()) }},
		"rutter_objects_removed_total":                   {"Objects removed from members.", func() float64 { return float64(s.Prunes.Load()) }},
		"rutter_objects_handed_over_total":               {"Objects that became another application's.", func() float64 { return float64(s.Passed.Load()) }},
		"rutter_objects_healed_total":                    {"Objects put back after a live edit.", func() float64 { return float64(s.Heals.Load()) }},
		"rutter_server_comparisons_total":                {"Server-side dry runs made to compare.", func() float64 { return float64(s.DryRuns.Load()) }},
		"rutter_syncs_total":                             {"Sync operations started.", func() float64 { return float64(s.Syncs.Load()) }},
		"rutter_applicationset_questions_total":          {"Questions of generators that were looked up.", func() float64 { asked, _ := d.controllers.Questions(); return float64(asked) }},
		"rutter_applicationset_questions_repeated_total": {"Questions of generators that their evaluation had an answer to already.", func() float64 { _, again := d.controllers.Questions(); return float64(again) }},
	}
	g := group{}
	for name, c := range counters {
		g = append(g, prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: c.help}, c.get))
	}
	if f, ok := d.sets.Forges.(*forge.Client); ok {
		g = append(g, forges{f})
	}
	return append(g, requests{d}, drifts{d}, d.controllers.Metrics())
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

// drifts shows the units that differ from what they were last synced to; those
// that do not have no series.
type drifts struct{ d *daemon }

var (
	driftSince     = prometheus.NewDesc("rutter_app_drift_since_timestamp_seconds", "When an application began to differ from what it was last synced to.", []string{"namespace", "name", "project", "dest_server"}, nil)
	driftContested = prometheus.NewDesc("rutter_app_contested_fields", "Fields that are left alone for a while, because somebody writes them again whenever they are put back.", []string{"namespace", "name", "project", "dest_server"}, nil)
)

// Describe implements prometheus.Collector.
func (drifts) Describe(ch chan<- *prometheus.Desc) {
	ch <- driftSince
	ch <- driftContested
}

// Collect implements prometheus.Collector.
func (x drifts) Collect(ch chan<- prometheus.Metric) {
	x.d.engine.Drifts(func(id rutter.UnitID, project, server string, since time.Time, contested int) {
		ch <- prometheus.MustNewConstMetric(driftSince, prometheus.GaugeValue, float64(since.Unix()), id.Namespace, id.Name, project, server)
		if contested > 0 {
			ch <- prometheus.MustNewConstMetric(driftContested, prometheus.GaugeValue, float64(contested), id.Namespace, id.Name, project, server)
		}
	})
}

// forges counts what hosting services are asked, and shows what they still allow.
type forges struct{ client *forge.Client }

var (
	forgeRequests    = prometheus.NewDesc("rutter_forge_requests_total", "Requests to hosting services.", nil, nil)
	forgeNotModified = prometheus.NewDesc("rutter_forge_not_modified_total", "Requests to hosting services that were answered with 304: what was known still holds.", nil, nil)
	forgeWaits       = prometheus.NewDesc("rutter_forge_quota_waits_total", "Times that a request waited for a quota to come back.", nil, nil)
	forgeRefused     = prometheus.NewDesc("rutter_forge_quota_refused_total", "Requests that were not sent because a quota was used up.", nil, nil)
	forgeLeft        = prometheus.NewDesc("rutter_forge_quota_remaining", "Requests that a hosting service still allows a login, as it said last; login is the name of the Secret.", []string{"provider", "host", "login"}, nil)
	forgeLimit       = prometheus.NewDesc("rutter_forge_quota_limit", "Requests that a hosting service allows a login in a period.", []string{"provider", "host", "login"}, nil)
)

// Describe implements prometheus.Collector.
func (forges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{forgeRequests, forgeNotModified, forgeWaits, forgeRefused, forgeLeft, forgeLimit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f forges) Collect(ch chan<- prometheus.Metric) {
	s := f.client.Stats()
	for d, n := range map[*prometheus.Desc]int64{forgeRequests: s.Requests, forgeNotModified: s.NotModified, forgeWaits: s.Waits, forgeRefused: s.Refused} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	shown := map[[3]string]bool{}
	for _, q := range s.Quotas {
		// A Secret whose token was changed has two quotas for a while; one is shown.
		labels := [3]string{q.Provider, q.Host, q.Login}
		if shown[labels] {
			continue
		}
		shown[labels] = true
		if q.Left >= 0 {
			ch <- prometheus.MustNewConstMetric(forgeLeft, prometheus.GaugeValue, float64(q.Left), labels[:]...)
		}
		if q.Limit >= 0 {
			ch <- prometheus.MustNewConstMetric(forgeLimit, prometheus.GaugeValue, float64(q.Limit), labels[:]...)
		}
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
