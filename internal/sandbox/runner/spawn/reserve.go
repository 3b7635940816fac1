package spawn

import (
	"runtime"
	"sync"
)

// spare is how many threads are kept for when no more can be had.
const spare = 6

// Reserve makes threads ahead of need. Commands may use up all processes that a sandbox
// may have, threads included; a Go program that needs one more then ends at once, and
// with it the one who could still stop them. Threads that were made are kept and used again.
func Reserve() {
	var up, gone sync.WaitGroup
	up.Add(spare)
	leave := make(chan struct{})
	for range spare {
		gone.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			up.Done()
			<-leave
		})
	}
	up.Wait() // each is on a thread of its own
	close(leave)
	gone.Wait()
	// A command is handed from goroutine to goroutine, each of which waits for the one before.
	// A second thread would only be woken up for it and find nothing to do.
	runtime.GOMAXPROCS(1)
}
