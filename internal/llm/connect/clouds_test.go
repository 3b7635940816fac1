package connect_test

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/llm"
	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/cloud"
	"deckhand/internal/llm/connect"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/llm/probe"
)

const (
	accessKey = "AKIAIOSFODNN7EXAMPLE"
	secretKey = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
	session   = "FwoGZXIvYXdzE-session=="
	bearer    = "ABSKQmVkcm9ja0FQSUtleQ=="
)

// bedrock is a server that checks signatures as AWS documents it, and has the events of its streams in frames.
type bedrock struct {
	t      *testing.T
	models *llmtest.Server
	seen   sync.Map // paths
}

// ServeHTTP implements http.Handler.
func (b *bedrock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	path := r.URL.EscapedPath()
	b.seen.Store(path, true)
	if why := b.refuses(r, path, body); why != "" {
		w.Header().Set("X-Amzn-Errortype", "InvalidSignatureException")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"message":%q}`, why)
		return
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		b.t.Errorf("the body is %s", body)
	}
	name := strings.TrimPrefix(r.URL.Path, "/model/")
	at := strings.LastIndex(name, "/")
	switch name, operation := name[:at], name[at+1:]; operation {
	case "invoke-with-response-stream":
		if string(fields["anthropic_version"]) != `"bedrock-2023-05-31"` || fields["model"] != nil || fields["stream"] != nil {
			b.t.Errorf("the body is %s", body)
		}
		delete(fields, "anthropic_version")
		delete(fields, "anthropic_beta")
		b.invoke(w, name, fields)
	case "converse-stream":
		b.converse(w, fields)
	default:
		b.t.Errorf("asked for %s", path)
	}
}

// refuses says what is wrong with the authorization.
func (b *bedrock) refuses(r *http.Request, path string, body []byte) string {
	given := r.Header.Get("Authorization")
	if given == "Bearer "+bearer {
		return ""
	}
	var names, signature string
	credential, rest, _ := strings.Cut(strings.TrimPrefix(given, "AWS4-HMAC-SHA256 Credential="), ", SignedHeaders=")
	names, signature, _ = strings.Cut(rest, ", Signature=")
	stamp := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", stamp)
	switch {
	case err != nil || time.Since(at).Abs() > 5*time.Minute:
		return "Signature expired"
	case credential != accessKey+"/"+stamp[:8]+"/eu-west-3/bedrock/aws4_request":
		return "Credential should be scoped to a valid region"
	case !slices.Contains(strings.Split(names, ";"), "host") || !slices.Contains(strings.Split(names, ";"), "x-amz-security-token"):
		return "'Host' and the token must be signed"
	case r.Header.Get("X-Amz-Security-Token") != session:
		return "The security token included in the request is invalid"
	}
	var headers strings.Builder
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		if name == "host" {
			value = r.Host
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, value)
	}
	hash := func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
	canonical := r.Method + "\n" + strings.ReplaceAll(path, "%", "%25") + "\n" + r.URL.RawQuery + "\n" + headers.String() + "\n" + names + "\n" + hash(body)
	key := []byte("AWS4" + secretKey)
	for _, part := range []string{stamp[:8], "eu-west-3", "bedrock", "aws4_request", "AWS4-HMAC-SHA256\n" + stamp + "\n" + strings.TrimPrefix(credential, accessKey+"/") + "\n" + hash([]byte(canonical))} {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(part))
		key = h.Sum(nil)
	}
	if hex.EncodeToString(key) != signature {
		return "The request signature we calculated does not match the signature you provided"
	}
	return ""
}

// invoke asks a model of Anthropic, and puts its events into frames.
func (b *bedrock) invoke(w http.ResponseWriter, name string, fields map[string]json.RawMessage) {
	fields["model"], fields["stream"] = json.RawMessage(`"`+name+`"`), json.RawMessage("true")
	asked, _ := json.Marshal(fields)
	r, _ := http.NewRequest(http.MethodPost, b.models.URL+"/v1/messages", bytes.NewReader(asked))
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Api-Key", "k")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		w.WriteHeader(response.StatusCode)
		fmt.Fprint(w, `{"message":"Too many tokens, please wait before trying again."}`)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			chunk, _ := json.Marshal(map[string]any{"bytes": []byte(data), "p": "abcdef"})
			w.Write(awsFrame(chunk, ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event"))
		}
	}
}

// converseBlock is a block of a message in the Converse API.
type converseBlock struct {
	Text       string
	Image      *struct{ Format string }
	ToolResult *struct{ ToolUseID, Status string }
}

// converse answers in the Converse API.
func (b *bedrock) converse(w http.ResponseWriter, fields map[string]json.RawMessage) {
	var messages []struct{ Content []converseBlock }
	if err := json.Unmarshal(fields["messages"], &messages); err != nil || len(messages) == 0 {
		b.t.Errorf("%v in %s", err, fields["messages"])
		return
	}
	w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	send := func(kind, payload string) {
		w.Write(awsFrame([]byte(payload), ":event-type", kind, ":content-type", "application/json", ":message-type", "event"))
	}
	last := messages[len(messages)-1].Content
	send("messageStart", `{"role":"assistant"}`)
	stop := "end_turn"
	switch tools := string(fields["toolConfig"]); {
	case strings.Contains(last[0].Text, "throttle"):
		w.Write(awsFrame([]byte(`{"message":"Too many requests"}`), ":exception-type", "throttlingException", ":message-type", "exception"))
		return
	case last[0].ToolResult != nil:
		send("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":0,"delta":{"text":"%s %s %d"}}`, last[0].ToolResult.ToolUseID, last[0].ToolResult.Status, len(last)))
	case strings.Contains(tools, `"inputSchema":{"json":{`):
		for i, word := range []string{"apple", "pear"} {
			send("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":"tooluse_%d","name":"note"}}}`, i, i))
			for _, piece := range []string{`{\"wo`, `rd\":\"` + word + `\"}`} {
				send("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":{"toolUse":{"input":"%s"}}}`, i, piece))
			}
			send("contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, i))
		}
		stop = "tool_use"
	default:
		answer := "one two three four"
		if slices.ContainsFunc(last, func(c converseBlock) bool { return c.Image != nil && c.Image.Format == "png" }) {
			answer = "Red"
		}
		send("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"Hm."}}}`)
		for _, word := range strings.SplitAfter(answer, " ") {
			send("contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":1,"delta":{"text":%q}}`, word))
		}
	}
	send("messageStop", `{"stopReason":"`+stop+`"}`)
	send("metadata", `{"usage":{"inputTokens":20,"outputTokens":7,"totalTokens":27,"cacheReadInputTokens":5},"metrics":{"latencyMs":3}}`)
}

// awsFrame writes a frame of AWS's event streams.
func awsFrame(payload []byte, headers ...string) []byte {
	var h []byte
	for i := 0; i < len(headers); i += 2 {
		h = append(append(h, byte(len(headers[i]))), headers[i]...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(headers[i+1]))), headers[i+1]...)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(16+len(h)+len(payload)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(h)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, h...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

// opened opens a model with a client of its own.
func opened(t *testing.T, tokens *cloud.Tokens, c llm.Config) llm.Model {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	c.Client = &http.Client{Transport: tr}
	m, err := connect.Connector{Catalogue: catalogue.New(nil), Silence: time.Minute, Tokens: tokens}.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// works tries a model out.
func works(t *testing.T, m llm.Model, name string) {
	t.Helper()
	report := probe.Run(t.Context(), m, catalogue.New(nil).Info(name), probe.Options{})
	for _, check := range report.Checks {
		if (check.OK == nil || !*check.OK) && check.Name != probe.Price && check.Name != probe.Context && check.Name != probe.Images {
			t.Errorf("%s: %s: %s", name, check.Name, check.Message)
		}
	}
	if !report.OK {
		t.Errorf("%s is not ok", name)
	}
}

// said asks a model one thing.
func said(t *testing.T, m llm.Model, req llm.Request) (text string, done *llm.Done, err error) {
	t.Helper()
	for p, failed := range m.Stream(t.Context(), req) {
		text += p.Text
		if p.Done != nil {
			done = p.Done
		}
		err = failed
	}
	return text, done, err
}

func hello(text string) llm.Request {
	return llm.Request{MaxOutput: 2000, Messages: []llm.Message{{Role: llm.User, Text: text}}}
}

// Models at Bedrock are asked with signed requests, or with an API key; wrong credentials are refused in words.
func TestBedrock(t *testing.T) {
	t.Parallel()
	models := llmtest.New(t, llmtest.Able(""))
	fake := &bedrock{t: t, models: models}
	server := httptest.NewServer(fake)
	defer server.Close()
	lines := "AWS_ACCESS_KEY_ID=" + accessKey + "\nAWS_SECRET_ACCESS_KEY=" + secretKey + "\nAWS_SESSION_TOKEN=" + session + "\nAWS_REGION=eu-west-3"
	stored, err := connect.CheckKey("bedrock", lines)
	if err != nil || strings.Contains(stored, "\n") {
		t.Fatal(stored, err)
	}
	for _, name := range []string{"bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock/arn:aws:bedrock:eu-west-3:123456789012:inference-profile/eu.anthropic.claude-opus-4-6-v1", "bedrock/amazon.nova-pro-v1:0"} {
		for _, key := range []string{lines, stored, bearer} {
			works(t, opened(t, nil, llm.Config{Model: name, APIKey: key, BaseURL: server.URL}), name)
		}
	}
	for _, path := range []string{"/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream", "/model/amazon.nova-pro-v1%3A0/converse-stream"} {
		if _, ok := fake.seen.Load(path); !ok {
			t.Errorf("%s was not asked for", path)
		}
	}
	for _, complaint := range models.Complaints() {
		t.Error(complaint)
	}
	for _, field := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"} {
		values := map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_SESSION_TOKEN": session, "AWS_REGION": "eu-west-3"}
		values[field] += "\r\nX-Injected: 1"
		bad, _ := json.Marshal(values)
		if _, err := connect.CheckKey("bedrock", string(bad)); err == nil || !strings.Contains(err.Error(), "value of "+field) || strings.Contains(err.Error(), secretKey) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, provider := range []string{"bedrock", "vertexai", "openai"} {
		if _, err := connect.CheckKey(provider, "key\r\nX-Injected: 1"); err == nil || !strings.Contains(err.Error(), "line breaks") {
			t.Errorf("a key of %s: %v", provider, err)
		}
	}
	for _, name := range []string{"bedrock/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock/amazon.nova-pro-v1:0"} {
		wrong := strings.Replace(lines, secretKey, "wrong-secret-canary", 1)
		_, _, err := said(t, opened(t, nil, llm.Config{Model: name, APIKey: wrong, BaseURL: server.URL}), hello("hi"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.ClassAuth || !strings.Contains(e.Message, "signature") || strings.Contains(e.Message, "canary") {
			t.Errorf("%s with a wrong secret: %v", name, err)
		}
	}
	_, err = connect.Open(llm.Config{Model: "bedrock/amazon.nova-pro-v1:0", APIKey: strings.Replace(lines, "AWS_REGION", "X", 1), BaseURL: server.URL}, catalogue.New(nil))
	if err == nil || !strings.Contains(err.Error(), "region") || strings.Contains(err.Error(), secretKey) {
		t.Errorf("without a region: %v", err)
	}
}

// The Converse API: results of tools, counts, and an error in the middle of a stream.
func TestConverse(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&bedrock{t: t})
	defer server.Close()
	m := opened(t, nil, llm.Config{Model: "bedrock/mistral.mistral-large", APIKey: bearer, BaseURL: server.URL})
	req := hello("go")
	req.Written = &llm.Written{}
	text, done, err := said(t, m, req)
	if err != nil || text != "one two three four" || done.Usage != (llm.Usage{Input: 25, Output: 7, CacheRead: 5, Window: done.Usage.Window}) {
		t.Errorf("%q %+v %v", text, done, err)
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: "I look.", Calls: []llm.Call{{ID: "a", Name: "note", Args: []byte(`{"word":"x"}`)}, {ID: "b", Name: "note", Args: []byte(`"broken"`)}}},
		llm.Message{Role: llm.ToolResult, Call: "a", Text: "no", Failed: true}, llm.Message{Role: llm.ToolResult, Call: "b"})
	if text, _, err := said(t, m, req); err != nil || text != "a error 2" {
		t.Errorf("%q %v", text, err)
	}
	_, _, err = said(t, m, hello("throttle"))
	var e *llm.Error
	if !errors.As(err, &e) || e.Class != llm.ClassRate || !e.Began || e.Unsent || e.Message != "Too many requests" {
		t.Errorf("%#v", err)
	}
}

// vertex is a server that issues tokens for claims that it verifies, as Google does, and accepts only those.
type vertex struct {
	t      *testing.T
	key    *rsa.PrivateKey
	url    string
	models *llmtest.Server
	issued atomic.Int64
	lasts  atomic.Int64 // seconds
	seen   sync.Map
}

// ServeHTTP implements http.Handler.
func (v *vertex) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		if why := v.refuses(r); why != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, why)
			return
		}
		fmt.Fprintf(w, `{"access_token":"ya29.token-%d","expires_in":%d,"token_type":"Bearer"}`, v.issued.Add(1), v.lasts.Load())
		return
	}
	if r.Header.Get("Authorization") != fmt.Sprintf("Bearer ya29.token-%d", v.issued.Load()) || r.Header.Get("X-Goog-Api-Key")+r.Header.Get("X-Api-Key") != "" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"code":401,"message":"Request had invalid authentication credentials.","status":"UNAUTHENTICATED"}}`)
		return
	}
	v.seen.Store(r.URL.Path, true)
	body, _ := io.ReadAll(r.Body)
	to := v.models.URL + "/v1beta/models/" + r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] + "?alt=sse"
	switch {
	case strings.HasSuffix(r.URL.Path, ":streamRawPredict"):
		var fields map[string]json.RawMessage
		if json.Unmarshal(body, &fields) != nil || string(fields["anthropic_version"]) != `"vertex-2023-10-16"` || fields["model"] != nil {
			v.t.Errorf("the body is %s", body)
		}
		delete(fields, "anthropic_version")
		fields["model"] = json.RawMessage(`"claude"`)
		body, _ = json.Marshal(fields)
		to = v.models.URL + "/v1/messages"
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		to = v.models.URL + "/v1/chat/completions"
	case strings.Contains(string(body), `"functionCall":{"args":{"word":"apple"},"id"`):
		v.t.Errorf("calls have ids: %s", body)
	}
	q, _ := http.NewRequest(http.MethodPost, to, bytes.NewReader(body))
	q.Header = r.Header.Clone()
	q.Header.Set("Anthropic-Version", "2023-06-01")
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		v.t.Error(err)
		return
	}
	defer response.Body.Close()
	w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

// refuses says what is wrong with a claim.
func (v *vertex) refuses(r *http.Request) string {
	parts := strings.Split(r.FormValue("assertion"), ".")
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(parts) != 3 {
		return "no claim"
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(&v.key.PublicKey, crypto.SHA256, sum[:], signature) != nil {
		return "Invalid JWT Signature."
	}
	var head struct{ Alg, Typ, Kid string }
	var claim struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	for i, into := range []any{&head, &claim} {
		text, _ := base64.RawURLEncoding.DecodeString(parts[i])
		if json.Unmarshal(text, into) != nil {
			return "not JSON"
		}
	}
	now := time.Now().Unix()
	if head.Alg != "RS256" || head.Kid != "kid1" || claim.Iss != "agent@proj.iam.gserviceaccount.com" || claim.Aud != v.url+"/token" || claim.Scope != "https://www.googleapis.com/auth/cloud-platform" ||
		claim.Iat > now+5 || claim.Exp < now || claim.Exp-claim.Iat > 3600 {
		return fmt.Sprintf("%+v %+v", head, claim)
	}
	return ""
}

// accountFile is the key file of a service account.
func accountFile(key *rsa.PrivateKey, tokens string) string {
	der, _ := x509.MarshalPKCS8PrivateKey(key)
	b, _ := json.MarshalIndent(map[string]string{"type": "service_account", "project_id": "proj", "private_key_id": "kid1", "client_email": "agent@proj.iam.gserviceaccount.com",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": tokens}, "", "  ")
	return string(b)
}

// Models at Vertex AI are asked with a token of the service account, which is kept and renewed before it expires.
func TestVertex(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	fake := &vertex{t: t, key: key, models: llmtest.New(t, llmtest.Able(""))}
	fake.lasts.Store(3599)
	server := httptest.NewServer(fake)
	defer server.Close()
	fake.url = server.URL
	file := accountFile(key, server.URL+"/token")
	if _, err := connect.CheckKey("vertexai", file); err != nil {
		t.Fatal(err)
	}
	tokens := &cloud.Tokens{}
	base := server.URL + "/v1/projects/other/locations/europe-west4"
	for _, name := range []string{"vertexai/gemini-2.5-pro", "vertex_ai/claude-sonnet-4-5-20250929", "vertexai/meta/llama-4-maverick"} {
		works(t, opened(t, tokens, llm.Config{Model: name, APIKey: file, BaseURL: base}), name)
	}
	if n := fake.issued.Load(); n != 1 {
		t.Errorf("%d tokens were issued", n)
	}
	for _, path := range []string{"/v1beta1/projects/other/locations/europe-west4/publishers/google/models/gemini-2.5-pro:streamGenerateContent",
		"/v1/projects/other/locations/europe-west4/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", "/v1/projects/other/locations/europe-west4/endpoints/openapi/chat/completions"} {
		if _, ok := fake.seen.Load(path); !ok {
			t.Errorf("%s was not asked for", path)
		}
	}
	for _, complaint := range fake.models.Complaints() {
		t.Error(complaint)
	}
	m := opened(t, tokens, llm.Config{Model: "vertexai/gemini-2.5-pro", APIKey: file, BaseURL: base})
	fake.issued.Add(1) // the token is revoked
	if _, _, err := said(t, m, hello("hi")); err == nil {
		t.Error("a revoked token was accepted")
	}
	fake.lasts.Store(60) // too short to be kept
	for range 2 {
		if _, _, err := said(t, m, hello("hi")); err != nil {
			t.Error(err)
		}
	}
	if n := fake.issued.Load(); n != 4 {
		t.Errorf("%d tokens were issued", n)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vertexai/gemini-2.5-pro", "vertexai/claude-sonnet-4-5-20250929"} {
		_, _, err = said(t, opened(t, tokens, llm.Config{Model: name, APIKey: accountFile(other, server.URL+"/token"), BaseURL: base}), hello("hi"))
		var e *llm.Error
		if !errors.As(err, &e) || e.Class != llm.ClassAuth || !e.Unsent || !strings.Contains(e.Message, "Invalid JWT Signature") {
			t.Errorf("%s with another key: %#v", name, err)
		}
	}
	for _, field := range []string{"project_id", "client_email", "private_key_id", "token_uri"} {
		var fields map[string]any
		if err := json.Unmarshal([]byte(file), &fields); err != nil {
			t.Fatal(err)
		}
		fields[field] = "a\r\nX-Injected: 1"
		bad, _ := json.Marshal(fields)
		if _, err := connect.CheckKey("vertexai", string(bad)); err == nil || !strings.Contains(err.Error(), "The "+field+" in") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for bad, want := range map[string]string{`{"type":"authorized_user"}`: "service account", `{"a`: "JSON", strings.Replace(file, "BEGIN PRIVATE", "BEGIN", 1): "PEM"} {
		if _, err := connect.CheckKey("vertexai", bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
