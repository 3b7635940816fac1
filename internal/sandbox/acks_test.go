package sandbox

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Acknowledgements go with the next command, and alone if none comes.
func TestAcks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a acks
		var mu sync.Mutex
		var list []string
		send := func(ids []string) { mu.Lock(); list = append(list, ids...); mu.Unlock() }
		sent := func() []string { mu.Lock(); defer mu.Unlock(); return list }
		a.add("1", send)
		a.add("2", send)
		if got := a.take(); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("a command takes %v", got)
		}
		time.Sleep(2 * ackAfter)
		synctest.Wait()
		if got := sent(); len(got) > 0 {
			t.Errorf("%v are sent again", got)
		}
		a.add("3", send)
		time.Sleep(ackAfter / 2)
		a.add("4", send)
		time.Sleep(ackAfter * 3 / 4)
		synctest.Wait()
		if got := sent(); len(got) > 0 {
			t.Errorf("%v do not wait", got)
		}
		time.Sleep(ackAfter)
		synctest.Wait()
		if got := sent(); !slices.Equal(got, []string{"3", "4"}) || a.take() != nil {
			t.Errorf("sent: %v", got)
		}
	})
}
