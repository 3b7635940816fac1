// Package chromium starts a browser inside a sandbox and finds it again.
//
// The browser belongs to the sandbox: it is under its limits and its egress policy, and keeps
// running when the server restarts. Its address is written in its folder, so that the next
// process that controls the sandbox can use it.
package chromium

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"deckhand/internal/sandbox"
)

//go:embed start.sh
var start string

// look writes where the workspace is and where the browser listens.
const look = `pwd; cat "$1/` + sandbox.BrowserPort + `" 2>/dev/null; true`

// Width and Height are the size of a page as it is shown.
const (
	Width  = 1280
	Height = 720
)

// ErrMissing says that the sandbox has no browser.
var ErrMissing = errors.New("no Chromium is installed in the sandbox: install the package chromium (on Debian and Ubuntu: apt-get install chromium), " +
	"in the sandbox's image or on the machine that sandboxes are made of")

// startTimeout is a little more than the script waits.
const startTimeout = 45 * time.Second

// Place is where a browser listens inside a sandbox. It differs between two runs
// of the browser. The zero port is no browser at all.
type Place struct {
	Port int
	Path string
	// Workspace is what the sandbox calls it.
	Workspace string
}

// URL is the URL of the browser, to use with Dial.
func (p Place) URL() string { return "ws://127.0.0.1:" + strconv.Itoa(p.Port) + p.Path }

// Dial connects to the browser.
func (p Place) Dial(box *sandbox.Sandbox) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return box.DialPort(ctx, p.Port) }
}

// folder is where a session's browser keeps its things. Sandboxes that share
// their /tmp, as those without walls do, must not share their browsers.
func folder(session string) string {
	sum := sha256.Sum256([]byte(session))
	return sandbox.BrowserFolder + hex.EncodeToString(sum[:8])
}

// Find says where the session's browser was started last. It may have ended
// since. Like all that is run in a sandbox, it is refused to who does not command
// it any more.
func Find(ctx context.Context, box *sandbox.Sandbox, session string) (Place, error) {
	r, err := box.Run(ctx, sandbox.Process{Args: []string{"/bin/sh", "-c", look, "sh", folder(session)}}, nil)
	if err != nil {
		return Place{}, err
	}
	return parse(string(r.Stdout)), nil
}

// path is what the browser calls itself. Programs in the sandbox could have
// written anything.
var path = regexp.MustCompile(`^/devtools/browser/[0-9a-fA-F-]{1,64}$`)

// parse reads what look writes.
func parse(text string) Place {
	lines := strings.Split(text, "\n")
	p := Place{Workspace: lines[0]}
	if len(lines) < 3 {
		return p
	}
	port, err := strconv.Atoi(lines[1])
	if err != nil || port < 1 || port > 65535 || !path.MatchString(lines[2]) {
		return p
	}
	p.Port, p.Path = port, lines[2]
	return p
}

// Start starts a new browser for the session, in place of the one it had.
// ErrMissing if there is none to start.
func Start(ctx context.Context, box *sandbox.Sandbox, session string) (Place, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	size := fmt.Sprintf("%d,%d", Width, Height)
	r, err := box.Run(ctx, sandbox.Process{Args: []string{"/bin/sh", "-c", start, "sh", folder(session), size}}, nil)
	if err != nil {
		return Place{}, err
	}
	word, rest, _ := strings.Cut(string(r.Stdout), "\n")
	switch word {
	case "ready":
	case "missing":
		return Place{}, ErrMissing
	default:
		return Place{}, &StartError{strings.TrimSpace(rest + "\n" + string(r.Stderr))}
	}
	p, err := Find(ctx, box, session)
	if err == nil && p.Port == 0 {
		err = &StartError{"it does not say where it listens"}
	}
	return p, err
}

// StartError is why a browser did not start, in its own words.
type StartError struct{ Reason string }

func (e *StartError) Error() string { return "Chromium did not start: " + e.Reason }
