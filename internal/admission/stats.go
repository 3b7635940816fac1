package admission

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// stats are the metrics of a queue. Their labels contain no users or conversations.
type stats struct {
	wait     *prometheus.HistogramVec
	refusals *prometheus.CounterVec
	yields   prometheus.Counter
}

var classNames = [classes]string{"person", "automation"}

func newStats() stats {
	s := stats{
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "deckhand_queue_wait_seconds", Help: "Time that conversations waited for a slot, by sender of the message: person or automation.",
			Buckets: []float64{.001, .01, .1, 1, 5, 15, 60, 300, 900, 3600, 14400}}, []string{"class"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "deckhand_queue_refused_total", Help: "Messages refused because the queue was full, by limit: server or user."}, []string{"limit"}),
		yields:   prometheus.NewCounter(prometheus.CounterOpts{Name: "deckhand_queue_yielded_total", Help: "Turns that yielded their slot to another conversation and continued later."}),
	}
	for _, limit := range []string{"server", "user"} {
		s.refusals.WithLabelValues(limit)
	}
	for _, class := range classNames {
		s.wait.WithLabelValues(class)
	}
	return s
}

func (s stats) waited(c class, d time.Duration) {
	s.wait.WithLabelValues(classNames[c]).Observe(d.Seconds())
}

func (s stats) refused(user bool) {
	limit := "server"
	if user {
		limit = "user"
	}
	s.refusals.WithLabelValues(limit).Inc()
}

func (s stats) yielded(gave bool) {
	if gave {
		s.yields.Inc()
	}
}

// Status is the state of the queue of a server.
type Status struct {
	Limits
	Running, Waiting int
	// WaitingBy is Waiting by class: people and automations.
	WaitingBy [2]int
	// Users are the users with running or waiting conversations on any server, those with the most waiting ones first.
	Users []UserCount
}

// UserCount counts the conversations of a user. Reason is the limit that they wait for, "" if none waits.
type UserCount struct {
	User             string
	Running, Waiting int
	Reason           string
}

// Status returns the state of the queue.
func (g *Gate) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.line
	out := Status{Limits: l.limits, Running: l.used.total, Waiting: len(l.waiting)}
	users := map[string]*UserCount{}
	of := func(user string) *UserCount {
		if users[user] == nil {
			users[user] = &UserCount{User: user, Running: l.runs.users[user]}
		}
		return users[user]
	}
	for user := range l.runs.users {
		of(user)
	}
	for _, p := range l.others {
		for _, i := range p.items {
			if i.Position > 0 && !i.Shared {
				u := of(i.Owner)
				u.Waiting, u.Reason = u.Waiting+1, i.Reason
			}
		}
	}
	for c, queues := range l.queues {
		for user, q := range queues {
			u := of(user)
			u.Waiting += len(q)
			out.WaitingBy[c] += len(q)
			if u.Reason = ServerLimit; l.runs.users[user] >= l.limits.RunningPerUser {
				u.Reason = UserLimit
			}
		}
	}
	for _, u := range users {
		out.Users = append(out.Users, *u)
	}
	slices.SortFunc(out.Users, func(a, b UserCount) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(b.Running, a.Running), cmp.Compare(a.User, b.User))
	})
	return out
}

// Metrics returns the metrics of the queue.
func (g *Gate) Metrics() []prometheus.Collector {
	return []prometheus.Collector{g.stats.wait, g.stats.refusals, g.stats.yields, collector{g}}
}

// collector reads the queue on each scrape.
type collector struct{ gate *Gate }

var (
	runningDesc = prometheus.NewDesc("deckhand_queue_running", "Running conversations: those whose agent has a turn in progress.", nil, nil)
	waitingDesc = prometheus.NewDesc("deckhand_queue_waiting", "Conversations that wait for a free slot, by sender of the message: person or automation.", []string{"class"}, nil)
	limitDesc   = prometheus.NewDesc("deckhand_queue_limit", "Limits on conversations: running, running_per_user, queued or queued_per_user.", []string{"limit"}, nil)
)

// Describe implements prometheus.Collector.
func (collector) Describe(to chan<- *prometheus.Desc) {
	to <- runningDesc
	to <- waitingDesc
	to <- limitDesc
}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	status := c.gate.Status()
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(runningDesc, status.Running)
	for class, n := range status.WaitingBy {
		gauge(waitingDesc, n, classNames[class])
	}
	gauge(limitDesc, status.Limits.Running, "running")
	gauge(limitDesc, status.RunningPerUser, "running_per_user")
	gauge(limitDesc, status.Queued, "queued")
	gauge(limitDesc, status.QueuedPerUser, "queued_per_user")
}
