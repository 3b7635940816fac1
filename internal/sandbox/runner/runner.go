// Package runner is the small server inside every sandbox: it runs commands, reads and
// writes files, hosts stdio MCP servers, and carries connections in and out, for the
// owner of the sandbox over one connection.
//
// It outlives the server that started it. When a connection ends, work continues, and its
// result is kept until it is acknowledged. Every command has the claim of its owner, and
// a claim older than the newest one is refused, so that a server that lost its session
// cannot act in it any more.
package runner

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/egress/proxyenv"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/edit"
	"deckhand/internal/sandbox/runner/files"
	"deckhand/internal/sandbox/runner/gitview"
	"deckhand/internal/sandbox/runner/mcp"
	"deckhand/internal/sandbox/runner/ports"
	"deckhand/internal/sandbox/runner/results"
	"deckhand/internal/sandbox/runner/search"
	"deckhand/internal/sandbox/runner/shell"
	"deckhand/internal/sandbox/runner/spawn"
)

// Config is what a runner is started with.
type Config struct {
	// State is the runner's own folder, out of reach for what it starts.
	State string
	// Output is where whole outputs are kept, for what it starts to read, and
	// OutputSeen what that calls it, if otherwise.
	Output, OutputSeen string
	// Workspace is the folder that commands begin in.
	Workspace string
	Network   sandbox.Network
	// Env is the environment of whatever is started, before SetEnv.
	Env []string
	// Set is what SetEnv is expected to say. If it is known, commands will follow soon, and a
	// shell is started ahead of the first.
	Set map[string]string
	// Confine takes rights from the thread that starts processes; see spawn.Options.
	Confine func() error
	// Kept says that State is kept as long as the workspace. A container's is not.
	Kept bool
	// Spawner is one that was made before, with Confine; nil to make one.
	Spawner *spawn.Spawner
	// More are additional operations; may be nil.
	More map[string]rpc.Handler
	// Exit ends the process, for a runner that can be suspended; nil for another.
	Exit    func()
	Version string
}

// Runner serves connections.
type Runner struct {
	config     Config
	boot       string
	spawner    *spawn.Spawner
	shells     *shell.Shells
	tools      *mcp.Host
	proxy      *ports.Proxy
	handler    rpc.Handlers
	results    *results.Store
	suspension suspension

	mu       sync.Mutex
	env      map[string]string
	secrets  []string // that were in env at any time, the oldest first
	fence    int64
	peers    []*rpc.Peer // those that are attached, oldest first
	attached chan struct{}
	left     chan struct{} // closed when the last server has left
	used     time.Time     // when something was last asked for
	closed   bool
	serving  sync.WaitGroup
}

// New makes a runner. Everything that listens or starts by itself is here;
// Serve only answers.
func New(c Config) (*Runner, error) {
	var b [8]byte
	_, _ = rand.Read(b[:])
	r := &Runner{config: c, boot: hex.EncodeToString(b[:]), env: c.Set, attached: make(chan struct{}), left: make(chan struct{}), used: time.Now()}
	for _, dir := range []string{c.State, c.Output} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	if err := r.readFence(); err != nil {
		return nil, err
	}
	if err := r.readSuspended(); err != nil {
		return nil, err
	}
	open := results.Open
	if c.Kept {
		open = results.OpenKept
	}
	done, err := open(filepath.Join(c.State, "results"))
	if err != nil {
		return nil, err
	}
	r.results = done
	if r.spawner = c.Spawner; r.spawner == nil {
		if r.spawner, err = spawn.New(spawn.Options{Confine: c.Confine}); err != nil {
			return nil, err
		}
	}
	r.shells, err = shell.New(shell.Config{Spawner: r.spawner, Results: done, Dir: filepath.Join(c.State, "shell"), Output: c.Output, Seen: c.OutputSeen,
		Workspace: c.Workspace, Env: r.environ, Secrets: r.remembered, Confined: c.Confine != nil})
	if err != nil {
		return nil, err
	}
	if len(c.Set) > 0 {
		r.serving.Go(r.shells.Warm)
	}
	r.tools = mcp.New(mcp.Config{Spawner: r.spawner, Results: done, Dir: toolDir(c), Env: r.environ})
	if err := r.openProxy(); err != nil {
		return nil, err
	}
	r.handler = r.handlers(done)
	return r, nil
}

// toolDir is the folder that tool servers start in: the home folder, or / where the home
// folder is missing or in the workspace.
func toolDir(c Config) string {
	const root = "/"
	home := root
	for _, e := range c.Env {
		if dir, ok := strings.CutPrefix(e, "HOME="); ok {
			home = dir
		}
	}
	home, err := filepath.EvalSymlinks(home)
	if err != nil || !filepath.IsAbs(home) {
		return root
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		return root
	}
	workspace, err := filepath.EvalSymlinks(c.Workspace)
	if err != nil {
		workspace = c.Workspace
	}
	if rel, err := filepath.Rel(workspace, home); err == nil && filepath.IsLocal(rel) {
		return root
	}
	return home
}

// openProxy listens where programs inside expect their proxy.
func (r *Runner) openProxy() error {
	if r.config.Network != sandbox.Proxied {
		return nil
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // on loopback there is one path, and finding out takes a socket
	l, err := config.Listen(context.Background(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(sandbox.ProxyPort)))
	if err != nil {
		return fmt.Errorf("cannot open the egress connection: %w", err)
	}
	r.proxy = ports.NewProxy(ports.ProxyConfig{Listener: l, Current: r.shells.Current, Peer: r.newest, Attached: r.nextAttach})
	return nil
}

// handlers is every operation, with the check of its claim in front.
func (r *Runner) handlers(done *results.Store) rpc.Handlers {
	h := rpc.Handlers{Calls: map[string]rpc.Handler{"hello": r.hello, "setenv": r.setenv, "begin": r.begin, "remember": r.remember, "unlinked": r.unlinked, "vitals": r.vitals}, Raw: map[string]rpc.RawHandler{}}
	calls, raw := r.shells.Handlers()
	maps.Copy(h.Calls, calls)
	maps.Copy(h.Raw, raw)
	maps.Copy(h.Calls, files.New(files.Config{Workspace: r.config.Workspace, FS: "/"}).Handlers())
	maps.Copy(h.Calls, edit.New(edit.Config{Results: done, Dir: filepath.Join(r.config.State, "undo"), Workspace: r.config.Workspace,
		Private: []string{r.config.State}}).Handlers())
	maps.Copy(h.Calls, search.New(search.Config{Workspace: r.config.Workspace, Private: []string{r.config.State}}).Handlers())
	view := gitview.New(gitview.Config{Spawner: r.spawner, Workspace: r.config.Workspace,
		Env: func() []string { return spawn.SystemFirst(r.config.Env) }})
	maps.Copy(h.Calls, view.Handlers())
	r.shells.Mark = func(ctx context.Context, p sandbox.GitMarkParams) { _ = view.Mark(ctx, p) }
	maps.Copy(h.Calls, r.tools.Handlers())
	maps.Copy(h.Calls, r.config.More)
	calls, raw = ports.Handlers()
	maps.Copy(h.Calls, calls)
	maps.Copy(h.Raw, raw)
	h.Calls["seal"] = func(_ context.Context, c *rpc.Call) (any, error) {
		var p sandbox.SealParams
		if err := c.Into(&p); err != nil {
			return nil, err
		}
		err := done.SetKey(p.Key)
		r.openSuspended(done)
		return nil, err
	}
	h.Calls["welcome"] = func(_ context.Context, c *rpc.Call) (any, error) {
		var p sandbox.WelcomeParams
		err := c.Into(&p)
		if err == nil && len(p.Key) > 0 {
			err = done.SetKey(p.Key)
			r.openSuspended(done)
		}
		if err != nil {
			return nil, err
		}
		return sandbox.RememberParams{Values: r.learn(p.Values)}, r.set(p.Env)
	}
	for method, serve := range h.Calls {
		h.Calls[method] = func(ctx context.Context, c *rpc.Call) (out any, err error) {
			if err := r.admit(c.Fence); err != nil {
				return nil, err
			}
			defer r.touch()
			if err := r.admitted(method, func() { out, err = serve(ctx, c) }); err != nil {
				return nil, err
			}
			return out, err
		}
	}
	for method, serve := range h.Raw {
		h.Raw[method] = func(ctx context.Context, c *rpc.RawCall) {
			if err := r.admitted(method, func() { serve(ctx, c) }); err != nil {
				c.Refuse(err)
			}
		}
	}
	h.Calls["suspend"] = r.suspend(done)
	return h
}

// Serve accepts connections until the listener is closed.
func (r *Runner) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		r.Attach(conn)
	}
}

// Attach serves one connection, in the background.
func (r *Runner) Attach(conn io.ReadWriteCloser) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		conn.Close()
		return
	}
	peer, err := rpc.Accept(conn, r.handler)
	if err != nil {
		conn.Close()
		return
	}
	r.peers = append(r.peers, peer)
	close(r.attached)
	r.attached = make(chan struct{})
	if closed(r.left) {
		r.left = make(chan struct{})
	}
	r.serving.Go(func() {
		<-peer.Done()
		r.mu.Lock()
		for i, p := range r.peers {
			if p == peer {
				r.peers = append(r.peers[:i:i], r.peers[i+1:]...)
				break
			}
		}
		if len(r.peers) == 0 {
			close(r.left)
		}
		r.used = time.Now()
		r.mu.Unlock()
		peer.Close()
	})
}

// Close ends the connections and what the runner does by itself.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	peers := r.peers
	r.mu.Unlock()
	if r.proxy != nil {
		r.proxy.Close()
	}
	for _, p := range peers {
		p.Close()
	}
	r.serving.Wait()
	r.tools.Close()
	r.shells.Close()
	r.spawner.Close()
}

// newest is the connection that was made last, nil if there is none.
func (r *Runner) newest() *rpc.Peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.peers) == 0 {
		return nil
	}
	return r.peers[len(r.peers)-1]
}

func (r *Runner) nextAttach() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attached
}

func (r *Runner) hello(context.Context, *rpc.Call) (any, error) {
	info := sandbox.Info{Boot: r.boot, Version: r.config.Version, Shell: r.shells.Program(), Acks: true, Marks: true, Workspace: r.config.Workspace}
	if real, err := filepath.EvalSymlinks(info.Workspace); err == nil {
		info.Workspace = real
	}
	info.User = r.user()
	info.Host, _ = os.Hostname()
	return info, nil
}

// user returns the name of the user that runs commands here.
func (r *Runner) user() string {
	for _, e := range r.config.Env {
		if name, ok := strings.CutPrefix(e, "USER="); ok {
			return name
		}
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func (r *Runner) setenv(_ context.Context, c *rpc.Call) (any, error) {
	var env map[string]string
	if err := c.Into(&env); err != nil {
		return nil, err
	}
	return nil, r.set(env)
}

// set changes what is added to the environment of everything that is started.
func (r *Runner) set(env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("%w: %q is not an environment variable", rpc.ErrInvalid, name)
		}
	}
	r.mu.Lock()
	same := maps.Equal(r.env, env)
	r.env = env
	r.mu.Unlock()
	if !same {
		r.shells.Cool()
	}
	return nil
}

// maxRemembered bounds how many bytes of secrets are remembered. The oldest go first.
const maxRemembered = 256 << 10

// remember learns which values are secret, and tells all that it knows.
func (r *Runner) remember(_ context.Context, c *rpc.Call) (any, error) {
	var p sandbox.RememberParams
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	return sandbox.RememberParams{Values: r.learn(p.Values)}, nil
}

// learn adds values that are secret, and returns all of them.
func (r *Runner) learn(values []string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := 0
	for _, v := range values {
		if !slices.Contains(r.secrets, v) {
			r.secrets = append(r.secrets, v)
		}
	}
	for i := len(r.secrets) - 1; i >= 0; i-- {
		if size += len(r.secrets[i]); size > maxRemembered {
			r.secrets = slices.Delete(r.secrets, 0, i+1)
			break
		}
	}
	return slices.Clone(r.secrets)
}

// remembered returns the values that are secret.
func (r *Runner) remembered() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.secrets)
}

// begin says where shells begin.
func (r *Runner) begin(_ context.Context, c *rpc.Call) (any, error) {
	var p sandbox.PathParams
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	if !filepath.IsLocal(string(p.Path)) {
		return nil, rpc.ErrEscapes
	}
	r.shells.Begin(string(p.Path))
	return nil, nil
}

// environ is what a process gets: what the runner was started with, the way
// out, and what the server set, the later over the earlier.
func (r *Runner) environ() []string {
	all := map[string]string{}
	var order []string
	add := func(name, value string) {
		if _, known := all[name]; !known {
			order = append(order, name)
		}
		all[name] = value
	}
	for _, e := range r.config.Env {
		if name, value, ok := strings.Cut(e, "="); ok {
			add(name, value)
		}
	}
	if r.config.Network == sandbox.Proxied {
		for name, value := range proxyenv.Env(sandbox.ProxyPort) {
			add(name, value)
		}
	}
	r.mu.Lock()
	for name, value := range r.env {
		add(name, value)
	}
	r.mu.Unlock()
	if dir, ok := strings.CutPrefix(all[sandbox.PathFirst], "~/"); ok && all["HOME"] != "" && all["PATH"] != "" {
		all["PATH"] = filepath.Join(all["HOME"], dir) + ":" + all["PATH"]
	}
	out := make([]string, len(order))
	for i, name := range order {
		out[i] = name + "=" + all[name]
	}
	return out
}

// admit refuses a claim older than the newest that was seen. A claim of 0 is a user who looks,
// which is allowed for any owner.
func (r *Runner) admit(claim int64) error {
	if claim == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case claim < r.fence:
		return rpc.ErrFenced
	case claim == r.fence:
		return nil
	}
	// Written before it is obeyed: a runner that is started anew must not forget it.
	if err := r.writeFence([]byte(strconv.FormatInt(claim, 10))); err != nil {
		return fmt.Errorf("the sandbox cannot remember its owner: %w", err)
	}
	r.fence = claim
	return nil
}
