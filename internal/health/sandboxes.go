package health

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	api "deckhand/api/health"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

const (
	// most is how many sandboxes are listed.
	most = 200
	// atOnce is how many are asked at the same time, and within is how long each may take to answer.
	atOnce = 16
	within = 2 * time.Second
)

// sample is what a sandbox had used at a moment.
type sample struct {
	box *sandbox.Sandbox
	at  time.Time
	cpu time.Duration
}

// sandboxes asks those that run what they use.
func (b *Board) sandboxes(ctx context.Context, now time.Time) api.SandboxesInUse {
	running, suspended := b.Keeper.Attached()
	out := api.SandboxesInUse{Driver: b.Keeper.Name, Suspended: suspended, Total: len(running), Running: make([]api.SandboxUse, len(running))}
	vitals := make([]sandbox.Vitals, len(running))
	var group sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i, r := range running {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			if v, err := r.Box.Load(ctx); err == nil {
				vitals[i] = v
			}
		})
	}
	group.Wait()
	samples := map[session.ID]sample{}
	for i, r := range running {
		out.Running[i] = b.use(r, vitals[i], now, samples)
	}
	b.cpu = samples
	slices.SortFunc(out.Running, func(x, y api.SandboxUse) int {
		return cmp.Or(cmp.Compare(value(y.Memory), value(x.Memory)), cmp.Compare(x.ConversationID, y.ConversationID))
	})
	out.Running = out.Running[:min(len(out.Running), most)]
	return out
}

func value(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// use describes a sandbox. Its processor use is that since the last look.
func (b *Board) use(r workspace.Attached, v sandbox.Vitals, now time.Time, samples map[session.ID]sample) api.SandboxUse {
	out := api.SandboxUse{ConversationID: string(r.ID), User: r.Owner, CPULimit: r.Limits.CPUs, MemoryLimit: r.Limits.Memory, DiskLimit: r.Limits.Disk}
	if r.Disk >= 0 {
		out.Disk = &r.Disk
	}
	if v.Memory == 0 { // no answer, or one of an older runner
		return out
	}
	out.Memory, out.Processes = &v.Memory, &v.Processes
	samples[r.ID] = sample{box: r.Box, at: now, cpu: v.CPU}
	if was := b.cpu[r.ID]; was.box == r.Box && now.After(was.at) {
		cpus := max(0, float64(v.CPU-was.cpu)/float64(now.Sub(was.at)))
		out.CPUs = &cpus
	}
	return out
}

// EndedByAdmin is the reason of a conversation that was stopped with its sandbox.
const EndedByAdmin = "an administrator ended the sandbox"

// endTime is how long ending may take.
const endTime = time.Minute

// End ends the sandbox of a conversation. The conversation is stopped with the reason; its next message starts a new
// sandbox with the same files. It is idempotent. session.ErrNotFound if there is no such conversation.
func (b *Board) End(ctx context.Context, admin string, id session.ID) error {
	row, err := b.Conversations.Index.Row(ctx, id)
	if err != nil {
		return err
	}
	if row.Deleted {
		return session.ErrNotFound
	}
	if _, _, err := b.Conversations.Stop(ctx, row.Owner, id, EndedByAdmin); err != nil {
		return err
	}
	// A stopped conversation may also have a sandbox, for an open terminal or a file view.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := b.Keeper.Driver.Stop(ctx, sandbox.Handle{Driver: b.Keeper.Name, ID: string(id)}); err != nil {
		return err
	}
	b.Logger.WarnContext(ctx, "sandbox ended by an administrator", "admin", admin, "owner", row.Owner, "session", id)
	return nil
}
