package health

import (
	"os"
	"strconv"
	"strings"

	api "deckhand/api/health"
)

// memory is that of the machine.
func memory() (m api.MachineMemory) {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "MemTotal:":
			m.Total = kilobytes << 10
		case "MemAvailable:":
			m.Available = kilobytes << 10
		}
	}
	return m
}
