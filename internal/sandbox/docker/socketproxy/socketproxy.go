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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/types/mount"
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
	version = regexp.MustCompile(`^/v1\.([1-9][0-9]{1,2})/`)
	name    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	// image is a reference, without parts that lead to another path.
	image = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:@-]*(/[A-Za-z0-9][A-Za-z0-9_.:@-]*)*$`)
	// tag is a tag or a digest.
	tag = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:+-]*$`)
)

// minVersion is the minor version of the oldest API that the client of the driver uses. Older ones have other rules: before
// 1.24, the start of a container can change its mounts.
const minVersion = 40

// verbs are the requests about one container, with the parameters that they may have.
var verbs = map[string][]string{
	"GET json": {}, "GET logs": {"stdout", "stderr", "tail"}, "GET archive": {"path"}, "HEAD archive": {"path"},
	"PUT archive": {"path", "noOverwriteDirNonDir", "copyUIDGID"},
	"POST start":  {}, "POST stop": {"t", "signal"}, "POST pause": {}, "POST unpause": {}, "POST wait": {"condition"}, "POST update": {}, "POST exec": {},
	"DELETE ": {"force", "v"},
}

// check returns a refusal for requests that are not passed on. It replaces the parameters, the headers and, but for files, the
// body of the request by what it has checked.
func (p *Proxy) check(r *http.Request) error {
	path := r.URL.EscapedPath()
	if path != r.URL.Path || strings.Contains(path, "..") || strings.Contains(path, "//") {
		return refused("the path %q is not allowed", path)
	}
	if v := version.FindStringSubmatch(path); v != nil {
		if minor, err := strconv.Atoi(v[1]); err != nil || minor < minVersion {
			return refused("version 1.%s of the API is not allowed; the oldest is 1.%d", v[1], minVersion)
		}
		path = strings.TrimPrefix(path, v[0])
	} else if path = strings.TrimPrefix(path, "/"); path != "_ping" {
		return refused("the path %q does not start with a version of the API", r.URL.Path)
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return refused("the parameters are not valid: %s", err)
	}
	keepHeaders(r, path)
	switch r.Method + " " + path {
	case "GET _ping", "HEAD _ping", "GET version", "GET info":
		return plain(r, q)
	case "GET containers/json":
		return listsOurs(r, q, "all", "filters")
	case "GET volumes":
		return listsOurs(r, q, "filters")
	case "POST containers/create":
		if err := only(r, q, "name"); err != nil {
			return err
		}
		return change(r, func(c *create) error {
			if err := c.check(q.Get("name")); err != nil {
				return err
			}
			return p.mounts(r.Context(), c.HostConfig.Mounts)
		})
	case "POST volumes/create":
		if err := only(r, q); err != nil {
			return err
		}
		return change(r, checkVolume)
	case "POST images/create":
		// The full name of a repository has no transport, such as a folder of the machine.
		from, err := reference.ParseNormalizedNamed(q.Get("fromImage"))
		if err != nil || from.Name() != q.Get("fromImage") || !tag.MatchString(q.Get("tag")) {
			return refused("only images of a registry can be pulled, by their full name and a tag")
		}
		return plain(r, q, "fromImage", "tag")
	}
	kind, rest, _ := strings.Cut(path, "/")
	switch kind {
	case "containers":
		return p.container(r, q, rest)
	case "exec":
		return p.exec(r, q, rest)
	case "volumes":
		return p.volume(r, q, rest)
	case "images":
		if ref, ok := strings.CutSuffix(rest, "/json"); ok && r.Method == http.MethodGet && image.MatchString(ref) {
			return plain(r, q)
		}
	}
	return refused("%s /%s is not allowed", r.Method, path)
}

// keepHeaders removes headers that the request does not need: a body of a form would be read as parameters, and an upgrade
// would allow requests that are not checked.
func keepHeaders(r *http.Request, path string) {
	kept := http.Header{}
	keep := []string{"User-Agent", "Accept", "Te"}
	if r.Method == http.MethodPost && path == "images/create" {
		keep = append(keep, "X-Registry-Auth")
	}
	for _, k := range keep {
		if v := r.Header.Get(k); v != "" {
			kept.Set(k, v)
		}
	}
	if r.Method == http.MethodPost && strings.HasPrefix(path, "exec/") && strings.EqualFold(r.Header.Get("Upgrade"), "tcp") {
		kept.Set("Connection", "Upgrade")
		kept.Set("Upgrade", "tcp")
	}
	r.Header, r.Trailer = kept, nil
}

// only refuses parameters that are not in allowed, or given twice. The engine gets the others as they were read here.
func only(r *http.Request, q url.Values, allowed ...string) error {
	for k, v := range q {
		if !slices.Contains(allowed, k) || len(v) != 1 {
			return refused("the parameter %q is not allowed", k)
		}
	}
	r.URL.RawQuery, r.URL.ForceQuery = q.Encode(), false
	return nil
}

// plain allows requests with some parameters and without a body.
func plain(r *http.Request, q url.Values, allowed ...string) error {
	if err := only(r, q, allowed...); err != nil {
		return err
	}
	if n, err := io.ReadFull(r.Body, make([]byte, 1)); n > 0 || err != io.EOF {
		return refused("the request must not have a body")
	}
	r.Body, r.ContentLength, r.TransferEncoding = http.NoBody, 0, nil
	return nil
}

// listsOurs allows lists of what has our label.
func listsOurs(r *http.Request, q url.Values, allowed ...string) error {
	var filters map[string]map[string]bool
	if err := json.Unmarshal([]byte(q.Get("filters")), &filters); err != nil || !filters["label"][label+"=1"] || len(filters) != 1 {
		return refused("lists must be filtered by the label %s=1, and by labels only", label)
	}
	raw, err := json.Marshal(filters)
	if err != nil {
		return err
	}
	if len(q["filters"]) == 1 {
		q.Set("filters", string(raw))
	}
	return plain(r, q, allowed...)
}

// container allows some requests about containers with our label.
func (p *Proxy) container(r *http.Request, q url.Values, rest string) error {
	id, verb, _ := strings.Cut(rest, "/")
	allowed, ok := verbs[r.Method+" "+verb]
	if !name.MatchString(id) || !ok || strings.HasSuffix(rest, "/") {
		return refused("%s /containers/%s is not allowed", r.Method, rest)
	}
	if err := p.ours(r.Context(), id); err != nil {
		return err
	}
	if err := only(r, q, allowed...); err != nil {
		return err
	}
	switch r.Method + " " + verb {
	case "POST update":
		return change(r, checkUpdate)
	case "POST exec":
		return change(r, checkExec)
	case "PUT archive":
		r.Header.Set("Content-Type", "application/x-tar")
		return nil
	}
	return plain(r, q, allowed...)
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
func (p *Proxy) exec(r *http.Request, q url.Values, rest string) error {
	id, verb, _ := strings.Cut(rest, "/")
	if !name.MatchString(id) || r.Method+" "+verb != "POST start" {
		return refused("%s /exec/%s is not allowed", r.Method, rest)
	}
	got, err := p.engine.ExecInspect(r.Context(), id, client.ExecInspectOptions{})
	if err == nil {
		err = p.ours(r.Context(), got.ContainerID)
	}
	if err != nil && !missing(err) {
		return err
	}
	if err := only(r, q); err != nil {
		return err
	}
	return change(r, checkExecStart)
}

// volume allows to inspect and remove our volumes.
func (p *Proxy) volume(r *http.Request, q url.Values, rest string) error {
	if !name.MatchString(rest) || r.Method != http.MethodGet && r.Method != http.MethodDelete {
		return refused("%s /volumes/%s is not allowed", r.Method, rest)
	}
	if _, err := p.ourVolume(r.Context(), rest); err != nil {
		return err
	}
	if r.Method == http.MethodDelete {
		return plain(r, q, "force")
	}
	return plain(r, q)
}

// ourVolume returns a refusal if a volume exists and is not ours.
func (p *Proxy) ourVolume(ctx context.Context, id string) (exists bool, err error) {
	got, err := p.engine.VolumeInspect(ctx, id, client.VolumeInspectOptions{})
	if missing(err) {
		return false, nil
	}
	if err == nil && got.Volume.Labels[label] != "1" {
		return true, refused("the volume %s was not created by Deckhand", id)
	}
	return true, err
}

// mounts allows to mount our volumes, and volumes that do not exist if the engine creates them with our label.
func (p *Proxy) mounts(ctx context.Context, all []mount.Mount) error {
	for _, m := range all {
		if m.Source == "" {
			continue
		}
		exists, err := p.ourVolume(ctx, m.Source)
		if err != nil {
			return err
		}
		if !exists && (m.VolumeOptions == nil || m.VolumeOptions.Labels[label] != "1") {
			return refused("the volume %s does not exist, and has no label %s=1 to create it with", m.Source, label)
		}
	}
	return nil
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
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(body); err != nil {
		return refused("the request is not valid: %s", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return refused("the request is not valid: text follows the JSON")
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
