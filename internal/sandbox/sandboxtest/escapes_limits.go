package sandboxtest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
)

// forkBomb: a sandbox that starts too many processes harms only itself.
func forkBomb(t *testing.T, o Options) {
	const most = 100
	b := open(t, o, sandbox.Spec{Limits: sandbox.Limits{Processes: most}}, nil)
	h := b.program(t)
	for range 2 {
		before := processCount(t)
		// It is bounded, so that a driver without limits ends the test and not the machine.
		r := b.sh(t, "%s forkbomb 400", h)
		if r.Exit != 1 {
			t.Fatalf("a fork bomb was not stopped (exit %d): %s", r.Exit, shorten(r.Output))
		}
		if n := after(t, r.Output, "started"); n >= most {
			t.Errorf("%d processes were started, though %d is the most", n, most)
		}
		if grown := processCount(t) - before; grown > most {
			t.Errorf("%d processes are left on this machine", grown)
		}
		same(t, "afterwards", b.ok(t, "echo fine | cat"), "fine")
	}
	// One that goes on: the sandbox can be rescued from outside.
	g := b.start(t, sandbox.Command{Shell: "bomb", Text: "echo ready; while :; do sleep 1000 & done"})
	g.shows(t, "ready")
	must(t, b.KillAll(within(t)))
	g.wait(t)
	same(t, "afterwards", b.ok(t, "echo fine | cat"), "fine")
}

// full: what keeps a sandbox at its limit of processes is ended, and nothing else: the shell and
// the commands after it are not.
func full(t *testing.T, o Options) {
	const most = 100
	b := open(t, o, sandbox.Spec{Limits: sandbox.Limits{Processes: most}}, nil)
	_, err := b.Vitals(within(t), most)
	must(t, err)
	b.ok(t, "cd /tmp; kept=7")
	// Its shell ends when it can start nothing, and leaves them all behind.
	b.sh(t, "sh -c 'while :; do sleep 1000 & done'")
	said := ""
	for ctx := within(t); !strings.Contains(said, "Process limit reached: background processes of an earlier command"); {
		if ctx.Err() != nil {
			t.Fatalf("the processes are not ended: %s", shorten(said))
		}
		said = b.ok(t, "read -r _ < /proc/uptime; echo $kept") // starts nothing
		if !strings.HasSuffix(said, "7") {
			t.Fatalf("the shell is another: %s", said)
		}
	}
	same(t, "afterwards", b.ok(t, "echo $kept | cat; pwd"), "7\n/tmp")
	v, err := b.Vitals(within(t), most)
	must(t, err)
	if !strings.Contains(v.Ended, "Process limit reached") || v.Processes > most/2 {
		t.Errorf("it says %+v", v)
	}
}

// load: the processor time and the memory of what runs in a sandbox can be asked for, and asking takes
// nothing from those who ask for the vitals.
func load(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	before, err := b.Load(within(t))
	must(t, err)
	b.ok(t, "kept=$(head -c 30000000 /dev/zero | tr '\\0' x); i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done")
	after, err := b.Load(within(t))
	must(t, err)
	if after.CPU <= before.CPU || after.Memory < before.Memory+25_000_000 || after.Processes < 1 {
		t.Errorf("the load was %+v and then %+v", before, after)
	}
}

func processCount(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err)
	n := 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err == nil {
			n++
		}
	}
	return n
}

// memoryBomb: a process that takes too much memory ends, and no other does.
func memoryBomb(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{Limits: sandbox.Limits{Memory: 128 << 20}}, nil)
	h := b.program(t)
	b.ok(t, "%s membomb %d", h, 32<<20) // what is allowed works
	boot := b.Info().Boot
	for range 2 {
		if r := b.sh(t, "%s membomb %d", h, 600<<20); r.Exit == 0 {
			t.Fatalf("600 MiB were had where 128 MiB are the most")
		}
		same(t, "afterwards", b.ok(t, "echo fine"), "fine")
	}
	// In pieces, each of which is allowed.
	b.sh(t, "for i in 1 2 3 4 5 6 7 8 9 10; do %s membomb %d & done; wait", h, 48<<20)
	same(t, "afterwards", b.ok(t, "echo fine"), "fine")
	c := attach(t, o, b.driver, b.handle)
	same(t, "the runner survived", c.Info().Boot, boot)
}

// processors: two busy threads get no more than was given.
func processors(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{Limits: sandbox.Limits{CPUs: 0.25}}, nil)
	r := b.sh(t, "%s burn 2", b.program(t))
	if n := after(t, r.Output, "percent"); n > 60 {
		t.Errorf("a quarter of a processor was given and %d %% were had", n)
	}
}

// diskFill: no file grows beyond what the sandbox may write.
func diskFill(t *testing.T, o Options) {
	const most = 20 << 20
	b := open(t, o, sandbox.Spec{Limits: sandbox.Limits{Disk: most}}, nil)
	for _, dir := range []string{b.root, "/tmp"} {
		b.ok(t, "cd %s && head -c %d /dev/zero > fits", dir, most/4)
		if r := b.sh(t, "head -c %d /dev/zero > large", 3*most); r.Exit == 0 {
			t.Errorf("%d bytes were written to %s, where %d are the most", 3*most, dir, most)
		}
		size, err := strconv.ParseInt(b.ok(t, "wc -c < large | tr -d ' '"), 10, 64)
		must(t, err)
		if size > most {
			t.Errorf("%d bytes are in %s, where %d are the most", size, dir, most)
		}
		b.ok(t, "rm -f large fits")
	}
	same(t, "afterwards", b.ok(t, "echo fine > file && cat file"), "fine")
}

// killRunner: whatever is sent to the runner from inside, it survives, or its
// loss is noticed and another can be had.
func killRunner(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	b.put(t, "kept", "content")
	try := func(text string) {
		t.Helper()
		ctx := within(t)
		_, err := b.Exec(ctx, sandbox.Command{ID: newID(t), Shell: "killer", Text: text}, nil)
		if ctx.Err() != nil {
			t.Fatalf("%s: the sandbox neither answers nor is gone", text)
		}
		if err == nil {
			r, err := b.Exec(ctx, sandbox.Command{ID: newID(t), Text: "cat kept"}, nil)
			if err == nil {
				same(t, "after "+text, r.Output, "content")
				return
			}
		}
		t.Logf("%s ends the runner", text)
		select {
		case <-b.Done():
		case <-ctx.Done():
			t.Fatalf("%s: the death of the runner was not noticed", text)
		}
		b = enter(t, o, b.driver, sandbox.Spec{})
		same(t, "after "+text, b.ok(t, "cat kept"), "content")
	}
	for sig := 1; sig <= 64; sig++ {
		if sig != 32 && sig != 33 { // the C library's own
			s := strconv.Itoa(sig)
			try("kill -" + s + " 1; kill -" + s + " $PPID; true")
		}
	}
	try("kill -9 -1")
	try("kill -STOP -1; kill -CONT -1")
	try("kill -9 $PPID 1 2 3 4 5 6 7 8 9 10")
	is(t, b.driver, map[string]bool{"box": true})
}
