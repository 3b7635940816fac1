package lately

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/session"
)

func TestKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string]()
		if _, ok := c.Take("a"); ok {
			t.Error("an empty cache holds something")
		}
		c.Put("a", "one", 100)
		if got, ok := c.Take("a"); !ok || got != "one" {
			t.Errorf("%q, %t", got, ok)
		}
		if _, ok := c.Take("a"); ok || c.size != 0 {
			t.Errorf("what was taken is still there: %d bytes", c.size)
		}
		c.Put("large", "", keptSize+1)
		if _, ok := c.Take("large"); ok {
			t.Error("a large one was kept")
		}
		c.Put("a", "one", 100)
		time.Sleep(keptFor / 2)
		c.Put("b", "two", 1)
		time.Sleep(keptFor/2 + time.Second)
		synctest.Wait()
		c.mu.Lock()
		if len(c.entries) != 1 || c.entries["b"] == nil {
			t.Errorf("after a while there are %d, and b is %v", len(c.entries), c.entries["b"])
		}
		c.mu.Unlock()
		time.Sleep(2 * keptFor)
		synctest.Wait()
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.entries) != 0 || c.size != 0 || c.armed {
			t.Errorf("an idle cache holds %d values of %d bytes, armed: %t", len(c.entries), c.size, c.armed)
		}
	})
}

func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[int]()
		c.limit = keptTotal
		name := func(i int) session.ID { return session.ID(fmt.Sprint(i)) }
		for i := range 100 {
			c.Put(name(i), i, keptTotal/25)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.size > keptTotal || len(c.entries) < 20 || c.entries[name(99)] == nil {
			t.Errorf("it holds %d values of %d bytes", len(c.entries), c.size)
		}
	})
}
