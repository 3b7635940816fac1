package mcp

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
)

const aboutOwnMCP = "An MCP server over streamable HTTP, for external agents: they can create, read and stop conversations, send messages, and open pull requests with the user's stored tokens. " +
	"The server is stateless: each request needs a key and acts as its user."

// visit is a request at our own tool server. The tools find it in their context.
type visit struct {
	api  *Handlers
	call *rest.Call
	// ctx ends with the request, the key and the server. The one that tools get does not.
	ctx context.Context
}

type visitKey struct{}

// serveOwnMCP lets the library answer. There are no sessions: nothing of one
// user's can be reached with an id that another one found out.
func (d *Handlers) serveOwnMCP(w http.ResponseWriter, req *http.Request, c *rest.Call) error {
	ctx, release := d.Life.Hold(req.Context(), c.Who)
	defer release()
	in := req.Clone(context.WithValue(ctx, visitKey{}, &visit{api: d, call: c, ctx: ctx}))
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(c.Raw)), int64(len(c.Raw))
	in.Header.Set("Content-Type", "application/json")
	in.Header.Set("Accept", "application/json, text/event-stream") // clients that accept either can read the answer
	held := rest.NewHeldAnswer(http.Header{})
	held.Status = http.StatusOK
	ownHandler().ServeHTTP(held, in)
	if kind, _, _ := mime.ParseMediaType(held.Header().Get("Content-Type")); held.Status >= 400 && kind != "application/json" {
		return rest.Fail(held.Status, api.CodeBadRequest, usecase.Sentence(strings.TrimSuffix(strings.TrimSpace(held.Body.String()), ".")))
	}
	for name, values := range held.Header() {
		if name != "Cache-Control" { // ours is stricter
			w.Header()[name] = values
		}
	}
	w.WriteHeader(held.Status)
	_, err := w.Write(held.Body.Bytes())
	return err
}

func describeOwnMCP(o *huma.Operation) {
	message := &huma.Schema{Type: huma.TypeObject, Description: "A JSON-RPC message.", AdditionalProperties: true}
	o.RequestBody = &huma.RequestBody{Required: true, Content: rest.JSONContent(message)}
	o.Responses["200"] = &huma.Response{Description: "JSON-RPC response", Content: rest.JSONContent(message)}
	o.Responses["202"] = &huma.Response{Description: "Accepted; there is no response message."}
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
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: rest.MaxBody,
		DisableLocalhostProtection: true, // the API handler checked Host and Origin, and knows the names it may have
	})
})
