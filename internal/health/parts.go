package health

import (
	"context"
	"log/slog"
	"strings"
	"time"

	api "deckhand/api/health"
	"deckhand/internal/notify"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/meter"
)

// States of parts, and of the whole.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "failed"
	Off     = "off" // not configured, or not used yet
)

// Problems are the codes of problems, each with what is wrong and what to do. The web page has its own texts.
var Problems = map[string]string{
	"database_failing":   "The database cannot be read or written. Check the disk and the server log, and run deckhand doctor on the server.",
	"database_read_only": "The database is read-only, so nothing can be changed. Mount its disk writable and restart the server.",
	"nats_offline":       "There is no connection to NATS, so servers notice each other's changes late. Check the NATS server and --nats-url.",
	"no_sandbox":         "Agents cannot run commands, because no sandbox driver works here. Run deckhand doctor on the server.",
	"engine_unreachable": "The container engine does not respond. Start it, or correct --docker-host, and check that the server's user may use its socket.",
	"model_auth":         "The provider refused the key of a user. The user must correct it in Settings, Models.",
	"model_credit":       "The provider account has no credit left. Add credit, or choose another model.",
	"model_rate":         "The provider is rate limiting requests. Calls are retried; if this continues, ask the provider for a higher limit.",
	"model_network":      "The provider cannot be reached. Check the network of the server, and the base URL of the model.",
	"model_failing":      "The last call to this provider failed. Check the status page of the provider.",
	"git_unreachable":    "The git host cannot be reached. Check the network of the server; hosts in a private network need --allow-private.",
	"git_failing":        "The git host responds with server errors. Check its status page.",
	"notify_failing":     "Most deliveries of the last hour failed. Look at the deliveries in Settings, Notifications, and check --smtp-url.",
	"sign_on_failing":    "The identity provider does not respond correctly, so users cannot log in with it. Check --oidc-issuer and the provider.",
	"disk_low":           "Less than 10% of the disk is free. Delete conversations, or enlarge the disk.",
	"disk_full":          "Less than 2% of the disk, or less than 64 MiB, is free. Below 64 MiB, agents cannot write. Delete conversations, or enlarge the disk.",
	"backup_none":        "No backup is recorded. Make one regularly with deckhand backup DIR on the server.",
	"backup_old":         "The last backup is more than 7 days old. Check that deckhand backup runs regularly.",
}

// part makes a part with a problem.
func part(id, name, status, problem, detail string) api.HealthPart {
	return api.HealthPart{ID: id, Name: name, Status: status, Problem: problem, Message: Problems[problem], Detail: detail}
}

// parts checks all parts.
func (b *Board) parts(ctx context.Context, now time.Time, h api.ServerHealth) []api.HealthPart {
	database := b.database(ctx)
	database.Version, _ = b.Database(ctx) // if the version is unknown, the part says why
	out := []api.HealthPart{database}
	if b.NATS != nil {
		out = append(out, nats(b.NATS()))
	}
	out = append(out, b.sandbox(ctx)...)
	out = append(out, b.models()...)
	out = append(out, b.git()...)
	out = append(out, b.notifications(now), b.single(ctx, now))
	for _, d := range h.Disks {
		out = append(out, disk(d))
	}
	return append(out, backup(h.LastBackupAt, now))
}

func (b *Board) database(ctx context.Context) api.HealthPart {
	if err := b.Ready(ctx); err != nil && DiskFull(b.DataDir) != nil { // the disk is reported as failed
		return part("database", "", Warning, "disk_full", err.Error())
	} else if err != nil {
		return part("database", "", Failed, "database_failing", err.Error())
	}
	if b.ReadOnly {
		return part("database", "", Failed, "database_read_only", "")
	}
	return part("database", "", OK, "", "")
}

func nats(version string) api.HealthPart {
	if version == "" {
		return part("nats", "", Warning, "nats_offline", "")
	}
	found := part("nats", "", OK, "", "")
	found.Version = "NATS " + version
	return found
}

// pingTime is how long a container engine may take to answer.
const pingTime = 2 * time.Second

// sandbox returns a part for the driver, or one for each of its container engines if there are several.
func (b *Board) sandbox(ctx context.Context) []api.HealthPart {
	if b.NoSandbox {
		return []api.HealthPart{part("sandbox", "", Failed, "no_sandbox", "")}
	}
	found := part("sandbox", b.Keeper.Name, OK, "", "")
	if l, ok := b.Keeper.Driver.(sandbox.EngineLister); ok {
		short, cancel := context.WithTimeout(ctx, pingTime)
		engines := l.Engines(short)
		cancel()
		if len(engines) > 1 {
			return engineParts(engines)
		}
		found.Version = engines[0].Version
	}
	if p, ok := b.Keeper.Driver.(sandbox.Pinger); ok {
		short, cancel := context.WithTimeout(ctx, pingTime)
		defer cancel()
		if err := p.Ping(short); err != nil {
			return []api.HealthPart{part("sandbox", b.Keeper.Name, Failed, "engine_unreachable", err.Error())}
		}
	}
	return []api.HealthPart{found}
}

// engineParts describes the engines. One that does not respond is a warning as long as another one works.
func engineParts(engines []sandbox.Engine) []api.HealthPart {
	status := Failed
	for _, e := range engines {
		if e.Error == "" {
			status = Warning
		}
	}
	out := make([]api.HealthPart, len(engines))
	for i, e := range engines {
		if out[i] = part("sandbox", e.Address, OK, "", ""); e.Error != "" {
			out[i] = part("sandbox", e.Address, status, "engine_unreachable", e.Error)
		}
		out[i].Version = e.Version
	}
	return out
}

// modelProblems are the problems of model calls, by the class of the error.
var modelProblems = map[string]string{"auth": "model_auth", "credit": "model_credit", "rate": "model_rate", "network": "model_network"}

// models are the providers that were called since the start.
func (b *Board) models() []api.HealthPart {
	var out []api.HealthPart
	for _, p := range b.Activity.Providers() {
		found := part("model", p.Name, OK, "", "")
		if p.Class != "" {
			problem, known := modelProblems[p.Class]
			if !known {
				problem = "model_failing"
			}
			found = part("model", p.Name, Warning, problem, "")
		}
		found.Attempts, found.Failures = p.Calls, p.Fails
		out = append(out, found)
	}
	if out == nil {
		out = []api.HealthPart{part("model", "", Off, "", "")}
	}
	return out
}

func (b *Board) git() []api.HealthPart {
	var out []api.HealthPart
	for _, h := range b.Git.List() {
		switch h.Problem {
		case "":
			out = append(out, part("git", h.Name, OK, "", ""))
		case "network":
			out = append(out, part("git", h.Name, Warning, "git_unreachable", ""))
		default:
			out = append(out, part("git", h.Name, Warning, "git_failing", ""))
		}
	}
	if out == nil {
		out = []api.HealthPart{part("git", "", Off, "", "")}
	}
	return out
}

// window remembers the counts of deliveries of half an hour ago and before.
type window struct {
	old, new notify.Stats
	newAt    time.Time
}

// half of the window is how far its beginning may be off.
const half = 30 * time.Minute

// since returns what was delivered and what failed in the last half to full hour.
func (w *window) since(s notify.Stats, now time.Time) (delivered, failed int64) {
	if now.Sub(w.newAt) >= half {
		w.old, w.new, w.newAt = w.new, s, now
	}
	return s.Delivered - w.old.Delivered, s.Failed - w.old.Failed
}

func (b *Board) notifications(now time.Time) api.HealthPart {
	delivered, failed := b.sent.since(b.Notified(), now)
	found := part("notifications", "", OK, "", "")
	switch {
	case delivered+failed == 0:
		found.Status = Off
	case failed > delivered:
		found = part("notifications", "", Warning, "notify_failing", "")
	}
	found.Attempts, found.Failures = delivered+failed, failed
	return found
}

// cached is the result of a check that asks another server.
type cached struct {
	at  time.Time
	err error
}

// signOnEvery is how often the identity provider is asked, and signOnTime how long it may take.
const (
	signOnEvery = time.Minute
	signOnTime  = 3 * time.Second
)

func (b *Board) single(ctx context.Context, now time.Time) api.HealthPart {
	if b.SignOn == nil {
		return part("sign_on", "", Off, "", "")
	}
	if now.Sub(b.signOn.at) >= signOnEvery {
		asked, cancel := context.WithTimeout(ctx, signOnTime)
		b.signOn = cached{at: now, err: b.SignOn(asked)}
		cancel()
	}
	if b.signOn.err != nil {
		return part("sign_on", "", Failed, "sign_on_failing", b.signOn.err.Error())
	}
	return part("sign_on", "", OK, "", "")
}

func disk(d api.DiskSpace) api.HealthPart {
	switch {
	case d.Total <= 0:
		return part("disk", d.Path, OK, "", "")
	case d.Free < d.Total/50 || meter.Tight(sandbox.Space{Bytes: d.Total, FreeBytes: d.Free}):
		return part("disk", d.Path, Failed, "disk_full", "")
	case d.Free < d.Total/10:
		return part("disk", d.Path, Warning, "disk_low", "")
	}
	return part("disk", d.Path, OK, "", "")
}

// backupAge is how old the last backup may be.
const backupAge = 7 * 24 * time.Hour

func backup(last *time.Time, now time.Time) api.HealthPart {
	switch {
	case last == nil:
		return part("backup", "", Off, "backup_none", "")
	case now.Sub(*last) > backupAge:
		return part("backup", "", Warning, "backup_old", "")
	}
	return part("backup", "", OK, "", "")
}

// levelName is a log level as flags have it.
func levelName(l *slog.LevelVar) string { return strings.ToLower(l.Level().String()) }
