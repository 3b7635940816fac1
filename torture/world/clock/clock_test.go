//go:build linux && amd64

package clock

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/soak"
)

// asTeller makes the test binary tell the time for each line of input.
const asTeller = "DECKHAND_CLOCK_TELLER"

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	Run()
	if os.Getenv(asTeller) != "" {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			fmt.Println(time.Now().Unix())
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The clock of a program jumps forwards and backwards while it runs, and that of the machine does not.
func TestSet(t *testing.T) {
	soak.NotShort(t, "starts a process")
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asTeller+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var c Clock
	if err := c.Start(cmd, cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	answers := bufio.NewReader(out)
	for _, offset := range []time.Duration{0, 3 * time.Hour, -48 * time.Hour, 0} {
		c.Set(offset)
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		got, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if want := time.Now().Add(offset).Unix(); err != nil || math.Abs(float64(got-want)) > 600 {
			t.Errorf("with an offset of %v it says %d, wanted about %d: %v", offset, got, want, err)
		}
	}
}
