package sandbox

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Acknowledgements go with the next command, and alone if none comes.
func TestAcks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a acks
		var sent []string
		send := func(ids []string) { sent = append(sent, ids...) }
		a.add("1", send)
		a.add("2", send)
		if got := a.take(); !slices.Equal(got, []string{"1", "2"}) {
			t.Errorf("a command takes %v", got)
		}
		time.Sleep(2 * ackAfter)
		synctest.Wait()
		if len(sent) > 0 {
			t.Errorf("%v are sent again", sent)
		}
		a.add("3", send)
		time.Sleep(ackAfter / 2)
		a.add("4", send)
		time.Sleep(ackAfter * 3 / 4)
		synctest.Wait()
		if len(sent) > 0 {
			t.Errorf("%v do not wait", sent)
		}
		time.Sleep(ackAfter)
		synctest.Wait()
		if !slices.Equal(sent, []string{"3", "4"}) || a.take() != nil {
			t.Errorf("sent: %v", sent)
		}
	})
}
