// Package cloud authorizes requests to cloud providers with their own kinds of credentials: Amazon Bedrock, with requests
// signed with AWS credentials, and Google Vertex AI, with access tokens of a service account.
package cloud

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// AWS are credentials of Amazon Web Services. Region is "" if they do not name one.
type AWS struct{ AccessKeyID, SecretAccessKey, SessionToken, Region string }

// ParseAWS parses AWS credentials: lines such as AWS_ACCESS_KEY_ID=… (from the AWS console or a credentials file), or a JSON
// object with the same names. It returns nil for any other text, such as a Bedrock API key.
func ParseAWS(text string) (*AWS, error) {
	values := map[string]string{}
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		var fields map[string]any
		if json.Unmarshal([]byte(text), &fields) != nil {
			return nil, errors.New("the AWS credentials are not valid JSON")
		}
		for name, v := range fields {
			s, _ := v.(string)
			values[awsName(name)] = s
		}
	} else {
		lines := bufio.NewScanner(strings.NewReader(text))
		lines.Buffer(nil, len(text)+1)
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), "=")
			for _, word := range []string{"export ", "set ", "$Env:", "$env:"} {
				name = strings.TrimPrefix(strings.TrimSpace(name), word)
			}
			values[awsName(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	a := &AWS{AccessKeyID: values["accesskeyid"], SecretAccessKey: values["secretaccesskey"], SessionToken: values["sessiontoken"], Region: values["region"]}
	if a.Region == "" {
		a.Region = values["defaultregion"]
	}
	switch {
	case a.AccessKeyID == "" && a.SecretAccessKey == "":
		return nil, nil
	case a.AccessKeyID == "" || a.SecretAccessKey == "":
		return nil, errors.New("AWS credentials need both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	}
	// They become part of headers and addresses.
	if name := unprintable("AWS_ACCESS_KEY_ID", a.AccessKeyID, "AWS_SECRET_ACCESS_KEY", a.SecretAccessKey, "AWS_SESSION_TOKEN", a.SessionToken, "AWS_REGION", a.Region); name != "" {
		return nil, errors.New("the value of " + name + " contains line breaks or other control characters")
	}
	return a, nil
}

// unprintable returns the first name whose value contains control characters, "" if none does.
func unprintable(namesAndValues ...string) string {
	for pair := range slices.Chunk(namesAndValues, 2) {
		if strings.ContainsFunc(pair[1], unicode.IsControl) {
			return pair[0]
		}
	}
	return ""
}

// Line returns the credentials on one line, in a format that ParseAWS accepts.
func (a AWS) Line() string {
	fields := map[string]string{"access_key_id": a.AccessKeyID, "secret_access_key": a.SecretAccessKey}
	if a.SessionToken != "" {
		fields["session_token"] = a.SessionToken
	}
	if a.Region != "" {
		fields["region"] = a.Region
	}
	b, _ := json.Marshal(fields) // of texts
	return string(b)
}

// awsName normalizes the name of a value, which has several spellings.
func awsName(name string) string {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "")
	return strings.TrimPrefix(name, "aws")
}

var regionInHost = regexp.MustCompile(`(?:^|\.)bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.`)

// Region returns the region in a base URL of Bedrock, "" if its host contains none.
func Region(u *url.URL) string {
	if m := regionInHost.FindStringSubmatch(strings.ToLower(u.Hostname())); m != nil {
		return m[1]
	}
	return ""
}

// Escape escapes a text as one path segment, as AWS signatures require.
func Escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// service is the service name in signatures of Bedrock requests.
const service = "bedrock"

// sign signs a request with AWS Signature Version 4. body is the request body.
func (a AWS) sign(r *http.Request, region, service string, body []byte, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", stamp)
	if a.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", a.SessionToken)
	}
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	all := r.Header.Clone()
	all.Set("Host", host)
	var names []string
	for _, name := range []string{"Content-Type", "Host", "X-Amz-Date", "X-Amz-Security-Token"} { // in their order
		if all.Get(name) != "" {
			names = append(names, strings.ToLower(name))
		}
	}
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + canonicalPath(r.URL) + "\n" + strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20") + "\n")
	for _, name := range names {
		canonical.WriteString(name + ":" + strings.TrimSpace(all.Get(name)) + "\n")
	}
	signed := strings.Join(names, ";")
	canonical.WriteString("\n" + signed + "\n" + payloadHash(body))
	scope := stamp[:8] + "/" + region + "/" + service + "/aws4_request"
	key := []byte("AWS4" + a.SecretAccessKey)
	for _, part := range []string{stamp[:8], region, service, "aws4_request"} {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+payloadHash([]byte(canonical.String()))))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+a.AccessKeyID+"/"+scope+", SignedHeaders="+signed+", Signature="+signature)
}

// canonicalPath is the path as it is sent, each segment escaped once more.
func canonicalPath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		return "/"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = Escape(s)
	}
	return strings.Join(segments, "/")
}

func payloadHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Bedrock returns a client that authorizes requests to Bedrock: with a signature, or with a Bedrock API key if there are no
// AWS credentials. Responses that are AWS event streams are read as server-sent events.
func Bedrock(client *http.Client, credentials *AWS, region, apiKey string) *http.Client {
	return with(client, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		if credentials != nil {
			body, err := sent(r)
			if err != nil {
				return nil, err
			}
			credentials.sign(r, region, service, body, time.Now())
		} else if apiKey != "" {
			r.Header.Set("Authorization", "Bearer "+apiKey)
		}
		response, err := next.RoundTrip(r)
		if err == nil && strings.HasPrefix(response.Header.Get("Content-Type"), "application/vnd.amazon.eventstream") {
			response.Body = readEvents(response.Body)
		}
		return response, err
	})
}

// sent returns the body of a request and leaves the request usable.
func sent(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.GetBody != nil {
		copied, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		defer copied.Close()
		return io.ReadAll(copied)
	}
	body, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, err
}

// with returns a client that sends requests through do. do gets a copy of each request and may change it.
func with(client *http.Client, do func(*http.Request, http.RoundTripper) (*http.Response, error)) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	own := *client
	next := own.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	own.Transport = through(func(r *http.Request) (*http.Response, error) { return do(r.Clone(r.Context()), next) })
	return &own
}

type through func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
