package machine

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// starting is how many percent of the memory in use may be garbage during the start.
	starting = 40
	// rarely and often are the same later. Requests allocate much short-lived memory: collecting less often saves a tenth
	// of the processor time.
	rarely = 200
	often  = 100
	// affordable is how much garbage that may be, before it is collected more often.
	affordable = 96 << 20
)

// CollectOften has garbage collected soon during the start. Much of what a start allocates is needed
// only once: the less of it there is in between, the fewer pages hold what stays.
func CollectOften() { debug.SetGCPercent(starting) }

// collectRarely has garbage collected less often than usual for as long as little memory is in
// use: what it costs are then some megabytes, and not two thirds of a large process.
func collectRarely() {
	debug.SetGCPercent(rarely)
	watchCollections(rarely)
}

// watchCollections sets the pace anew after each collection.
func watchCollections(now int) {
	// The runtime calls finalizers after the collection in which an object was found unused.
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		percent := garbagePercent(live[0].Value.Uint64())
		if percent != now { // all threads stop for it
			debug.SetGCPercent(percent)
		}
		watchCollections(percent)
	})
}

// garbagePercent is how many percent of the live bytes may be garbage, in steps.
func garbagePercent(live uint64) int {
	percent := affordable * 100 / max(live, 1)
	return int(min(max(percent/20*20, often), rarely))
}
