package machine

import "golang.org/x/sys/unix"

// installed returns the memory of the machine in bytes, or 0 if it is unknown.
func installed() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(max(info.Unit, 1))
}
