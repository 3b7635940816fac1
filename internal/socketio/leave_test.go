package socketio

import (
	"context"
	"fmt"
	"testing"
)

// TestRecovery has clients that come back.
func TestRecovery(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		type claim struct {
			offset string
			ok     bool
		}
		claims := make(chan claim, 1)
		_, url := listen(t, Options{}, map[string]Handler{"/": func(_ context.Context, s *Socket) (Serve, error) {
			offset, ok := s.Lost()
			claims <- claim{offset, ok}
			if offset != "too old" {
				s.Recover()
			}
			return Serve{Run: func(ctx context.Context) {
				_ = s.Emit(ctx, "first")
				_ = s.Offset(ctx, "1")
				_ = s.EmitAt(ctx, "2", "second", []byte{2})
			}}, nil
		}})
		c := dial(t, url, transport)
		told := c.enter("/", `{"recover":true}`)
		if got := <-claims; got.ok || got.offset != "" {
			t.Errorf("a new client claims %+v", got)
		}
		c.want(`2["first"]`)
		c.want(`2["offset","1"]`)
		c.want(`51-["second",{"_placeholder":true,"num":0}]`, []byte{2})
		c.want(`2["offset","2"]`)

		pid := told.PID
		long := fmt.Sprintf("%0*d", maxPID+1, 0)
		for _, c := range []struct {
			auth string
			want claim
			pid  string
		}{
			{`{"pid":"` + pid + `","offset":"2"}`, claim{"2", true}, pid},
			{`{"pid":"` + pid + `"}`, claim{"", true}, pid},
			{`{"token":"t","pid":"of another server","offset":"9"}`, claim{"9", true}, "of another server"},
			{`{"pid":"` + pid + `","offset":"too old"}`, claim{"too old", true}, ""},
			{`{"pid":""}`, claim{}, ""},
			{`{"pid":7,"offset":"2"}`, claim{}, ""},
			{`{"pid":"` + pid + `","offset":2}`, claim{}, ""},
			{`{"pid":"` + long + `"}`, claim{}, ""},
			{`{"offset":"2"}`, claim{}, ""},
		} {
			client := dial(t, url, transport)
			told := client.enter("/", c.auth)
			if got := <-claims; got != c.want {
				t.Errorf("%s claims %+v", c.auth, got)
			}
			if recovered := c.pid != "" && told.PID == c.pid; recovered != (c.pid != "") || told.PID == pid && c.pid != pid {
				t.Errorf("%s: the answer has pid %s", c.auth, told.PID)
			}
		}
	})
}

// TestSentAndLeft has a client that goes as soon as it has said something, in
// all the ways there are to go.
func TestSentAndLeft(t *testing.T) {
	for name, leave := range map[string]func(c *client){
		"the namespace":  func(c *client) { c.send("1") },
		"the connection": func(c *client) { _ = c.post(c.ctx, frame{text: "1"}) },
		"by a mistake":   func(c *client) { c.send("garbage") },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, transport string) {
				gone, handled := make(chan struct{}), make(chan string, 5)
				_, url := listen(t, Options{}, map[string]Handler{"/": func(context.Context, *Socket) (Serve, error) {
					return Serve{
						Run: func(ctx context.Context) {
							<-ctx.Done()
							close(gone)
						},
						Event: func(ctx context.Context, e Event) {
							<-gone
							if err := ctx.Err(); err != nil {
								t.Errorf("%s has no time: %v", e.Name, err)
							}
							handled <- e.Name
						},
					}, nil
				}})
				c := dial(t, url, transport)
				c.enter("/", "")
				for i := range 5 {
					c.send(fmt.Sprintf(`2["%d"]`, i))
				}
				leave(c)
				for i := range 5 {
					if name := <-handled; name != fmt.Sprint(i) {
						t.Errorf("number %d is %s", i, name)
					}
				}
			})
		})
	}
}

// TestMetWhenTheLastHasEnded has a client that comes back while the handlers of
// its first visit still run.
func TestMetWhenTheLastHasEnded(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		release, asked := make(chan struct{}), make(chan int, 2)
		visit, ended := 0, false
		_, url := listen(t, Options{}, map[string]Handler{"/": func(context.Context, *Socket) (Serve, error) {
			visit++
			asked <- visit
			if visit == 2 && !ended {
				t.Error("two visits at once")
			}
			return Serve{Run: func(ctx context.Context) {
				<-ctx.Done()
				<-release
				ended = true
			}}, nil
		}, "/custom": echo})
		c := dial(t, url, transport)
		c.enter("/", "")
		<-asked
		c.send("1")
		c.send("0")
		c.enter("/custom", "")
		c.want(`2/custom,["auth",{}]`)
		select {
		case <-asked:
			t.Error("the second visit did not wait")
		default:
		}
		close(release)
		<-asked
		if text := c.read(); text[:2] != "0{" {
			t.Errorf("the second visit: %s", text)
		}
	})
}
