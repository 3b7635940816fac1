package cloud

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// The expected signatures were made by AWS's own library for Python.
func TestSignature(t *testing.T) {
	t.Parallel()
	const at = "https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
	for token, want := range map[string]string{
		"":                        "ad07c972d898dc04043c060990b29027a295bf07f7ac2f1c1e9a497db0031699",
		"session/token+example==": "097c5ffb40b61872443d04d5b6674c9f1c9855c929490336be1120fbb9d2001a",
	} {
		r, err := http.NewRequest(http.MethodPost, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		a := AWS{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", SessionToken: token}
		a.sign(r, Region(r.URL), service, []byte(`{"a":"ä"}`), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+want) || strings.Contains(got, a.SecretAccessKey) {
			t.Errorf("with the token %q: %s", token, got)
		}
	}
}

// The example in AWS's documentation of the signature, which has a query.
func TestSignatureOfTheDocumentation(t *testing.T) {
	t.Parallel()
	r, _ := http.NewRequest(http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", nil)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	a := AWS{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	a.sign(r, "us-east-1", "iam", nil, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7") {
		t.Error(got)
	}
}

func TestParseAWS(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]AWS{
		"export AWS_ACCESS_KEY_ID=\"AKID\"\nexport AWS_SECRET_ACCESS_KEY=\"s/e+c=\"\nexport AWS_SESSION_TOKEN=\"t\"":        {AccessKeyID: "AKID", SecretAccessKey: "s/e+c=", SessionToken: "t"},
		"[default]\r\naws_access_key_id = AKID\r\naws_secret_access_key = sec\r\nregion = eu-west-1\r\n":                    {AccessKeyID: "AKID", SecretAccessKey: "sec", Region: "eu-west-1"},
		`{"AccessKeyId":"AKID","SecretAccessKey":"sec","SessionToken":"t","Expiration":"2026-01-01"}`:                       {AccessKeyID: "AKID", SecretAccessKey: "sec", SessionToken: "t"},
		"$Env:AWS_ACCESS_KEY_ID='AKID'\nSET AWS_X=1\n$Env:AWS_SECRET_ACCESS_KEY='sec'\n$Env:AWS_DEFAULT_REGION='us-west-2'": {AccessKeyID: "AKID", SecretAccessKey: "sec", Region: "us-west-2"},
	} {
		got, err := ParseAWS(text)
		if err != nil || got == nil || *got != want {
			t.Errorf("%q is %v, %v", text, got, err)
			continue
		}
		if again, err := ParseAWS(got.Line()); err != nil || again == nil || *again != want || strings.Contains(got.Line(), "\n") {
			t.Errorf("%q is stored as %q", text, got.Line())
		}
	}
	for _, key := range []string{"ABSKQmVkcm9jaw==", "", "bedrock-api-key-x"} {
		if got, err := ParseAWS(key); got != nil || err != nil {
			t.Errorf("%q is %v, %v", key, got, err)
		}
	}
	for _, bad := range []string{"AWS_ACCESS_KEY_ID=AKID", `{"aws_secret_access_key":"x"}`, `{"a`} {
		if _, err := ParseAWS(bad); err == nil || strings.Contains(err.Error(), "AKID") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// The frames were read by AWS's own library for Python.
const frames = "000000940000004ba0aac6a10b3a6576656e742d747970650700056368756e6b0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970" +
	"650700056576656e747b226279746573223a202265794a306558426c496a6f67496d316c63334e685a3256666333527663434a39222c202270223a2022616263227de8122cf9" +
	"00000090000000618e91a9b70f3a657863657074696f6e2d747970650700137468726f74746c696e67457863657074696f6e0d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e" +
	"0d3a6d6573736167652d74797065070009657863657074696f6e7b226d657373616765223a22546f6f206d616e79207265717565737473227de67f8005"

func TestEventStream(t *testing.T) {
	t.Parallel()
	raw, err := hex.DecodeString(frames)
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte) (string, error) {
		out, err := io.ReadAll(readEvents(io.NopCloser(strings.NewReader(string(b)))))
		return string(out), err
	}
	const want = "event: message_stop\ndata: {\"type\": \"message_stop\"}\n\nevent: error\ndata: {\"error\":{\"message\":\"Too many requests\",\"type\":\"rate_limit_error\"},\"type\":\"error\"}\n\n"
	if got, err := read(raw); err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for n := range raw { // cut off anywhere, and with each byte changed
		if got, err := read(raw[:n]); err == nil && n > 0 && n != 0x94 {
			t.Errorf("%d bytes are %q without an error", n, got)
		}
		broken := append([]byte{}, raw...)
		broken[n] ^= 1
		if got, err := read(broken); err == nil {
			t.Errorf("with byte %d changed: %q", n, got)
		}
	}
}

func FuzzEventStream(f *testing.F) {
	raw, _ := hex.DecodeString(frames)
	f.Add(raw)
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = io.ReadAll(readEvents(io.NopCloser(strings.NewReader(string(b)))))
	})
}

func TestFindPlace(t *testing.T) {
	t.Parallel()
	account := &ServiceAccount{Project: "own"}
	for base, want := range map[string]string{
		"https://aiplatform.googleapis.com":                                                      "https://aiplatform.googleapis.com/v1/projects/own/locations/global",
		"https://europe-west4-aiplatform.googleapis.com/":                                        "https://europe-west4-aiplatform.googleapis.com/v1/projects/own/locations/europe-west4",
		"https://aiplatform.eu.rep.googleapis.com":                                               "https://aiplatform.eu.rep.googleapis.com/v1/projects/own/locations/eu",
		"https://us-east5-aiplatform.googleapis.com/v1/projects/other/locations/us-east5":        "https://us-east5-aiplatform.googleapis.com/v1/projects/other/locations/us-east5",
		"https://proxy.example.org/google/v1beta1/projects/other/locations/us-east5/publishers/": "https://proxy.example.org/google/v1/projects/other/locations/us-east5",
	} {
		u, err := url.Parse(base)
		if err != nil {
			t.Fatal(err)
		}
		if got := FindPlace(u, account).At("v1"); got != want {
			t.Errorf("%s is %s", base, got)
		}
	}
}
