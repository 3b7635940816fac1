package server

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

func (*Handlers) alive(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.Alive, error) {
	return api.Alive{Status: "ok"}, nil
}

func (*Handlers) health(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (string, error) {
	return "OK", nil
}

func (d *Handlers) ready(ctx context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.Alive, error) {
	if d.Ready != nil {
		if err := d.Ready(ctx); err != nil {
			return api.Alive{}, rest.Fail(http.StatusServiceUnavailable, api.CodeUnavailable, "Not ready: "+err.Error())
		}
	}
	return api.Alive{Status: "ok"}, nil
}

func (d *Handlers) serverInfo(_ context.Context, _ *rest.Call, _ rest.None, _ rest.None) (api.ServerInfo, error) {
	now := time.Now()
	out := api.ServerInfo{Version: d.Version, Uptime: now.Sub(d.started).Seconds(), IdleTime: now.Sub(d.LastUsed()).Seconds()}
	res := &out.Resources
	res.CPUPercent = d.cpu.percent(now)
	page := int64(os.Getpagesize())
	if f := fields("/proc/self/statm"); len(f) > 1 {
		res.Memory.VMS, res.Memory.RSS = number64(f[0])*page, number64(f[1])*page
	}
	if f := fields("/proc/meminfo"); len(f) > 1 && f[0] == "MemTotal:" && number64(f[1]) > 0 {
		res.Memory.Percent = 100 * float64(res.Memory.RSS) / float64(number64(f[1])<<10)
	}
	var fs syscall.Statfs_t
	if syscall.Statfs(d.DataDir, &fs) == nil && fs.Blocks > 0 {
		block := int64(fs.Bsize)
		res.Disk.Total, res.Disk.Free = int64(fs.Blocks)*block, int64(fs.Bavail)*block
		res.Disk.Used = res.Disk.Total - int64(fs.Bfree)*block
		res.Disk.Percent = 100 * float64(res.Disk.Used) / float64(res.Disk.Total)
	}
	for line := range strings.SplitSeq(content("/proc/self/io"), "\n") {
		switch name, value, _ := strings.Cut(line, ": "); name {
		case "read_bytes":
			res.IO.ReadBytes = number64(value)
		case "write_bytes":
			res.IO.WriteBytes = number64(value)
		}
	}
	return out, nil
}

func content(path string) string {
	b, _ := os.ReadFile(path)
	return string(b)
}

func fields(path string) []string { return strings.Fields(content(path)) }

func number64(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n
}

// cpuMeter remembers the last measurement, so that the next one covers the time since.
type cpuMeter struct {
	mu   sync.Mutex
	at   time.Time
	used time.Duration
}

func (m *cpuMeter) percent(now time.Time) float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	used := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	m.mu.Lock()
	defer m.mu.Unlock()
	busy, since := used-m.used, now.Sub(m.at)
	m.at, m.used = now, used
	if since <= 0 {
		return 0
	}
	return 100 * float64(busy) / float64(since)
}
