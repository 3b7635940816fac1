package outbound

import (
	"strings"
	"testing"
)

func TestCheckPeer(t *testing.T) {
	t.Parallel()
	allow, err := ParseAllow("10.0.0.5:5000,localhost:5000,registry.invalid:443")
	if err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string][3]string{ // no policy, a list, all that is private
		"127.0.0.1:80":         {"--allow-private 127.0.0.1:80", "--allow-private", ""},
		"10.0.0.5:5000":        {"a private address", "", ""},
		"10.0.0.5:5001":        {"a private address", "a private address", ""},
		"localhost:5000":       {"a loopback address", "", ""},
		"localhost:80":         {"a loopback address", "a loopback address", ""},
		"[::1]:80":             {"a loopback address", "a loopback address", ""},
		"169.254.169.254:80":   {"never allowed", "never allowed", "never allowed"},
		"8.8.8.8:443":          {"", "", ""},
		"registry.invalid:443": {"cannot be resolved", "", ""},
		"other.invalid:443":    {"cannot be resolved", "cannot be resolved", ""},
		"0x7f.1:443":           {"cannot be resolved", "cannot be resolved", ""},
		"host":                 {"port", "port", "port"},
	} {
		for i, p := range []Policy{{}, {Allow: allow}, {AllowAllPrivate: true}} {
			err := p.CheckPeer(t.Context(), address)
			if want[i] == "" && err != nil || want[i] != "" && (err == nil || !strings.Contains(err.Error(), want[i])) {
				t.Errorf("%s with policy %d: %v, want %q", address, i, err, want[i])
			}
		}
	}
}
