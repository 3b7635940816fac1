package outbound

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestParseAllow(t *testing.T) {
	got, err := ParseAllow(" LocalHost:11434, 10.0.0.5:8000,[FD12::1]:80,,llm.corp.:443, localhost.:11434 ,[::ffff:10.0.0.6]:1")
	if err != nil {
		t.Fatal(err)
	}
	want := []HostPort{{"localhost", 11434}, {"10.0.0.5", 8000}, {"fd12::1", 80}, {"llm.corp", 443}, {"10.0.0.6", 1}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, err := ParseAllow(""); got != nil || err != nil {
		t.Errorf("empty: %v, %v", got, err)
	}
	for _, bad := range []string{
		"localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:http", "localhost:-1", ":80", "*:80",
		"*.corp:80", "http://localhost:80", "localhost:80/v1", "user@localhost:80", "::1:80", "a b:80", "a..b:80",
		"ünïcode.de:80", "127.1:80", "0177.0.0.1:80", "2130706433:80", "0x7f000001:80", "0x7f.0.0.1:80", "10.0.0.0/8:80",
		"169.254.169.254:80", "[fe80::1]:80", "[fe80::1%eth0]:80", "[::1%lo]:80", "[fd00:ec2::254]:80",
		"[::ffff:169.254.169.254]:80", strings.Repeat("a", 64) + ":80", "-a:80",
	} {
		if got, err := ParseAllow("localhost:1," + bad); err == nil {
			t.Errorf("%q passes as %v", bad, got)
		} else if !strings.Contains(err.Error(), "--allow-private") {
			t.Errorf("%q: the error does not name the flag: %v", bad, err)
		}
	}
}

func TestCheck(t *testing.T) {
	closed := Policy{}
	laptop := Policy{AllowAllPrivate: true}
	named := Policy{Allow: []HostPort{{"llm.corp", 8000}, {"10.0.0.5", 8000}, {"fd12::1", 80}}}
	for _, test := range []struct {
		name   string
		policy Policy
		host   string
		port   uint16
		addr   string
		ok     bool
	}{
		{"public", closed, "example.com", 443, "93.184.216.34", true},
		{"loopback", closed, "localhost", 80, "127.0.0.1", false},
		{"private", closed, "10.0.0.5", 8000, "10.0.0.5", false},
		{"laptop loopback", laptop, "localhost", 80, "127.0.0.1", true},
		{"laptop ULA", laptop, "box", 80, "fd12::1", true},
		{"laptop metadata", laptop, "metadata", 80, "169.254.169.254", false},
		{"laptop AWS IPv6 metadata", laptop, "metadata", 80, "fd00:ec2::254", false},
		{"laptop link-local", laptop, "box", 80, "fe80::1", false},
		{"laptop NAT64 of metadata", laptop, "box", 80, "64:ff9b::a9fe:a9fe", false},
		{"allowed name", named, "llm.corp", 8000, "10.9.9.9", true},
		{"allowed name, other spelling", named, "LLM.Corp.", 8000, "10.9.9.9", true},
		{"allowed name, other port", named, "llm.corp", 8001, "10.9.9.9", false},
		{"longer name", named, "llm.corp.evil.com", 8000, "10.9.9.9", false},
		{"shorter name", named, "corp", 8000, "10.9.9.9", false},
		{"allowed name at metadata", named, "llm.corp", 8000, "169.254.169.254", false},
		{"allowed address", named, "10.0.0.5", 8000, "10.0.0.5", true},
		{"allowed address, mapped", named, "::ffff:10.0.0.5", 8000, "::ffff:10.0.0.5", true},
		{"allowed IPv6 address, long", named, "fd12:0:0::1", 80, "fd12::1", true},
		{"another name for an allowed address", named, "evil.com", 8000, "10.0.0.5", false},
		{"another address", named, "10.0.0.50", 8000, "10.0.0.50", false},
	} {
		err := test.policy.Check(HostPort{test.host, test.port}, netip.MustParseAddr(test.addr))
		if (err == nil) != test.ok {
			t.Errorf("%s: got error %v, want ok %v", test.name, err, test.ok)
		}
		var blocked *BlockedError
		if err != nil && !errors.As(err, &blocked) {
			t.Errorf("%s: the error is a %T", test.name, err)
		}
	}
}

func TestBlockedErrorSaysWhatToDo(t *testing.T) {
	for _, test := range []struct {
		asked HostPort
		addr  string
		want  string
	}{
		{HostPort{"llm.corp", 8000}, "10.0.0.5", "refused to connect to llm.corp, a private address; to allow it, start the server with --allow-private llm.corp:8000"},
		{HostPort{"::1", 80}, "::1", "refused to connect to ::1, a loopback address; to allow it, start the server with --allow-private [::1]:80"},
		{HostPort{"evil.com", 80}, "169.254.169.254", "refused to connect to evil.com: connections to link-local and cloud metadata addresses are never allowed"},
	} {
		if got := (Policy{}).Check(test.asked, netip.MustParseAddr(test.addr)).Error(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// A URL is checked ahead of time as far as its addresses are known.
func TestCheckURL(t *testing.T) {
	t.Parallel()
	allow, err := ParseAllow("10.0.0.7:8443")
	if err != nil {
		t.Fatal(err)
	}
	for text, blocked := range map[string]bool{
		"https://8.8.8.8/push": false, "http://127.0.0.1:9/": true, "https://[::1]/": true, "https://localhost/": true,
		"https://10.0.0.7:8443/": false, "https://10.0.0.7/": true,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var refused *BlockedError
		if err := (Policy{Allow: allow}).CheckURL(t.Context(), u); errors.As(err, &refused) != blocked {
			t.Errorf("%s: %v", text, err)
		}
		if err := (Policy{AllowAllPrivate: true}).CheckURL(t.Context(), u); err != nil {
			t.Errorf("%s on a laptop: %v", text, err)
		}
	}
}
