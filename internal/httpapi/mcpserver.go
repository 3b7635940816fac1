package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
)

const aboutOwnMCP = "A tool server of the Model Context Protocol over streamable HTTP, for agents elsewhere: they can create conversations, speak in them, read them and stop them, and open pull requests with the tokens that the user stored. " +
	"It keeps no sessions, so each request needs the key, and is its owner's."

// visit is a request at our own tool server. The tools find it in their context.
type visit struct {
	door *Door
	call *call
	// ctx ends with the request, the key and the server. The one that tools get does not.
	ctx context.Context
}

type visitKey struct{}

// serveOwnMCP lets the library answer. There are no sessions: nothing of one
// user's can be reached with an id that another one found out.
func serveOwnMCP(d *Door, w http.ResponseWriter, req *http.Request, c *call) error {
	ctx, release := d.hold(req.Context(), c)
	defer release()
	in := req.Clone(context.WithValue(ctx, visitKey{}, &visit{door: d, call: c, ctx: ctx}))
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(c.raw)), int64(len(c.raw))
	in.Header.Set("Content-Type", "application/json")
	in.Header.Set("Accept", "application/json, text/event-stream") // whoever can read one of them can read our answer
	held := &heldAnswer{header: http.Header{}, status: http.StatusOK}
	ownHandler().ServeHTTP(held, in)
	if kind, _, _ := mime.ParseMediaType(held.header.Get("Content-Type")); held.status >= 400 && kind != "application/json" {
		return fail(held.status, api.CodeBadRequest, sentence(strings.TrimSuffix(strings.TrimSpace(held.body.String()), ".")))
	}
	for name, values := range held.header {
		if name != "Cache-Control" { // ours is stricter
			w.Header()[name] = values
		}
	}
	w.WriteHeader(held.status)
	_, err := w.Write(held.body.Bytes())
	return err
}

func describeOwnMCP(o *huma.Operation) {
	message := &huma.Schema{Type: huma.TypeObject, Description: "A JSON-RPC message.", AdditionalProperties: true}
	o.RequestBody = &huma.RequestBody{Required: true, Content: jsonContent(message)}
	o.Responses["200"] = &huma.Response{Description: "The answer, as a JSON-RPC message.", Content: jsonContent(message)}
	o.Responses["202"] = &huma.Response{Description: "Taken; there is nothing to answer."}
}

// ownHandler is made once: it holds nothing of any request.
var ownHandler = sync.OnceValue(func() http.Handler {
	s := sdk.NewServer(&sdk.Implementation{Name: "deckhand", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}, // they never change
		Instructions: "Deckhand runs conversations with agents that work in sandboxes. Create one with a task, wait for its turn to end, and read its events.",
	})
	addOwnTools(s)
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			if strings.HasPrefix(method, "subscriptions/") { // a stream, and our answers are held back until they are whole
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is nothing to subscribe to"}
			}
			return next(ctx, method, req)
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // the door looked at Host and Origin, and knows the names it may have
	})
})

// errand is a request of the door's own that a tool makes for its caller.
type errand struct {
	// operation is the id of the route.
	operation string
	id        string // of the conversation, if the path has one
	query     url.Values
	body      any
	// once makes sending it again do nothing twice; may be empty.
	once string
}

// do runs an errand through the route, so that it is checked and answered as the
// same request from outside would be. Who asks was found out at the door.
func (v *visit) do(e errand) (json.RawMessage, error) {
	d := v.door
	at := slices.IndexFunc(d.routes, func(r route) bool { return r.id == e.operation })
	r := &d.routes[at]
	raw := []byte{}
	if e.body != nil {
		raw, _ = json.Marshal(e.body) // of strings only
	}
	req, err := http.NewRequestWithContext(v.ctx, r.method, "/", bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.URL = &url.URL{Path: strings.ReplaceAll(r.path, "{conversation_id}", e.id), RawQuery: e.query.Encode()}
	req.SetPathValue("conversation_id", e.id)
	c := &call{who: v.call.who, http: req, raw: raw, bearer: true}
	held := &heldAnswer{header: http.Header{}, status: http.StatusOK}
	w := &recorder{ResponseWriter: held, id: requestID()}
	if e.once != "" {
		err = d.once(w, req, r, c, []string{e.once})
	} else {
		err = r.serve(d, w, req, c)
	}
	if c.session != "" {
		v.call.session = c.session
	}
	if err != nil {
		f := translate(err)
		if f.status >= 500 {
			d.Logger.Error("request failed", "request", w.id, "route", r.path, "error", err)
		}
		return nil, errors.New(f.msg)
	}
	return held.body.Bytes(), nil
}
