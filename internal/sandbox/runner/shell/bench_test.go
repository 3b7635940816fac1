package shell

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/spawn"
)

// liveBash is a bash on a terminal driven in the usual way: the floor.
type liveBash struct {
	tty  *tty
	proc *spawn.Process
	buf  []byte
}

func startBash(b *testing.B) *liveBash {
	t, inside, err := openTTY(50, 200)
	if err != nil {
		b.Fatal(err)
	}
	defer inside.Close()
	if err := t.setPlain(); err != nil {
		b.Fatal(err)
	}
	p, err := spawner.Start(spawn.Attr{
		Args: []string{"bash", "--noprofile", "--norc", "--noediting", "-i"}, Dir: "/", Env: append(os.Environ(), "PS1=<prompt>", "TERM=dumb"),
		Files: []*os.File{inside, inside, inside}, TTY: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	l := &liveBash{t, p, make([]byte, 4096)}
	l.wait(b)
	b.Cleanup(func() {
		_ = p.Signal(9)
		p.Wait()
		t.Close()
	})
	return l
}

func (l *liveBash) wait(b *testing.B) {
	var all []byte
	for !bytes.HasSuffix(all, []byte("<prompt>")) {
		n, err := l.tty.Read(l.buf)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, l.buf[:n]...)
	}
}

func (l *liveBash) run(b *testing.B, text string) {
	if _, err := l.tty.WriteString(text + "\n"); err != nil {
		b.Fatal(err)
	}
	l.wait(b)
}

// BenchmarkCommand compares a command in a running shell, as a client sees it,
// with the same in a bash on a terminal. They take turns, so that both have the
// same weather.
func BenchmarkCommand(b *testing.B) {
	for _, text := range []string{"true", "/bin/true", "echo hello"} {
		b.Run(text, func(b *testing.B) {
			live := startBash(b)
			box := open(b)
			box.do(sandbox.Command{Text: ":"}, nil)
			var floor, ours []time.Duration
			for b.Loop() {
				t0 := time.Now()
				live.run(b, text)
				t1 := time.Now()
				r, err := box.Exec(b.Context(), sandbox.Command{ID: "b" + strconv.Itoa(len(ours)), Text: text}, nil)
				if err != nil || r.Exit != 0 {
					b.Fatal(r, err)
				}
				floor, ours = append(floor, t1.Sub(t0)), append(ours, time.Since(t1))
			}
			slices.Sort(floor)
			slices.Sort(ours)
			for _, p := range []struct {
				name string
				at   int
			}{{"p50", len(ours) / 2}, {"p90", len(ours) * 9 / 10}} {
				b.ReportMetric(float64(floor[p.at].Microseconds()), p.name+"-floor-µs")
				b.ReportMetric(float64(ours[p.at].Microseconds()), p.name+"-ours-µs")
				b.ReportMetric(float64((ours[p.at] - floor[p.at]).Microseconds()), p.name+"-more-µs")
			}
			b.ReportMetric(float64(ours[len(ours)/2])/float64(floor[len(ours)/2]), "ratio")
		})
	}
}

// BenchmarkFirstCommand is a command with the start of its shell.
func BenchmarkFirstCommand(b *testing.B) {
	box := open(b)
	i := 0
	for b.Loop() {
		i++
		box.do(sandbox.Command{ID: "b" + strconv.Itoa(i), Text: "exit"}, nil)
	}
}
