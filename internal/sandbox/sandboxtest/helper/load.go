package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// flood prints so many bytes in lines, the first and the last of which can be told.
func flood(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	const first, last = "the first line\n", "the last line\n"
	line := strings.Repeat("0123456789", 8) + "\n"
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	fmt.Fprint(w, first)
	for left := n - len(first) - len(last); left > 0; left -= len(line) {
		fmt.Fprint(w, line[max(0, len(line)-left):])
	}
	fmt.Fprint(w, last)
	return nil
}

// hold takes a lock on a file, says so, and keeps it until it is killed. It
// ignores what ordinary processes die of.
func hold(args []string) error {
	f, err := lock(args)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Println("held")
	return pause(nil)
}

// locked tries to take the lock that hold has.
func locked(args []string) error {
	f, err := lock(args)
	if err != nil {
		return err
	}
	fmt.Println("free")
	return f.Close()
}

func lock(args []string) (*os.File, error) {
	name, err := text(args, 0)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// pause waits until it is killed.
func pause([]string) error {
	for {
		if err := unix.Pause(); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// swap changes two names with each other over and over, until it is killed.
func swap(args []string) error {
	a, err := text(args, 0)
	if err != nil {
		return err
	}
	b, err := text(args, 1)
	if err != nil {
		return err
	}
	fmt.Println("swapping")
	for {
		for _, step := range [][2]string{{a, a + ".swap"}, {b, a}, {a + ".swap", b}} {
			if err := os.Rename(step[0], step[1]); err != nil {
				return err
			}
		}
	}
}

// forkBomb starts as many processes as it gets, at most so many, and says how
// many those were. They are gone when it ends.
func forkBomb(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var started []*exec.Cmd
	defer func() {
		for _, c := range started {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	for range n {
		c := exec.Command(self, "pause")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			fmt.Println("started", len(started))
			return err
		}
		started = append(started, c)
	}
	fmt.Println("started", len(started))
	return nil
}

// memoryBomb takes so many bytes of memory and uses them.
func memoryBomb(args []string) error {
	n, err := number(args, 0)
	if err != nil {
		return err
	}
	const step = 16 << 20
	for taken := 0; taken < n; taken += step {
		b, err := unix.Mmap(-1, 0, step, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		for i := 0; i < step; i += 4096 {
			b[i] = 1
		}
	}
	fmt.Println("took", n)
	return nil
}

// burn keeps so many threads busy for a while, and says how many processors'
// worth of time they got, in percent.
func burn(args []string) error {
	threads, err := number(args, 0)
	if err != nil {
		return err
	}
	const span = 1500 * time.Millisecond
	begin := time.Now()
	done := make(chan struct{})
	for range threads {
		go func() {
			for time.Since(begin) < span {
			}
			done <- struct{}{}
		}()
	}
	for range threads {
		<-done
	}
	took := time.Since(begin)
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	cpu := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	fmt.Println("percent", int(100*cpu/took))
	return nil
}
