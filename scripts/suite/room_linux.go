package main

import "syscall"

// roomy tells whether a folder has room for what the tests write.
func roomy(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= 4<<30
}
