package meter

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"deckhand/internal/sandbox"
)

// Sandbox is what a Meter asks about a sandbox, and does to it.
type Sandbox interface {
	// Space is what is left on the disk of the sandbox, zero if it is unknown.
	Space() sandbox.Space
	// Usage counts what the files of the sandbox take up.
	Usage(ctx context.Context) (sandbox.Usage, error)
	// Unlinked counts the bytes of deleted files that are open.
	Unlinked(ctx context.Context) (int64, error)
	// EndAll ends everything that runs in the sandbox, and tells it why.
	EndAll(ctx context.Context, why string) error
}

// Holder is a Sandbox that can be frozen while it is measured.
type Holder interface {
	Hold(ctx context.Context) (sandbox.Held, error)
}

// Observer is a Sandbox that is told what was measured, and when everything was ended.
type Observer interface {
	Measured(used int64)
	Ended(why string, used, limit, free int64)
}

// New returns a meter for a sandbox that may take up so many bytes.
func New(box Sandbox, limit int64) *Meter { return &Meter{box: box, limit: limit} }

// Watch ends what runs in a sandbox that writes more than it may, until done is closed or ctx
// ends. A measurement that failed is passed to failed.
func (m *Meter) Watch(ctx context.Context, done <-chan struct{}, inUse func() bool, failed func(error)) {
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-done:
			return
		case <-ctx.Done():
			return
		}
		busy := inUse()
		m.mu.Lock()
		space := m.box.Space()
		if m.due(time.Now(), space, busy) {
			if err := m.remeasure(ctx); err != nil {
				failed(err)
			}
			space = m.box.Space()
		}
		wait := m.wait(space)
		m.mu.Unlock()
		look.Reset(wait)
	}
}

// Full reports whether nothing may be written in a sandbox: it is above its limit, or the disk is
// nearly full. It is asked before each command, since what the one before wrote may not have been
// measured yet. It costs nothing as long as little is written.
func (m *Meter) Full(ctx context.Context) bool {
	space := m.box.Space()
	if Tight(space) {
		return true
	}
	if m.above.Load() {
		m.mu.Lock() // what is being measured may be from before a deletion
		space = m.box.Space()
	} else if !m.mu.TryLock() {
		return false // it is being measured, and ended if that is too much
	}
	defer m.mu.Unlock()
	if m.stale(space) {
		_ = m.remeasure(ctx) // Watch reports errors
	}
	return m.above.Load()
}

// remeasure measures a sandbox. It is called with mu held.
func (m *Meter) remeasure(ctx context.Context) error {
	err := m.measure(ctx)
	m.above.Store(m.peak > 0)
	return err
}

// measure measures a sandbox, and ends what runs in it if that is too much.
func (m *Meter) measure(whole context.Context) error {
	ctx, cancel := context.WithTimeout(whole, measureTime)
	defer cancel()
	begun, space := time.Now(), m.box.Space()
	held := m.hold(ctx, space)
	used, err := m.usage(ctx, space, held)
	if err != nil {
		m.at = time.Now() // not again at once
		return errors.Join(err, held.Release())
	}
	observer, observed := m.box.(Observer)
	if observed {
		observer.Measured(used)
	}
	why := m.measured(time.Now(), time.Since(begun), used, space, m.box.Space())
	if why == "" {
		return held.Release()
	}
	// On a busy machine the time is nearly over, and then the user would not see why the processes ended.
	ending, cancelEnd := context.WithTimeout(whole, endTime)
	defer cancelEnd()
	if err = held.End(func() error { return m.box.EndAll(ending, why) }); err == nil {
		// It wrote on until it was ended. What deletes files from here on must not be ended for that.
		if used, err = m.usage(ending, m.box.Space(), unheld{}); err == nil {
			m.ended(used)
		}
	}
	if observed {
		observer.Ended(why, used, m.limit, space.FreeBytes)
	}
	return err
}

// hold stops a sandbox that could exceed its limit while it is measured, where that can be done.
func (m *Meter) hold(ctx context.Context, now sandbox.Space) sandbox.Held {
	h, ok := m.box.(Holder)
	if !ok || !m.near(now) {
		return unheld{}
	}
	held, err := h.Hold(ctx)
	if err != nil {
		return unheld{}
	}
	return held
}

// unheld is a sandbox that goes on while it is measured.
type unheld struct{}

func (unheld) Usage(context.Context) (files sandbox.Usage, deleted int64, err error) {
	return sandbox.Usage{}, 0, errors.ErrUnsupported
}
func (unheld) Release() error             { return nil }
func (unheld) End(end func() error) error { return end() }

// usage counts what a sandbox takes up. Its runner is asked for deleted files that are
// open now and then, and whenever the disk has lost more than its files account for.
// What is in folders that cannot be read is taken to be all that the disk has lost.
func (m *Meter) usage(ctx context.Context, space sandbox.Space, held sandbox.Held) (int64, error) {
	counted, hidden, err := held.Usage(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		hidden = -1
		counted, err = m.box.Usage(ctx)
	}
	gone := m.space.FreeBytes - space.FreeBytes
	if errors.Is(err, fs.ErrPermission) && space.Bytes > 0 {
		if !m.known {
			gone = 0
		}
		return max(m.used+gone, 0), nil
	}
	if err != nil {
		return 0, err
	}
	m.files = counted
	if hidden >= 0 {
		m.hidden, m.hiddenAt = hidden, time.Now()
		return counted.Bytes + hidden, nil
	}
	used := counted.Bytes
	lost := gone - (used + m.hidden - m.used)
	if time.Since(m.hiddenAt) >= measureEvery || m.known && lost > m.left(m.space)/approach {
		if m.hidden, err = m.box.Unlinked(ctx); err != nil {
			return 0, err
		}
		m.hiddenAt = time.Now()
	}
	return used + m.hidden, nil
}
