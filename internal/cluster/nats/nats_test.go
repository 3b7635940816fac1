package nats

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/cluster"
	"deckhand/internal/cluster/clustertest"
	"deckhand/internal/cluster/natstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// patience only ends a test that hangs.
const patience = time.Minute

func connect(t *testing.T, address string) *Conn {
	t.Helper()
	c, err := tryConnect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if !c.Online() {
		t.Fatal("there is no connection")
	}
	return c
}

// sealed is the seal of an installation.
func sealed(t *testing.T) Seal {
	t.Helper()
	s, err := NewSeal([32]byte{1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryConnect(address string) (*Conn, error) { return connectLogging(address, quiet) }

func connectLogging(address string, log *slog.Logger) (*Conn, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return Connect(ctx, a, "test", log)
}

// The suite of cluster, with leases in memory.
func TestWakes(t *testing.T) {
	server := natstest.Start(t, "")
	clustertest.Run(t, func(t *testing.T) clustertest.Rig {
		now := time.Now()
		leases := cluster.NewMemory(10*time.Second, func() time.Time { return now })
		return clustertest.Rig{
			Process: func() clustertest.Process {
				return clustertest.Process{Leases: leases, Wakes: Wakes{Conn: connect(t, server.URL), Installation: t.Name()[len("TestWakes/"):], Seal: sealed(t)}}
			},
			Advance: func(d time.Duration) { now = now.Add(d) },
		}
	})
}

// Installations that share a server do not hear each other.
func TestInstallations(t *testing.T) {
	server := natstest.Start(t, "")
	c := connect(t, server.URL)
	got := make(chan cluster.Wake, 10)
	stop, err := Wakes{Conn: c, Installation: "one", Seal: sealed(t)}.Subscribe("a", func(w cluster.Wake) { got <- w })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	Wakes{Conn: c, Installation: "two", Seal: sealed(t)}.Publish(cluster.Wake{Kind: cluster.Grew, From: "b", Last: 1})
	Wakes{Conn: c, Installation: "one", Seal: sealed(t)}.Publish(cluster.Wake{Kind: cluster.Grew, From: "b", Last: 2})
	if w := await(t, got); w.Last != 2 {
		t.Errorf("got %+v", w)
	}
}

// Others on a NATS server learn nothing from messages, and what they publish has no effect.
func TestNeighbours(t *testing.T) {
	server := natstest.Start(t, "")
	c, neighbour := connect(t, server.URL), connect(t, server.URL)
	w := Wakes{Conn: c, Installation: "one", Seal: sealed(t)}
	heard := make(chan []byte, 100)
	stop, err := neighbour.Subscribe(w.Subject("wake"), func(data []byte) { heard <- data })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	w.Publish(cluster.Wake{Kind: cluster.RowChanged, From: "b", Session: "sess-canary", Owner: "user-canary"})
	said := await(t, heard)
	if strings.Contains(string(said), "canary") {
		t.Errorf("a neighbour reads %s", said)
	}
	got := make(chan cluster.Wake, 10)
	if stop, err = w.Subscribe("a", func(w cluster.Wake) { got <- w }); err != nil {
		t.Fatal(err)
	}
	defer stop()
	neighbour.Publish(w.Subject("wake"), []byte(`{"Kind":"load","From":"c","Last":1}`))
	neighbour.Publish(w.Subject("wake"), w.Seal.Seal(w.Subject("delta"), []byte(`{"Kind":"load","From":"c","Last":2}`)))
	neighbour.Publish(w.Subject("wake"), make([]byte, maxMessage))
	if err := neighbour.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Publish(cluster.Wake{Kind: cluster.Grew, From: "b", Last: 3})
	if w := await(t, got); w.Last != 3 {
		t.Errorf("got %+v", w)
	}
}

// A hostile server, or one with hostile users, takes a bounded amount of memory and does not end the connection with large messages.
func TestFloods(t *testing.T) {
	c := &Conn{log: quiet, subs: map[int]*subscription{}, wake: make(chan struct{}, 1)}
	s := &subscription{waiting: make(chan []byte, maxWaiting)}
	c.subs[1] = s
	message := func(size int) string { return fmt.Sprintf("MSG s 1 %d\r\n%s\r\n", size, strings.Repeat("x", size)) }
	if err := c.read(reader(strings.Repeat(message(maxMessage), 20) + message(2*maxMessage) + message(1))); err != io.EOF {
		t.Errorf("large messages: %v", err)
	}
	total := 0
	for len(s.waiting) > 0 {
		total += len(<-s.waiting)
	}
	if total > maxWaitingBytes || total < maxWaitingBytes/2 {
		t.Errorf("%d bytes wait", total)
	}
	if err := c.read(reader(strings.Repeat("PING\r\n", 4<<20))); err == nil || err == io.EOF || len(c.pending) > 3*maxPending {
		t.Errorf("pings: %v, %d bytes are pending", err, len(c.pending))
	}
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// After the server was killed and started again, subscriptions work as before. What is published in between is lost.
func TestReconnects(t *testing.T) {
	server := natstest.Start(t, "")
	a, b := connect(t, server.URL), connect(t, server.URL)
	got := make(chan string, 100)
	stop, err := b.Subscribe("s", func(data []byte) { got <- string(data) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	a.Publish("s", []byte("first"))
	if s := await(t, got); s != "first" {
		t.Errorf("got %q", s)
	}
	server.Kill()
	for a.Online() || b.Online() {
		<-time.After(time.Millisecond)
	}
	a.Publish("s", []byte("lost"))
	if a.Lost() != 1 {
		t.Errorf("%d messages were lost, want 1", a.Lost())
	}
	server.Begin()
	for !a.Online() || !b.Online() {
		<-time.After(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Flush(ctx); err != nil { // the server knows of the subscription
		t.Fatal(err)
	}
	a.Publish("s", []byte("second"))
	if s := await(t, got); s != "second" {
		t.Errorf("got %q", s)
	}
}

// lines receives log records as lines, each of which a test awaits.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// The log says when the connection is lost, and when it is back: after an outage, and after a start without NATS.
func TestLogsOutages(t *testing.T) {
	server := natstest.Start(t, "")
	logged := make(lines, 100)
	c, err := connectLogging(server.URL, slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
	const lost, back = "no connection to NATS", "connected to NATS again"
	expect := func(want, unwanted string) {
		t.Helper()
		for {
			line := await(t, logged)
			if strings.Contains(line, want) {
				return
			}
			if strings.Contains(line, unwanted) { // other lines are further reasons of an outage
				t.Fatalf("the log has %q, want %q", line, want)
			}
		}
	}
	for range 2 {
		server.Kill()
		expect(lost, back)
		server.Begin()
		expect(back, "\x00")
	}
	c.Close()
	if len(logged) > 0 {
		t.Errorf("the log also has %q", <-logged)
	}

	server.Kill()
	if c, err = connectLogging(server.URL, slog.New(slog.NewTextHandler(logged, nil))); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	expect(lost, back)
	server.Begin()
	expect(back, "\x00")
}

// A server that is stopped holds up nobody who publishes.
func TestStuckServer(t *testing.T) {
	server := natstest.Start(t, "")
	c := connect(t, server.URL)
	if err := syscall.Kill(server.Pid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(server.Pid(), syscall.SIGCONT)
	big := make([]byte, 64<<10)
	for range 1000 { // more than all buffers on the way
		c.Publish("s", big)
	}
	if c.Lost() == 0 {
		t.Error("nothing was lost: where is it?")
	}
}

// A server that is not there is tried again later.
func TestStartsWithoutServer(t *testing.T) {
	server := natstest.Start(t, "")
	server.Kill()
	c, err := tryConnect(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got := make(chan string, 1)
	stop, err := c.Subscribe("s", func(data []byte) { got <- string(data) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	server.Begin()
	for !c.Online() {
		<-time.After(time.Millisecond)
	}
	c.Publish("s", []byte("x"))
	await(t, got)
}

// An address may name several servers.
func TestSeveralServers(t *testing.T) {
	one, two := natstest.Start(t, ""), natstest.Start(t, "")
	c := connect(t, one.URL+","+two.URL)
	one.Kill()
	got := make(chan string, 1)
	stop, err := c.Subscribe("s", func(data []byte) { got <- string(data) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for end := time.After(patience); ; {
		c.Publish("s", []byte("x"))
		select {
		case <-got:
			return
		case <-end:
			t.Fatal("the second server is not used")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// exchange sends a message to itself.
func exchange(t *testing.T, address string) {
	t.Helper()
	c := connect(t, address)
	got := make(chan string, 1)
	stop, err := c.Subscribe("s", func(data []byte) { got <- string(data) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	c.Publish("s", []byte("x"))
	await(t, got)
}

func refused(t *testing.T, address string) {
	t.Helper()
	c, err := tryConnect(address)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, ErrRefused) {
		t.Fatalf("%v, want a refusal", err)
	}
	if strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("the error has the password: %v", err)
	}
}

func TestUserAndPassword(t *testing.T) {
	server := natstest.Start(t, `authorization { user: "ann", password: "p@ss/word" }`)
	exchange(t, "nats://ann:p%40ss%2Fword@"+server.Host)
	refused(t, "nats://ann:wr0ng@"+server.Host)
	refused(t, server.URL)
}

func TestToken(t *testing.T) {
	server := natstest.Start(t, `authorization { token: "t0ken" }`)
	exchange(t, "nats://t0ken@"+server.Host)
	refused(t, "nats://wr0ng@"+server.Host)
}

// userSeed is the text of a seed, as tools of NATS write it.
func userSeed(k ed25519.PrivateKey) string {
	b := append([]byte{seedOfUser1, seedOfUser2}, k.Seed()...)
	return letters.EncodeToString(binary.LittleEndian.AppendUint16(b, checksum(b)))
}

func TestCredentials(t *testing.T) {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	_, other, _ := ed25519.GenerateKey(rand.Reader)
	if s := userSeed(key); !strings.HasPrefix(s, "SU") {
		t.Fatalf("a seed begins with %s", s[:2])
	}
	server := natstest.Start(t, fmt.Sprintf(`authorization { users = [ { nkey: %s } ] }`, publicKey(key)))
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "user.creds")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	around := "-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n"
	exchange(t, server.URL+"?creds="+file(fmt.Sprintf(around, userSeed(key))))
	refused(t, server.URL+"?creds="+file(userSeed(other)))
	damaged := userSeed(key)
	damaged = damaged[:10] + "A" + damaged[11:]
	if damaged == userSeed(key) {
		damaged = damaged[:10] + "B" + damaged[11:]
	}
	if _, err := ParseAddress(server.URL + "?creds=" + file(damaged)); err == nil || strings.Contains(err.Error(), damaged) {
		t.Errorf("a damaged seed: %v", err)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, secret := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, secret: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := natstest.Start(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }", cert, secret, cert))
	exchange(t, "tls://"+server.Host+"?ca="+cert+"&cert="+cert+"&key="+secret)
	c, err := tryConnect("tls://" + server.Host) // not a certificate that this machine trusts
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Online() {
		t.Error("a server is trusted that has no certificate")
	}
}

// A message that is too large for the server is lost and counted, and the connection stays.
func TestMaxPayload(t *testing.T) {
	server := natstest.Start(t, "max_payload: 4096\n")
	c := connect(t, server.URL)
	if c.MaxPayload() != 4096 {
		t.Fatalf("%d bytes are allowed", c.MaxPayload())
	}
	got := make(chan int, 10)
	stop, err := c.Subscribe("s", func(data []byte) { got <- len(data) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for _, size := range []int{4097, 4096, 1 << 20, 1} {
		c.Publish("s", make([]byte, size))
	}
	if first, second := await(t, got), await(t, got); first != 4096 || second != 1 || c.Lost() != 2 {
		t.Errorf("%d and %d bytes arrived, %d messages were lost", first, second, c.Lost())
	}
}

func TestParseAddress(t *testing.T) {
	for _, bad := range []string{"", "nats://", "http://h", "nats://h/path", "h:4222", "nats://h?x=1", "nats://h?creds=/missing", "nats://h?key=/k", "nats://a,nats://u:p@b", "nats://u:s3cret@h:x"} {
		_, err := ParseAddress(bad)
		if err == nil {
			t.Errorf("%q is taken", bad)
		} else if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
	a, err := ParseAddress("nats://u:s3cret@h,nats://i:1")
	if err != nil || a.String() != "h:4222,i:1" || a.Secrets()[0] != "s3cret" {
		t.Errorf("%v %v", a, err)
	}
}

// What a server may send that is none, or a broken one.
func FuzzRead(f *testing.F) {
	f.Add("MSG s 1 1\r\nx\r\nPING\r\n")
	f.Add("MSG s 1 99999999999\r\n")
	f.Add("-ERR 'Authorization Violation'\r\n")
	f.Add("INFO {}\r\n+OK\r\nPONG\r\n")
	f.Fuzz(func(t *testing.T, said string) {
		c := &Conn{subs: map[int]*subscription{1: {waiting: make(chan []byte, 1)}}, wake: make(chan struct{}, 1), log: quiet}
		if err := c.read(reader(said)); err == nil {
			t.Error("a stream that ends is an error")
		}
	})
}
