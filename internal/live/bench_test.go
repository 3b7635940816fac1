package live

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/session"
)

// cost is what a reader takes in the server's memory while it waits.
type cost struct{ bytes, stack, goroutines float64 }

// crowd opens n streams without reading more than their beginning, and without
// a goroutine on the client's side, so that what grows is the server.
func (s *server) crowd(kind string, n int) ([]net.Conn, cost) {
	s.t.Helper()
	heap, stack := inUse()
	gos := runtime.NumGoroutine()
	var conns []net.Conn
	var one [1]byte
	for range n {
		c := s.stall(kind)
		conns = append(conns, c)
		if _, err := c.Read(one[:]); err != nil { // the answer has begun
			s.t.Fatal(err)
		}
	}
	// Events and deltas have passed, so all buffers that are ever made are there.
	s.ask("m")
	for range 10 {
		s.hub.Delta(theID, "m", "some words ")
		s.note(1)
	}
	s.add(session.ModelAnswered{Call: "m"})
	s.settled(n)
	heapNow, stackNow := inUse()
	each := func(before, now uint64) float64 { return (float64(now) - float64(before)) / float64(n) }
	return conns, cost{each(heap+stack, heapNow+stackNow), each(stack, stackNow), float64(runtime.NumGoroutine()-gos) / float64(n)}
}

// settled waits until all readers have taken everything.
func (s *server) settled(n int) {
	d := s.hub.feedsOf(theID)[0]
	for {
		d.mu.Lock()
		changed, ready := d.changed, !d.pumping && !d.dirty && d.current == d.followers && d.followers == n
		d.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Millisecond): // readers do not announce that they are done
		}
	}
}

// inUse is the heap and the stacks.
func inUse() (heap, stack uint64) {
	var m runtime.MemStats
	for range 3 { // finalizers and stacks need a second look
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}

// affordable is what a waiting reader may take, with the client's side of its connection.
// Streams that net/http serves in their handlers take its buffers and a deep stack.
var affordable = map[string]float64{"sse": 34_000, "ws": 34_000, "detached-sse": 12_000, "detached-ws": 25_000}

// A reader must be cheap: a thousand of them are one popular conversation.
func TestReadersAreCheap(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{})
		conns, c := s.crowd(kind, 1000)
		t.Logf("%.0f bytes (%.0f of them stacks) and %.2f goroutines each", c.bytes, c.stack, c.goroutines)
		if c.bytes > affordable[kind] && !raced {
			t.Errorf("a waiting reader takes %.0f bytes", c.bytes)
		}
		for _, c := range conns {
			_ = c.Close()
		}
	})
}

// BenchmarkReader reports what a thousand waiting readers take each.
func BenchmarkReader(b *testing.B) {
	for _, kind := range streamKinds {
		b.Run(kind, func(b *testing.B) {
			for range b.N {
				s := serve(b, Options{})
				conns, c := s.crowd(kind, 1000)
				b.ReportMetric(c.bytes, "B/reader")
				b.ReportMetric(c.goroutines, "goroutines/reader")
				for _, c := range conns {
					_ = c.Close()
				}
				for range conns {
					<-s.ended
				}
			}
		})
	}
}

// BenchmarkDeliver is one append, until every reader has it: in the process,
// and on real connections with the reading side in the same two cores.
func BenchmarkDeliver(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("follow/%d", n), func(b *testing.B) {
			w := newWorld(b)
			var got, joined, left sync.WaitGroup
			joined.Add(n)
			for range n {
				left.Go(func() {
					joined.Done()
					for f, err := range w.hub.Follow(b.Context(), theID, 1, FollowOptions{}) {
						if err != nil || f.Event == EventStatus {
							return
						}
						got.Done()
					}
				})
			}
			joined.Wait()
			deliver(b, w, n, &got)
			w.add(session.Titled{Title: "t"})
			left.Wait()
		})
		b.Run(fmt.Sprintf("sse/%d", n), func(b *testing.B) {
			s := serve(b, Options{})
			var got, left sync.WaitGroup
			for range n {
				conn := s.stall("detached-sse")
				in := bufio.NewReaderSize(conn, 512)
				for line := ""; !strings.HasPrefix(line, "id: 1"); { // the stream has begun
					var err error
					if line, err = in.ReadString('\n'); err != nil {
						b.Fatal(err)
					}
				}
				left.Go(func() {
					defer func() { _ = conn.Close() }()
					for {
						line, err := in.ReadSlice('\n')
						if err != nil || strings.HasPrefix(string(line), "event: status") {
							return
						}
						if strings.HasPrefix(string(line), "id: ") {
							got.Done()
						}
					}
				})
			}
			deliver(b, s.world, n, &got)
			got.Add(n) // the last one has an id too
			s.add(session.Titled{Title: "t"})
			left.Wait()
		})
	}
}

func deliver(b *testing.B, w *world, n int, got *sync.WaitGroup) {
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		got.Add(n)
		for !shown(w.note(1)) {
		}
		got.Wait()
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/reader")
}
