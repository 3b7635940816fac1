package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

const (
	// otlpTimeout limits one request to a collector.
	otlpTimeout = 5 * time.Second
	// maxOTLPResponse limits how many bytes of a collector's response are read.
	maxOTLPResponse = 64 << 10
)

// otlpClient sends spans over HTTP. OpenTelemetry's own exporter does the same, but it depends on gRPC.
// A failed request is not retried, because stopping the server must not wait for a collector.
type otlpClient struct {
	endpoint string
	headers  http.Header
	gzip     bool
	client   *http.Client
}

// newOTLPClient uses OpenTelemetry's environment variables for headers, certificates and compression.
func newOTLPClient(endpoint string) (*otlpClient, error) {
	headers, err := otlpHeaders()
	if err != nil {
		return nil, err
	}
	security, err := otlpTLS()
	if err != nil {
		return nil, err
	}
	if security != nil && strings.HasPrefix(endpoint, "http:") {
		return nil, errors.New("OTEL_EXPORTER_OTLP_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE need an https endpoint")
	}
	_, compression := otlpVariable("COMPRESSION")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = security
	return &otlpClient{endpoint, headers, compression == "gzip", &http.Client{Transport: transport, Timeout: otlpTimeout}}, nil
}

// otlpVariable returns the name and value of the variable for traces or, if that is not set, for all signals.
func otlpVariable(name string) (variable, value string) {
	for _, prefix := range []string{"OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"} {
		if value := strings.TrimSpace(os.Getenv(prefix + name)); value != "" {
			return prefix + name, value
		}
	}
	return "OTEL_EXPORTER_OTLP_" + name, ""
}

// otlpHeaders reads a list such as api-key=abc,tenant=a%20b. Values are not part of errors: they may be secret.
func otlpHeaders() (http.Header, error) {
	variable, value := otlpVariable("HEADERS")
	headers := http.Header{}
	for pair := range strings.SplitSeq(value, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, found := strings.Cut(pair, "=")
		text, err := url.PathUnescape(strings.TrimSpace(escaped))
		if name = strings.TrimSpace(name); !found || name == "" || err != nil {
			return nil, fmt.Errorf("%s must be a list of name=value pairs, separated by commas, with values in URL encoding", variable)
		}
		headers.Set(name, text)
	}
	return headers, nil
}

// otlpTLS returns nil if no certificates are set, so that the system's are used.
func otlpTLS() (*tls.Config, error) {
	variable, authorities := otlpVariable("CERTIFICATE")
	certificateVariable, certificate := otlpVariable("CLIENT_CERTIFICATE")
	_, key := otlpVariable("CLIENT_KEY")
	if authorities == "" && (certificate == "" || key == "") {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		text, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s has no certificate in PEM format", variable, authorities)
		}
	}
	if certificate != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", certificateVariable, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Start implements otlptrace.Client.
func (c *otlpClient) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *otlpClient) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client.
func (c *otlpClient) UploadTraces(ctx context.Context, all []*spans.ResourceSpans) error {
	// On the wire, TracesData is the same as the ExportTraceServiceRequest that collectors expect.
	body, err := proto.Marshal(&spans.TracesData{ResourceSpans: all})
	if err != nil {
		return err
	}
	if c.gzip {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(body); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		body = packed.Bytes()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = c.headers.Clone()
	request.Header.Set("Content-Type", "application/x-protobuf")
	if c.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxOTLPResponse))
	switch {
	case err != nil:
		return err
	case response.StatusCode/100 != 2:
		return fmt.Errorf("the collector responded with %s: %s", response.Status, bytes.TrimSpace(text))
	case response.Header.Get("Content-Type") == "application/x-protobuf":
		return partialSuccess(text)
	}
	return nil
}

// partialSuccess returns an error if an ExportTraceServiceResponse reports rejected spans or has a warning.
func partialSuccess(response []byte) error {
	inner, _ := protoField(response, 1).([]byte)
	rejected, _ := protoField(inner, 1).(uint64)
	message, _ := protoField(inner, 2).([]byte)
	if rejected == 0 && len(message) == 0 {
		return nil
	}
	return fmt.Errorf("the collector rejected %d spans: %s", rejected, message)
}

// protoField returns a field of an encoded message: a uint64, bytes, or nil if it is missing.
func protoField(message []byte, wanted protowire.Number) any {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(number, kind, message)
		if size < 0 {
			return nil
		}
		if number == wanted {
			switch kind {
			case protowire.VarintType:
				value, _ := protowire.ConsumeVarint(message)
				return value
			case protowire.BytesType:
				value, _ := protowire.ConsumeBytes(message)
				return value
			}
		}
		message = message[size:]
	}
	return nil
}
