// Package probe tries a model out: a few small calls that show whether agents can
// work with it, and a sentence about each thing that was tried. The calls cost
// what the model costs, which is a fraction of a cent.
package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/llm"
)

// The names of checks, in the order of a report.
const (
	Reachable = "reachable"
	Streaming = "streaming"
	Tools     = "tools"
	Images    = "images"
	Context   = "context"
	Price     = "price"
)

// Check is one thing that was tried or looked up.
type Check struct {
	Name string
	// OK is nil if unknown.
	OK      *bool
	Message string
}

// Report is what came out.
type Report struct {
	// OK says that agents can work with the model.
	OK     bool
	Checks []Check
	// Class is why it cannot be reached, "" if it can or the provider did not say.
	Class llm.Class
	// FirstToken is how long the model took to begin its first answer, 0 if it did not.
	FirstToken time.Duration
}

// Options say how to try.
type Options struct {
	// Timeout is for each call; 0 is 30 seconds.
	Timeout time.Duration
	// Redact hides secrets in what a provider says; nil hides nothing.
	Redact func(string) string
}

// Run tries the model. info is what the catalogue has about it.
func Run(ctx context.Context, m llm.Model, info llm.Info, o Options) Report {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	p := &prober{model: m, info: info, options: o}
	p.greet(ctx)
	if p.reached {
		p.useTools(ctx)
		p.look(ctx)
	} else {
		for _, name := range []string{Streaming, Tools, Images} {
			p.add(name, nil, "Not tested, because the model cannot be reached.")
		}
	}
	p.lookUp()
	p.report.OK = p.reached && p.usable
	return p.report
}

type prober struct {
	model   llm.Model
	info    llm.Info
	options Options
	report  Report
	reached bool
	usable  bool
}

func (p *prober) add(name string, ok *bool, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if p.options.Redact != nil {
		message = p.options.Redact(message)
	}
	p.report.Checks = append(p.report.Checks, Check{name, ok, message})
}

var yes, no = true, false

// result is an answer, whole.
type result struct {
	text      string
	calls     []llm.Call
	fragments int // of text and thoughts
	first     time.Duration
	cut       bool
	err       error
}

// ask makes one call, within its time.
func (p *prober) ask(ctx context.Context, req llm.Request) result {
	ctx, cancel := context.WithTimeout(ctx, p.options.Timeout)
	defer cancel()
	req.MaxOutput = 300
	if p.info.Thinks {
		req.MaxOutput = 2000 // thoughts count, and some models want at least a thousand for them
	}
	req.System = "You are being tested. Do exactly what is asked, in as few words as possible."
	var r result
	begun := time.Now()
	for part, err := range p.model.Stream(ctx, req) {
		if err != nil {
			r.err = err
			break
		}
		if r.first == 0 {
			r.first = time.Since(begun)
		}
		if part.Text != "" || part.Reasoning != "" {
			r.fragments++
			r.text += part.Text
		}
		if part.Call != nil {
			r.calls = append(r.calls, *part.Call)
		}
		if part.Done != nil {
			r.cut = part.Done.Cut
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.err = &llm.Error{Class: llm.ClassNetwork, Message: fmt.Sprintf("no response within %s", p.options.Timeout)}
	}
	return r
}

// greet checks that the model responds, and that it streams.
func (p *prober) greet(ctx context.Context) {
	r := p.ask(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "Write the numbers from one to twenty as words, separated by spaces."}}})
	if r.err != nil {
		var e *llm.Error
		if errors.As(r.err, &e) {
			p.report.Class = e.Class
		}
		p.add(Reachable, &no, "%s", explain(r.err))
		return
	}
	p.reached, p.report.FirstToken = true, r.first
	p.add(Reachable, &yes, "The model responds; its reply started after %s.", r.first.Round(time.Millisecond))
	switch {
	case r.fragments > 1:
		p.add(Streaming, &yes, "The reply was streamed in %d pieces.", r.fragments)
	case r.fragments == 0:
		p.add(Streaming, nil, "Unknown: the reply was empty.")
	default:
		p.add(Streaming, &no, "The reply was not streamed. Agents work, but their text does not appear while it is written; a proxy may be buffering responses.")
	}
}

// lookUp tells what is known without asking.
func (p *prober) lookUp() {
	if p.info.Window > 0 {
		p.add(Context, &yes, "The context window has %d tokens.", p.info.Window)
	} else {
		p.add(Context, nil, "The context window size is unknown. Set it in the config file, under models.")
	}
	if p.info.Priced {
		p.add(Price, &yes, "Price per million tokens: $%s input, $%s output.", dollars(p.info.Price.Input), dollars(p.info.Price.Output))
	} else {
		p.add(Price, nil, "The price is unknown, so a budget cannot be used. Set a price in the config file, under prices (0 is allowed).")
	}
}

func dollars(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.2f", f), ".00") }

// explain says what a failure means and what to do.
func explain(err error) string {
	var e *llm.Error
	if !errors.As(err, &e) {
		return "The call failed: " + err.Error()
	}
	said := strings.TrimRight(e.Message, ".")
	switch e.Class {
	case llm.ClassAuth:
		return "The API key is missing or invalid, or has no access to this model: " + said + "."
	case llm.ClassRate:
		return "Rate limited by the provider: " + said + ". Try again later."
	case llm.ClassOverload:
		return "The provider is not available at the moment: " + said + ". Try again later."
	case llm.ClassCredit:
		return "The account has no credit left: " + said + "."
	case llm.ClassNetwork:
		return "The base URL does not respond: " + said + ". Check the base URL."
	case llm.ClassRequest:
		return "The provider rejected the request; check the model name: " + said + "."
	case llm.ClassContext:
		return "The context window is too small: " + said + "."
	}
	return "The provider failed: " + said + "."
}
