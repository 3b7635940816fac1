// Package telemetry is how operators look inside: Prometheus metrics and, when
// an endpoint is given, OpenTelemetry traces.
package telemetry

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is what is counted.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	known    sync.Map // of *counted, by series
}

// NewMetrics makes a registry of our own: nothing is counted behind our back.
func NewMetrics(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "deckhand_http_requests_total", Help: "HTTP requests completed."}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "deckhand_http_request_duration_seconds", Help: "Duration of HTTP requests, without streams.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, []string{"route", "method"}),
	}
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "deckhand_build_info", Help: "Version of the running server."}, []string{"version"})
	build.WithLabelValues(version).Set(1)
	m.registry.MustRegister(m.requests, m.duration, build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Gauge adds a gauge whose value is read on each scrape.
func (m *Metrics) Gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// Counter adds a counter whose value is read on each scrape.
func (m *Metrics) Counter(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

// Add adds metrics of other packages.
func (m *Metrics) Add(all ...prometheus.Collector) { m.registry.MustRegister(all...) }

// Store adds the counts of a database: how many changes were stored, in how many transactions.
func (m *Metrics) Store(written func() (changes, transactions int64)) {
	m.Counter("deckhand_store_commits_total", "Transactions committed to the store.", func() float64 { _, n := written(); return float64(n) })
	m.Counter("deckhand_store_writes_total", "Writes committed to the store.", func() float64 { n, _ := written(); return float64(n) })
}

// Request counts an answered request. stream requests take as long as their
// readers like, so their time says nothing.
func (m *Metrics) Request(route, method string, status int, took time.Duration, stream bool) {
	key := series{route, method, status}
	found, ok := m.known.Load(key)
	if !ok { // looking the labels up costs more than counting
		c := &counted{requests: m.requests.WithLabelValues(route, method, strconv.Itoa(status))}
		if !stream {
			c.duration = m.duration.WithLabelValues(route, method)
		}
		found, _ = m.known.LoadOrStore(key, c)
	}
	c := found.(*counted)
	c.requests.Inc()
	if c.duration != nil {
		c.duration.Observe(took.Seconds())
	}
}

// series is a set of labels; there are few, since routes and methods are ours.
type series struct {
	route, method string
	status        int
}

type counted struct {
	requests prometheus.Counter
	duration prometheus.Observer // nil for streams
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
