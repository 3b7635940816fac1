package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"deckhand/internal/sandbox"
)

// patience is how long an attempt to reach a host may take. One that takes this long has left
// the sandbox, since what cannot leave fails at once.
const patience = 10 * time.Second

// errLeft means that something went out and was not answered. It is no refusal.
var errLeft = fmt.Errorf("%w: LEFT: it was neither refused nor answered", errUsage)

// listen says where it listens, and sends back whatever it gets until it is killed.
func listen(args []string) error {
	address, err := text(args, 0)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println("listening on", l.Addr().(*net.TCPAddr).Port)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			_, _ = io.Copy(c, c)
		}()
	}
}

// dial connects to an address (tcp, or udp with a second argument), sends a
// line and prints the one that comes back.
func dial(args []string) error {
	address, err := text(args, 0)
	if err != nil {
		return err
	}
	network := "tcp"
	if len(args) > 1 {
		network = args[1]
	}
	return exchange(network, address)
}

// dialUnix connects to a unix socket; @ starts an abstract name.
func dialUnix(args []string) error {
	name, err := text(args, 0)
	if err != nil {
		return err
	}
	return exchange("unix", name)
}

// command speaks to a runner at a unix socket as the server would.
func command(args []string) error {
	name, err := text(args, 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := net.DialTimeout("unix", name, patience)
	if err != nil {
		return err
	}
	s, err := sandbox.Connect(ctx, sandbox.Link{Conn: c})
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("done: it says", s.Info())
	return nil
}

func exchange(network, address string) error {
	c, err := net.DialTimeout(network, address, patience)
	if err != nil {
		if e, ok := err.(net.Error); ok && e.Timeout() {
			return errLeft
		}
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintln(c, "hello from inside"); err != nil {
		return err
	}
	if network == "udp" {
		// A datagram that has no way shows as an error of the send, or of the next one.
		if _, err := fmt.Fprintln(c, "hello again"); err != nil {
			return err
		}
		return nil
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return fmt.Errorf("%w: connected, but %v", errUsage, err)
	}
	fmt.Print("answer: ", line)
	return nil
}

// resolve asks for the addresses of a name.
func resolve(args []string) error {
	name, err := text(args, 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return errLeft
		}
		return err
	}
	fmt.Println(strings.Join(addrs, "\n"))
	return nil
}

// interfaces lists what the kernel calls this network's interfaces.
func interfaces([]string) error {
	b, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			fmt.Println(strings.TrimSpace(name))
		}
	}
	return nil
}

// sockets lists the unix sockets with a name that can be seen here.
func sockets([]string) error {
	b, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 8 && f[0] != "Num" {
			fmt.Println(f[7])
		}
	}
	return nil
}
