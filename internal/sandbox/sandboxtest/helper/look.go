package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inherited lists the files that this process was given beside the first three.
// What Go opens for itself is closed on exec, and so are not those that were
// inherited over one.
func inherited() []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		to, _ := os.Readlink("/proc/self/fd/" + e.Name())
		out = append(out, e.Name()+" "+to)
	}
	return out
}

// descriptors prints what was inherited.
func descriptors([]string) error {
	for _, line := range inherited() {
		fmt.Println("inherited", line)
	}
	return nil
}

// tooMany are folders that would take long to search and hold no secret.
var tooMany = map[string]bool{"/proc": true, "/sys": true, "/usr": true, "/bin": true, "/lib": true, "/lib64": true, "/sbin": true}

// find prints every path down to a depth whose name contains one of the words.
func find(args []string) error {
	depth, err := number(args, 0)
	if err != nil {
		return err
	}
	seen := 0
	err = filepath.WalkDir("/", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read holds no find
		}
		seen++
		for _, word := range args[1:] {
			if strings.Contains(filepath.Base(path), word) {
				fmt.Println("found", path)
			}
		}
		if d.IsDir() && (tooMany[path] || strings.Count(path, "/") > depth) {
			return fs.SkipDir
		}
		return nil
	})
	fmt.Println("searched", seen)
	return err
}

// processes prints every process that can be seen, with its words.
func processes([]string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		words, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		fmt.Println("process", e.Name(), strings.ReplaceAll(string(words), "\x00", " "))
	}
	return nil
}

// open opens a file (read or write) and does nothing with it: some of those
// that the suite tries would end the machine.
func open(args []string) error {
	mode, err := text(args, 0)
	if err != nil {
		return err
	}
	name, err := text(args, 1)
	if err != nil {
		return err
	}
	flags := map[string]int{"read": unix.O_RDONLY, "write": unix.O_WRONLY}
	how, ok := flags[mode]
	if !ok {
		return fmt.Errorf("%w: read or write", errUsage)
	}
	fd, err := unix.Open(name, how|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if mode == "read" {
		// Some files of /proc open for all users and refuse to be read.
		var b [64]byte
		n, err := unix.Read(fd, b[:])
		if err != nil {
			return err
		}
		if n == 0 {
			fmt.Println("empty")
			return nil
		}
	}
	fmt.Println("opened", name)
	return nil
}

// write writes a word to a file.
func write(args []string) error {
	name, err := text(args, 0)
	if err != nil {
		return err
	}
	word, err := text(args, 1)
	if err != nil {
		return err
	}
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(word))
	return err
}

// rights says who we are and what we may.
func rights([]string) error {
	fmt.Println(os.Getuid(), os.Geteuid(), os.Getgid(), os.Getegid())
	status, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "Cap") {
			fmt.Print(line)
		}
	}
	return err
}

// signalProcess sends a signal to a process.
func signalProcess(args []string) error {
	sig, err := number(args, 0)
	if err != nil {
		return err
	}
	pid, err := number(args, 1)
	if err != nil {
		return err
	}
	return unix.Kill(pid, unix.Signal(sig))
}
