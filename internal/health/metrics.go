package health

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are those of the whole server, read on each scrape.
func (b *Board) Metrics() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	count := func(of func() int) func() float64 { return func() float64 { return float64(of()) } }
	return append(b.Admission.Metrics(),
		gauge("deckhand_ready", "1 if the server is ready, as GET /ready reports; otherwise 0.", b.ready),
		gauge("deckhand_conversations_working", "Conversations that an agent is working on.", count(b.Working)),
		gauge("deckhand_conversations_waiting", "Conversations that wait for an agent.", count(b.Waiting)),
		gauge("deckhand_sandboxes", "Sandboxes that this server is connected to.", count(b.Keeper.Running)),
		gauge("deckhand_sandboxes_suspended", "Sandboxes that were suspended and continue when they are used.", func() float64 { _, n := b.Keeper.Attached(); return float64(n) }),
		gauge("deckhand_http_requests_in_progress", "HTTP requests in progress, without streams.", count(b.Requests)),
		gauge("deckhand_event_streams", "Open event streams.", count(b.Streams)),
		gauge("deckhand_disk_free_bytes", "Free space of the disk with the data directory.", func() float64 { d, _ := Disk(b.DataDir); return float64(d.Free) }),
		gauge("deckhand_disk_size_bytes", "Size of the disk with the data directory.", func() float64 { d, _ := Disk(b.DataDir); return float64(d.Total) }),
		gauge("deckhand_last_backup_timestamp_seconds", "Time of the last recorded backup in seconds since 1970; 0 if none is recorded.", b.backedUp),
		jobs{b, prometheus.NewDesc("deckhand_jobs_waiting", "Jobs that wait in a durable queue: webhooks, triggers or attempts.", []string{"queue"}, nil)},
	)
}

// scrapeTime is how long reading the database may take on a scrape.
const scrapeTime = 5 * time.Second

func (b *Board) ready() float64 {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	if b.Ready(ctx) != nil || DiskFull(b.DataDir) != nil {
		return 0
	}
	return 1
}

func (b *Board) backedUp() float64 {
	if at := b.LastBackup(); at != nil {
		return float64(at.Unix())
	}
	return 0
}

// jobs counts what waits in each queue.
type jobs struct {
	board *Board
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (j jobs) Describe(to chan<- *prometheus.Desc) { to <- j.desc }

// Collect implements prometheus.Collector. A queue that cannot be read has no value.
func (j jobs) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	for _, q := range j.board.Queues {
		if n, err := Waiting(ctx, q.Store); err == nil {
			to <- prometheus.MustNewConstMetric(j.desc, prometheus.GaugeValue, float64(n), q.Name)
		}
	}
}
