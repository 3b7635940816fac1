package egress_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"deckhand/internal/sandbox/egress"
)

// BenchmarkTunnel is how fast data comes through a tunnel. Direct is the floor:
// the same without a proxy; Copied is what any proxy costs: one more copy.
func BenchmarkTunnel(b *testing.B) {
	const chunk = 1 << 20
	flood := func(c *net.TCPConn) {
		buf := make([]byte, 64<<10)
		for {
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}
	addr := listener(b, "bench.test", flood)
	_, port, _ := net.SplitHostPort(addr)
	direct := net.JoinHostPort("127.0.0.1", port)
	copied := listener(b, "copy.test", func(c *net.TCPConn) {
		up, err := net.Dial("tcp", direct)
		if err != nil {
			return
		}
		defer up.Close()
		io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{up}, make([]byte, 32<<10))
	})
	_, copyPort, _ := net.SplitHostPort(copied)
	w := newWorld(b, open, []string{addr})
	run := func(name string, dial func(b *testing.B) net.Conn) {
		b.Run(name, func(b *testing.B) {
			c := dial(b)
			defer c.Close()
			buf := make([]byte, chunk)
			b.SetBytes(chunk)
			for b.Loop() {
				if _, err := io.ReadFull(c, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	tcp := func(addr string) func(*testing.B) net.Conn {
		return func(b *testing.B) net.Conn {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			return c
		}
	}
	run("Direct", tcp(direct))
	run("Copied", tcp(net.JoinHostPort("127.0.0.1", copyPort)))
	run("Proxy", func(b *testing.B) net.Conn {
		c := tcp(w.addr)(b)
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", addr)
		r := bufio.NewReaderSize(c, 16)
		resp, err := http.ReadResponse(r, &http.Request{Method: "CONNECT"})
		if err != nil || resp.StatusCode != 200 {
			b.Fatal(resp, err)
		}
		return c
	})
}

// BenchmarkRequest is the time of a small request on a connection that is kept.
func BenchmarkRequest(b *testing.B) {
	o := newOrigin(b, hello)
	url := o.at("bench.test")
	w := newWorld(b, list("*.example.org", near(url)[0]), near(url))
	direct := &http.Transport{}
	defer direct.CloseIdleConnections()
	run := func(name, url string, rt http.RoundTripper) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := &http.Client{Transport: rt}
			for b.Loop() {
				resp, err := c.Get(url)
				if err != nil {
					b.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	run("Direct", o.URL, direct)
	proxied := w.transport()
	defer proxied.CloseIdleConnections()
	run("Proxy", url, proxied)
}

// BenchmarkConnect is the time until a tunnel is open, with its end.
func BenchmarkConnect(b *testing.B) {
	addr := listener(b, "bench.test", func(c *net.TCPConn) { io.Copy(io.Discard, c) })
	_, port, _ := net.SplitHostPort(addr)
	w := newWorld(b, open, []string{addr, "127.0.0.1:" + port}, func(c *egress.Config) { c.KeepAlive = time.Minute })
	b.Run("Direct", func(b *testing.B) {
		for b.Loop() {
			c, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	})
	b.Run("Proxy", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c, err := net.Dial("tcp", w.addr)
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(c, "CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: x\r\n\r\n", port)
			if _, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))); err != nil {
				b.Fatal(err)
			}
			c.Close()
			<-w.ended
		}
	})
}

// BenchmarkStricter combines lists as long as they may be.
func BenchmarkStricter(b *testing.B) {
	var one, two []string
	for i := range 1000 {
		one = append(one, fmt.Sprintf("*.host%d.example.org", i))
		two = append(two, fmt.Sprintf("www.host%d.example.org", i))
	}
	for b.Loop() {
		if got := egress.Stricter(list(one...), list(two...)); len(got.Allow) != 1000 {
			b.Fatal(len(got.Allow))
		}
	}
}
