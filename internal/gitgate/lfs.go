package gitgate

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
)

// MaxBatch bounds the bodies of LFS that are looked into. A client asks for a
// hundred objects at once, which is a hundredth of this.
const MaxBatch = 4 << 20

var errBatch = errors.New("this is not a request for LFS objects")

// ReadBatch reads what an LFS client asks for, and writes it again with nothing
// but the fields that the protocol has, each of them once: what is checked here
// is what the host reads.
func ReadBatch(body []byte) (clean []byte, write bool, err error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, false, errBatch
	}
	var operation string
	if err := json.Unmarshal(in["operation"], &operation); err != nil || operation != "download" && operation != "upload" {
		return nil, false, errBatch
	}
	out := map[string]json.RawMessage{}
	for _, name := range []string{"operation", "transfers", "ref", "objects", "hash_algo"} {
		if v, ok := in[name]; ok {
			out[name] = v
		}
	}
	clean, err = json.Marshal(out)
	return clean, operation == "upload", err
}

// action is where an LFS object can be fetched or left.
type action struct {
	Href      string            `json:"href"`
	Header    map[string]string `json:"header,omitempty"`
	ExpiresIn json.RawMessage   `json:"expires_in,omitempty"`
	ExpiresAt json.RawMessage   `json:"expires_at,omitempty"`
}

// WriteBatch turns a host's answer into one that a sandbox may see. Hosts give
// the client the credentials that it came with, for the objects; here they are
// ours. So they are taken out, and what is at the same site is fetched through
// the gate like everything else.
func (g Grant) WriteBatch(site Site, body []byte) ([]byte, error) {
	var answer map[string]json.RawMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, errBatch
	}
	var objects []map[string]json.RawMessage
	if raw, ok := answer["objects"]; ok {
		if err := json.Unmarshal(raw, &objects); err != nil {
			return nil, errBatch
		}
	}
	for _, o := range objects {
		raw, ok := o["actions"]
		if !ok {
			continue
		}
		var actions map[string]action
		if err := json.Unmarshal(raw, &actions); err != nil {
			return nil, errBatch
		}
		for name, a := range actions {
			actions[name] = g.redirect(site, a)
		}
		o["actions"] = encode(actions)
		delete(o, "_links") // what actions were called once
	}
	answer["objects"] = encode(objects)
	return []byte(g.Hide(string(encode(answer)))), nil
}

// encode writes JSON as plainly as it can: an escaped letter could keep a secret
// from being recognised.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was read from JSON
	return b.Bytes()
}

// redirect leads an action through the gate, if it can go there.
func (g Grant) redirect(site Site, a action) action {
	for name, value := range a.Header {
		if g.Hide(value) != value {
			delete(a.Header, name)
		}
	}
	inside, ok := Inside(site, a.Href)
	if !ok {
		return a
	}
	for name := range a.Header {
		if strings.EqualFold(name, "Authorization") {
			delete(a.Header, name)
		}
	}
	a.Href = inside
	return a
}

// Inside is the address in a sandbox of something at a site that the gate lets
// through with some method; false if it is elsewhere or nothing of git's.
func Inside(site Site, address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Fragment != "" {
		return "", false
	}
	at, ok := Origin(&url.URL{Scheme: u.Scheme, Host: u.Host})
	if !ok || at != site {
		return "", false
	}
	path := "/" + site.Scheme + "/" + site.Host + u.EscapedPath()
	for _, method := range []string{"GET", "PUT", "POST"} {
		if _, err := Parse(method, path, u.RawQuery); err == nil {
			inside := "http://" + Name + path
			if u.RawQuery != "" {
				inside += "?" + u.RawQuery
			}
			return inside, true
		}
	}
	return "", false
}
