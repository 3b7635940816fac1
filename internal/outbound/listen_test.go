package outbound

import "testing"

func TestIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:3000": true, "127.8.9.10:3000": true, "[::1]:3000": true, "localhost:3000": true,
		"LocalHost:3000": true, "localhost.:3000": true, "[::ffff:127.0.0.1]:3000": true, "127.0.0.1:0": true,

		":3000": false, "0.0.0.0:3000": false, "[::]:3000": false, "*:3000": false, "[::ffff:0.0.0.0]:3000": false,
		"192.168.1.5:3000": false, "8.8.8.8:3000": false, "[fe80::1%eth0]:3000": false, "[::ffff:10.0.0.1]:3000": false,
		"127.evil.com:3000": false, "127.0.0.1.evil.com:3000": false, "localhost.evil.com:3000": false,
		"evil-localhost:3000": false, "localhost..:3000": false, "127.0.0.1@evil.com:3000": false,
		"2130706433:3000": false, "0x7f000001:3000": false, "0177.0.0.1:3000": false, "127.1:3000": false,
		"127.0.0.01:3000": false, "127.0.0.1.:3000": false, "[::127.0.0.1]:3000": false,
		"": false, "127.0.0.1": false, "::1": false, "::1:3000": false, "localhost": false, " 127.0.0.1:3000": false,
		"http://127.0.0.1:3000": false, "127.0.0.1:3000,0.0.0.0:3000": false,
	} {
		if got := IsLoopback(addr); got != want {
			t.Errorf("IsLoopback(%q) is %v", addr, got)
		}
		if got := IsPublicBind(addr); got == want {
			t.Errorf("IsPublicBind(%q) is %v", addr, got)
		}
	}
}
