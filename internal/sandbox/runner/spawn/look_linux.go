package spawn

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ended is a child that has ended and was not waited for, 0 if there is none.
func ended() (int, error) {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return 0, err
	}
	if info.Signo == 0 {
		return 0, nil
	}
	return siginfoPID(&info), nil
}

// Look finds the program that Start would start: as its own environment would,
// so relative folders in PATH count from its folder. What does not exist is an
// fs.ErrNotExist.
func Look(a Attr) (string, error) {
	if len(a.Args) == 0 {
		return "", errors.New("nothing to start")
	}
	name := a.Args[0]
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.Dir, name)
		}
		return name, nil
	}
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, e := range a.Env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(a.Dir, dir)
		}
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no program %q here: %w", name, fs.ErrNotExist)
}
