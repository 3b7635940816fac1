package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer sends spans to an OTLP endpoint.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// NewTracer sends to endpoint, e.g. http://127.0.0.1:4318. Sending happens in
// the background; a collector that is away costs spans, never requests.
func NewTracer(ctx context.Context, endpoint, version string, logger *slog.Logger) (*Tracer, error) {
	u, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	if u.Path == "" || u.Path == "/" { // where collectors listen; the exporter would send to the root
		u.Path = "/v1/traces"
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("cannot send traces", "error", err) }))
	client, err := newOTLPClient(u.String())
	if err != nil {
		return nil, fmt.Errorf("cannot send traces to the OTLP endpoint: %w", err)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("cannot send traces to the OTLP endpoint: %w", err)
	}
	who := resource.NewSchemaless(attribute.String("service.name", "deckhand"), attribute.String("service.version", version))
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(who))
	return &Tracer{provider: p, tracer: p.Tracer("deckhand")}, nil
}

// CheckEndpoint checks the flag --otlp-endpoint, which may be "".
func CheckEndpoint(endpoint string) error {
	if endpoint == "" {
		return nil
	}
	_, err := parseEndpoint(endpoint)
	return err
}

func parseEndpoint(endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("--otlp-endpoint must be an http or https URL such as http://127.0.0.1:4318")
	}
	return u, nil
}

// Span begins a span; end is called with the HTTP status, or 0 if there is none.
func (t *Tracer) Span(ctx context.Context, name string) (context.Context, func(status int)) {
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, func(status int) {
		if status > 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", status))
		}
		span.End()
	}
}

// Count sends numbers under a name: a span of its own, without anything in it
// that tells whose they are.
func (t *Tracer) Count(name string, labels map[string]string, counts map[string]int64) {
	var all []attribute.KeyValue
	for k, v := range labels {
		all = append(all, attribute.String(k, v))
	}
	for k, v := range counts {
		all = append(all, attribute.Int64(k, v))
	}
	_, span := t.tracer.Start(context.Background(), name, trace.WithNewRoot(), trace.WithAttributes(all...))
	span.End()
}

// Name gives the span in ctx a better name than it began with.
func Name(ctx context.Context, name string) { trace.SpanFromContext(ctx).SetName(name) }

// Close sends what is left.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }
