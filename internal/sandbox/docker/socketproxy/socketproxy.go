// Package socketproxy passes requests to a container engine that the docker driver needs, and refuses all others. Access to
// the socket of an engine is as good as root on its machine: it can start containers with any rights and any files. Behind
// this proxy, a server can only create containers without network, capabilities and files of the machine, and only use
// its own ones.
package socketproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// label marks the containers and volumes of the docker driver.
const label = "deckhand"

// maxBody bounds the requests that are checked. Others, such as files to copy, are streamed.
const maxBody = 1 << 20

// Proxy is a handler in front of an engine.
type Proxy struct {
	engine *client.Client
	pass   *httputil.ReverseProxy
	log    *slog.Logger
}

// New returns a proxy for the engine at a unix socket.
func New(socket string, log *slog.Logger) (*Proxy, error) {
	engine, err := client.New(client.WithHost("unix://" + socket))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableCompression: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	p := &Proxy{engine: engine, log: log}
	p.pass = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "the container engine does not respond: "+err.Error())
		},
	}
	return p, nil
}

// Serve serves until ctx ends.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	err := s.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, p.engine.Close())
}

// refusal is a request that is not passed on.
type refusal struct{ why string }

func (r refusal) Error() string { return r.why }

func refused(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...)} }

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := p.check(r)
	var no refusal
	switch {
	case err == nil:
		p.pass.ServeHTTP(w, r)
	case errors.As(err, &no):
		p.log.Warn("refused a request to the container engine", "method", r.Method, "path", r.URL.Path, "why", no.why)
		refuse(w, http.StatusForbidden, no.why)
	default:
		refuse(w, http.StatusBadGateway, err.Error())
	}
}

func refuse(w http.ResponseWriter, status int, why string) {
	body, _ := json.Marshal(map[string]string{"message": why})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

var (
	version = regexp.MustCompile(`^/v[0-9.]+/`)
	name    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	// image is a reference, without parts that lead to another path.
	image = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@-]*(/[A-Za-z0-9][A-Za-z0-9_.:@-]*)*$`)
)

// verbs are the requests about one container.
var verbs = map[string]bool{
	"GET json": true, "GET logs": true, "GET archive": true, "HEAD archive": true, "PUT archive": true,
	"POST start": true, "POST stop": true, "POST pause": true, "POST unpause": true, "POST wait": true, "POST update": true, "POST exec": true, "DELETE ": true,
}

// check returns a refusal for requests that are not passed on. It may replace the body of the request.
func (p *Proxy) check(r *http.Request) error {
	path := r.URL.EscapedPath()
	if path != r.URL.Path || strings.Contains(path, "..") || strings.Contains(path, "//") {
		return refused("the path %q is not allowed", path)
	}
	path = strings.TrimPrefix(version.ReplaceAllString(path, "/"), "/")
	switch r.Method + " " + path {
	case "GET _ping", "HEAD _ping", "GET version", "GET info":
		return nil
	case "GET containers/json", "GET volumes":
		return listsOurs(r)
	case "POST containers/create":
		return change(r, func(c *create) error { return c.check(r.URL.Query().Get("name")) })
	case "POST volumes/create":
		return change(r, checkVolume)
	case "POST images/create":
		if from := r.URL.Query(); !image.MatchString(from.Get("fromImage")) || from.Get("fromSrc") != "" {
			return refused("only images of a registry can be pulled")
		}
		return nil
	}
	kind, rest, _ := strings.Cut(path, "/")
	switch kind {
	case "containers":
		return p.container(r, rest)
	case "exec":
		return p.exec(r, rest)
	case "volumes":
		return p.volume(r, rest)
	case "images":
		if ref, ok := strings.CutSuffix(rest, "/json"); ok && r.Method == http.MethodGet && image.MatchString(ref) {
			return nil
		}
	}
	return refused("%s /%s is not allowed", r.Method, path)
}

// listsOurs allows lists of what has our label.
func listsOurs(r *http.Request) error {
	var filters struct {
		Label map[string]bool `json:"label"`
	}
	if err := json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters); err != nil || !filters.Label[label+"=1"] {
		return refused("lists must be filtered by the label %s=1", label)
	}
	return nil
}

// container allows some requests about containers with our label.
func (p *Proxy) container(r *http.Request, rest string) error {
	id, verb, _ := strings.Cut(rest, "/")
	if !name.MatchString(id) || !verbs[r.Method+" "+verb] {
		return refused("%s /containers/%s is not allowed", r.Method, rest)
	}
	if err := p.ours(r.Context(), id); err != nil {
		return err
	}
	switch verb {
	case "update":
		return change(r, checkUpdate)
	case "exec":
		return change(r, checkExec)
	}
	return nil
}

// ours returns a refusal if a container exists and is not ours. A missing one is left to the engine.
func (p *Proxy) ours(ctx context.Context, id string) error {
	got, err := p.engine.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if c := got.Container.Config; c == nil || c.Labels[label] != "1" {
		return refused("the container %s was not created by Deckhand", id)
	}
	return nil
}

// exec allows to start an exec of one of our containers.
func (p *Proxy) exec(r *http.Request, rest string) error {
	id, verb, _ := strings.Cut(rest, "/")
	if !name.MatchString(id) || r.Method+" "+verb != "POST start" {
		return refused("%s /exec/%s is not allowed", r.Method, rest)
	}
	got, err := p.engine.ExecInspect(r.Context(), id, client.ExecInspectOptions{})
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.ours(r.Context(), got.ContainerID)
}

// volume allows to inspect and remove our volumes.
func (p *Proxy) volume(r *http.Request, rest string) error {
	if !name.MatchString(rest) || r.Method != http.MethodGet && r.Method != http.MethodDelete {
		return refused("%s /volumes/%s is not allowed", r.Method, rest)
	}
	got, err := p.engine.VolumeInspect(r.Context(), rest, client.VolumeInspectOptions{})
	if missing(err) {
		return nil
	}
	if err == nil && got.Volume.Labels[label] != "1" {
		return refused("the volume %s was not created by Deckhand", rest)
	}
	return err
}

// change decodes the body of a request, checks it, and passes on what was checked: the engine must not read anything else in it.
func change[T any](r *http.Request, check func(*T) error) error {
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(raw) > maxBody {
		return refused("the request is too large")
	}
	body := new(T)
	if err := json.Unmarshal(raw, body); err != nil {
		return refused("the request is not valid JSON: %s", err)
	}
	if err := check(body); err != nil {
		return err
	}
	if raw, err = json.Marshal(body); err != nil {
		return err
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(raw)), int64(len(raw)), nil
	r.Header.Set("Content-Type", "application/json")
	return nil
}
