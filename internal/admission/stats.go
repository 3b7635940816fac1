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

// Use is the state of the queue of a server.
type Use struct {
	Limits
	Running, Waiting int
	// WaitingBy is Waiting by class: people and automations.
	WaitingBy [2]int
	// Users are the users with running or waiting conversations on any server, those with the most waiting ones first.
	Users []UserUse
}

// UserUse counts the conversations of a user. Reason is the limit that they wait for, "" if none waits.
type UserUse struct {
	User             string
	Running, Waiting int
	Reason           string
}

// Use returns the state of the queue.
func (g *Gate) Use() Use {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.line
	out := Use{Limits: l.limits, Running: l.used.total, Waiting: len(l.waiting)}
	users := map[string]*UserUse{}
	of := func(user string) *UserUse {
		if users[user] == nil {
			users[user] = &UserUse{User: user, Running: l.runs(user)}
		}
		return users[user]
	}
	for user := range l.used.users {
		of(user)
	}
	for _, o := range l.others {
		for user := range o.running.users {
			of(user)
		}
		for _, s := range o.sessions {
			if s.Position > 0 && !s.Shared {
				u := of(s.Owner)
				u.Waiting, u.Reason = u.Waiting+1, s.Reason
			}
		}
	}
	for c, queues := range l.queues {
		for user, q := range queues {
			u := of(user)
			u.Waiting += len(q)
			out.WaitingBy[c] += len(q)
			if u.Reason = ServerLimit; l.runs(user) >= l.limits.RunningPerUser {
				u.Reason = UserLimit
			}
		}
	}
	for _, u := range users {
		out.Users = append(out.Users, *u)
	}
	slices.SortFunc(out.Users, func(a, b UserUse) int {
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
	use := c.gate.Use()
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	gauge(runningDesc, use.Running)
	for class, n := range use.WaitingBy {
		gauge(waitingDesc, n, classNames[class])
	}
	gauge(limitDesc, use.Limits.Running, "running")
	gauge(limitDesc, use.RunningPerUser, "running_per_user")
	gauge(limitDesc, use.Queued, "queued")
	gauge(limitDesc, use.QueuedPerUser, "queued_per_user")
}
