// Package browse is the tool that uses a web browser: Chromium, inside the
// conversation's sandbox, under its limits and its egress policy.
package browse

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
	"deckhand/internal/tool/browse/chromium"
	"deckhand/internal/tool/browse/devtools"
	"deckhand/internal/tool/browse/page"
	"deckhand/internal/tool/browse/script"
)

//go:embed browse.md
var description string

//go:embed schema.json
var schema []byte

// Name is the tool's.
const Name = "browser"

const (
	// stepTime is how long one step may take, and how long looking at the page may.
	stepTime = 30 * time.Second
	// idleTime is how long an unused connection is kept. The browser keeps running and is found
	// again.
	idleTime = 5 * time.Minute
)

// Tool implements tool.Tool. It keeps a connection to the browser of every
// session that uses one.
type Tool struct {
	idle time.Duration

	mu     sync.Mutex
	visits map[string]*visit
	closed bool
}

// New makes the tool.
func New() *Tool { return &Tool{idle: idleTime, visits: map[string]*visit{}} }

// Spec implements tool.Tool.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, Sandbox: true}
}

type args struct {
	Code string `json:"code"`
}

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, open tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return failed("The arguments of %s are not valid: %v", Name, err), nil
	}
	steps, err := script.Parse(a.Code)
	if err != nil {
		return failed("The code was not understood, and nothing was done: %v.", err), nil
	}
	box, err := open(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	v, err := t.enter(ctx, call.Session)
	if err != nil {
		return tool.Result{}, err
	}
	defer v.leave(t.idle)
	r := &round{visit: v, box: box, call: call, code: a.Code}
	if call.Repeats() {
		return r.again(ctx)
	}
	return r.run(ctx, steps)
}

// Forget lets go of a session's browser. It ends with its sandbox.
func (t *Tool) Forget(session string) {
	t.mu.Lock()
	v := t.visits[session]
	delete(t.visits, session)
	t.mu.Unlock()
	if v != nil {
		v.end()
	}
}

// Close lets go of all browsers. Calls that run end with an error.
func (t *Tool) Close() {
	t.mu.Lock()
	t.closed = true
	visits := t.visits
	t.visits = map[string]*visit{}
	t.mu.Unlock()
	for _, v := range visits {
		v.end()
	}
}

func failed(format string, a ...any) tool.Result {
	return tool.Result{Failed: true, Text: fmt.Sprintf(format, a...)}
}

// round is one call.
type round struct {
	*visit
	box  *sandbox.Sandbox
	call tool.Call
	code string

	text    []string // what get_text read
	saved   string   // where screenshot put the last picture
	notes   []string
	problem string
}

// run does the steps and tells what is to be seen then.
func (r *round) run(ctx context.Context, steps []script.Step) (tool.Result, error) {
	if err := r.connect(ctx, true); err != nil {
		return r.refused(ctx, err)
	}
	r.browser.SetAnswer(page.Answer{})
	for i, step := range steps {
		err := r.step(ctx, step)
		if err == nil {
			continue
		}
		if lost := r.lost(ctx, err); lost != nil {
			return tool.Result{}, lost
		}
		r.problem = fmt.Sprintf("%s: %v", clip.MiddleRunes(step.Source, 500), r.explain(err))
		if left := len(steps) - i - 1; left > 0 {
			r.problem += fmt.Sprintf(" (%d more were not done)", left)
		}
		break
	}
	state, err := r.look(ctx)
	if err != nil {
		return r.refused(ctx, err)
	}
	return r.result(state), nil
}

// again answers a call that may have been made before.
func (r *round) again(ctx context.Context) (tool.Result, error) {
	const unknown = "The server was restarted while this was done, so it is not known how much of it was done: the page may have changed. Look at it before you repeat anything."
	err := r.connect(ctx, false)
	if errors.Is(err, errNone) {
		return tool.Result{Unknown: true, Text: unknown + " There is no browser now."}, nil
	}
	if err != nil {
		return r.refused(ctx, err)
	}
	state, err := r.look(ctx)
	if err != nil {
		return r.refused(ctx, err)
	}
	r.notes = append([]string{unknown}, r.notes...)
	out := r.result(state)
	out.Unknown = true
	return out, nil
}

// errNone says that no browser runs.
var errNone = errors.New("no browser runs")

// connect makes sure that there is a connection to a browser, and with start
// that there is a browser.
func (r *round) connect(ctx context.Context, start bool) error {
	place, err := chromium.Find(ctx, r.box, r.call.Session)
	if err != nil {
		return err
	}
	if r.browser != nil && r.place == place && !ended(r.browser) {
		return nil
	}
	r.drop()
	if place.Port != 0 {
		if err = r.attach(ctx, place); err == nil {
			return nil
		}
		if lost := r.lost(ctx, err); lost != nil {
			return lost
		}
	}
	if !start {
		return errNone
	}
	if place, err = chromium.Start(ctx, r.box, r.call.Session); err != nil {
		return err
	}
	if len(r.call.Previous) > 0 || r.used {
		r.notes = append(r.notes, "The browser had ended and was started again: the pages that were open are gone.")
	}
	return r.attach(ctx, place)
}

// attach connects to a browser that runs.
func (r *round) attach(ctx context.Context, place chromium.Place) error {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	b, err := page.Connect(ctx, page.Options{
		Address: place.URL(), Dial: place.Dial(r.box), Downloads: place.Workspace + "/downloads",
		Width: chromium.Width, Height: chromium.Height,
	})
	if err != nil {
		return err
	}
	if !r.hold(b, place) {
		b.Close()
		return errClosed
	}
	// A server that was restarted does not know which tab was looked at.
	var before details
	if json.Unmarshal(r.call.Previous, &before) == nil && before.URL != "" {
		b.FocusURL(before.URL)
	}
	return nil
}

// look sees what there is. A tab that crashed is replaced, and a browser that
// ended is started again: both are told.
func (r *round) look(ctx context.Context) (page.State, error) {
	var state page.State
	var err error
	for range 3 {
		bounded, cancel := context.WithTimeout(ctx, stepTime)
		if err = r.mend(bounded); err == nil {
			state, err = r.browser.Look(bounded)
		}
		cancel()
		if !errors.Is(err, devtools.ErrClosed) && !errors.Is(err, devtools.ErrGone) {
			break
		}
		if lost := r.lost(ctx, err); lost != nil {
			return state, lost
		}
		if ended(r.browser) {
			if err := r.connect(ctx, true); err != nil {
				return state, err
			}
		}
	}
	if lost := r.lost(ctx, err); lost != nil {
		return state, lost
	}
	if err != nil { // half of it is better than nothing
		r.notes = append(r.notes, fmt.Sprintf("The page could not be read: %v.", r.explain(err)))
	}
	r.notes = append(r.notes, r.browser.Notes()...)
	return state, nil
}

// mend replaces a tab that crashed.
func (r *round) mend(ctx context.Context) error {
	t, err := r.browser.Active(ctx)
	if err != nil || !t.Lost() {
		return err
	}
	r.notes = append(r.notes, "It was closed, and there is an empty tab in its place.")
	return r.browser.Replace(ctx, t)
}

// lost returns an error that does not concern the model: the call was cancelled, the sandbox is
// lost, or another process controls it.
func (r *round) lost(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, ours := range []error{sandbox.ErrLost, sandbox.ErrGone, sandbox.ErrFenced, errClosed} {
		if errors.Is(err, ours) {
			return err
		}
	}
	select {
	case <-r.box.Done():
		return sandbox.ErrLost
	default:
		return nil
	}
}

// refused is the answer when there is no browser to look at.
func (r *round) refused(ctx context.Context, err error) (tool.Result, error) {
	if lost := r.lost(ctx, err); lost != nil {
		return tool.Result{}, lost
	}
	return failed("The browser cannot be used: %v.", err), nil
}

// explain puts an error into words for the model.
func (r *round) explain(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("it took longer than %d seconds and was given up", int(stepTime.Seconds()))
	case errors.Is(err, devtools.ErrClosed):
		return errors.New("the browser ended")
	case errors.Is(err, devtools.ErrGone):
		return errors.New("the page crashed or was closed")
	}
	return err
}

// ended says whether a browser has gone.
func ended(b *page.Browser) bool {
	select {
	case <-b.Done():
		return true
	default:
		return false
	}
}
