// Package logline puts the request and the conversation on every line that is logged on their behalf. They travel in
// the context, so that no code between needs to know them.
package logline

import (
	"context"
	"log/slog"
)

// About is what a line is about. Empty fields are left out.
type About struct {
	Request string // ID of an HTTP request
	Session string // ID of a conversation
}

type key struct{}

// With returns a context whose lines are about a request or a conversation, in addition to what they were about.
func With(ctx context.Context, a About) context.Context {
	was, _ := ctx.Value(key{}).(About)
	if a.Request == "" {
		a.Request = was.Request
	}
	if a.Session == "" {
		a.Session = was.Session
	}
	return context.WithValue(ctx, key{}, a)
}

// Handler adds what the context of a line knows, unless the line says it itself.
func Handler(next slog.Handler) slog.Handler { return handler{Handler: next} }

type handler struct {
	slog.Handler
	// request and session are true if the logger has them on every line.
	request, session bool
}

// Names of the attributes.
const (
	requestAttr = "request"
	sessionAttr = "session"
)

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	about, ok := ctx.Value(key{}).(About)
	if !ok {
		return h.Handler.Handle(ctx, r)
	}
	request, session := h.request || about.Request == "", h.session || about.Session == ""
	r.Attrs(func(a slog.Attr) bool {
		request, session = request || a.Key == requestAttr, session || a.Key == sessionAttr
		return true
	})
	if !request {
		r.AddAttrs(slog.String(requestAttr, about.Request))
	}
	if !session {
		r.AddAttrs(slog.String(sessionAttr, about.Session))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.request, h.session = h.request || a.Key == requestAttr, h.session || a.Key == sessionAttr
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
