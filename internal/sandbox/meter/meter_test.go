package meter

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/sandbox"
)

// The nearer a sandbox is to a limit and the faster it writes, the sooner it is looked
// at again, so that it can only exceed the limit by what it writes in one look.
func TestMeterLooksInTime(t *testing.T) {
	const mb = 1 << 20
	disk := sandbox.Space{Bytes: 100 << 30, FreeBytes: 80 << 30, Inodes: 1 << 20, FreeInodes: 1 << 20}
	now := time.Now()
	m := &Meter{limit: 20 * mb}
	if !m.due(now, disk, true) {
		t.Fatal("a new sandbox is not measured")
	}
	if why := m.measured(now, 0, 0, disk, disk); why != "" {
		t.Fatal(why)
	}
	// A writer of 1 GB in a second, which the meter does not know.
	written, ended := int64(0), false
	for range 1000 {
		wait := m.wait(disk)
		now = now.Add(wait)
		step := int64(wait.Seconds() * (1 << 30))
		written += step
		disk.FreeBytes -= step
		if m.due(now, disk, true) {
			if why := m.measured(now, time.Millisecond, written, disk, disk); strings.Contains(why, "Disk limit reached") {
				ended = true
				break
			}
		}
	}
	if over := written - m.limit; !ended || over > 10*mb {
		t.Errorf("ended %t, %d bytes over the limit", ended, over)
	}
	// Deleting is no reason to end it, however full it is.
	if why := m.measured(now.Add(time.Second), 0, m.used-1, disk, disk); why != "" {
		t.Errorf("after deleting: %s", why)
	}
	// Nor is what it had written when it was ended, and the little that deleting itself writes.
	m.ended(written + 5*mb)
	if why := m.measured(now.Add(2*time.Second), 0, written+5*mb+4096, disk, disk); why != "" {
		t.Errorf("while deleting: %s", why)
	}
	if why := m.measured(now.Add(3*time.Second), 0, written+8*mb, disk, disk); !strings.Contains(why, "Disk limit reached") {
		t.Errorf("it writes on above its limit: %q", why)
	}
}

// A sandbox with too many files is told their number: its bytes may be few.
func TestMeterCountsFiles(t *testing.T) {
	disk := sandbox.Space{Bytes: 100 << 30, FreeBytes: 80 << 30, Inodes: 1 << 20, FreeInodes: 1 << 20}
	now := time.Now()
	for want, u := range map[string]sandbox.Usage{
		"Disk limit reached: 2048 of 1024 files used.": {Bytes: 2048 << 14, Files: 2048},
		"Disk limit reached: 32.0 MB of 16.0 MB used.": {Bytes: 2048 << 14},
	} {
		m := &Meter{limit: 1024 << 14}
		m.measured(now, 0, 0, disk, disk)
		m.files = u
		if why := m.measured(now.Add(time.Second), 0, u.Bytes, disk, disk); !strings.HasPrefix(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}

// A disk that is nearly full ends sandboxes that still grow, whatever its own limit.
func TestMeterKeepsRoomOnTheDisk(t *testing.T) {
	now := time.Now()
	for name, disk := range map[string]sandbox.Space{
		"bytes":  {Bytes: 300 << 20, FreeBytes: 20 << 20, Inodes: 1 << 20, FreeInodes: 1 << 20},
		"inodes": {Bytes: 300 << 20, FreeBytes: 200 << 20, Inodes: 1000, FreeInodes: 50},
	} {
		m := &Meter{limit: 10 << 30}
		m.measured(now, 0, 1<<20, disk, disk)
		if why := m.measured(now.Add(time.Second), 0, 1<<20, disk, disk); why != "" {
			t.Errorf("%s: idle: %s", name, why)
		}
		if why := m.measured(now.Add(2*time.Second), 0, 2<<20, disk, disk); !strings.Contains(why, "disk is nearly full") {
			t.Errorf("%s: growing: %q", name, why)
		}
		// One that was not ended is ended later, though nothing grows on a full disk.
		if why := m.measured(now.Add(3*time.Second), 0, 2<<20, disk, disk); !strings.Contains(why, "disk is nearly full") {
			t.Errorf("%s: grown: %q", name, why)
		}
		m.ended(2 << 20)
		if why := m.measured(now.Add(4*time.Second), 0, 2<<20, disk, disk); why != "" {
			t.Errorf("%s: ended before: %s", name, why)
		}
		if !New(onDisk(disk), 10<<30).Full(t.Context()) {
			t.Errorf("%s: the next command may write", name)
		}
	}
}

// onDisk is a sandbox of which only the disk is known.
type onDisk sandbox.Space

func (d onDisk) Space() sandbox.Space { return sandbox.Space(d) }
func (d onDisk) Usage(context.Context) (sandbox.Usage, error) {
	return sandbox.Usage{}, errors.ErrUnsupported
}
func (d onDisk) Unlinked(context.Context) (int64, error) { return 0, errors.ErrUnsupported }
func (d onDisk) EndAll(context.Context, string) error    { return errors.ErrUnsupported }

// A sandbox in which nothing happens is measured ever more seldom, and at once when the
// disk loses space.
func TestMeterLeavesTheIdleAlone(t *testing.T) {
	disk := sandbox.Space{Bytes: 100 << 30, FreeBytes: 80 << 30, Inodes: 1 << 20, FreeInodes: 1 << 20}
	m, now, measured := &Meter{limit: 10 << 30}, time.Now(), 0
	for range 600 {
		if m.due(now, disk, false) {
			measured++
			m.measured(now, 0, 1<<20, disk, disk)
		}
		now = now.Add(m.wait(disk))
	}
	if measured > 30 { // in twenty minutes
		t.Errorf("an idle sandbox was measured %d times", measured)
	}
	disk.FreeBytes -= 3 << 30
	if !m.due(now, disk, false) {
		t.Error("it is not measured when the disk loses space")
	}
}

// slowBox is a sandbox on a busy machine: measuring it and ending its processes each take nearly all of the time for a measurement.
type slowBox struct{ used, ended int64 }

func (*slowBox) Space() sandbox.Space                    { return sandbox.Space{} }
func (*slowBox) Unlinked(context.Context) (int64, error) { return 0, nil }
func (b *slowBox) Usage(context.Context) (sandbox.Usage, error) {
	<-time.After(measureTime - time.Second)
	return sandbox.Usage{Bytes: b.used}, nil
}

func (b *slowBox) EndAll(ctx context.Context, _ string) error {
	select {
	case <-time.After(measureTime):
		b.ended++
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestMeterEndsOnABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &slowBox{used: 1 << 20}
		m := New(box, 20<<20)
		for range 2 {
			if err := m.remeasure(t.Context()); err != nil {
				t.Fatal(err)
			}
			box.used = 40 << 20
		}
		if box.ended != 1 {
			t.Errorf("ended %d times", box.ended)
		}
	})
}
