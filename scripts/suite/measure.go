package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// measure runs a test program and then prints the processor time that it and
// its children took, in the form that report.note reads.
func measure(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// go test ends what takes too long with a signal to this process.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		return 2
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait()
	if cmd.ProcessState == nil {
		return 2
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("%s%s\n", cpuMark, cpu.Round(time.Millisecond))
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 2
}

const cpuMark = "suite-cpu "
