package registry

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// login writes a config file with the logins of several registries, and a credential helper.
func login(t *testing.T, config string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	helper := `#!/bin/sh
read -r key
case $key in
helped.example.org) echo '{"Username":"helped","Secret":"s1"}' ;;
token.example.org) echo '{"Username":"<token>","Secret":"s2"}' ;;
broken.example.org) echo nonsense ;;
*) echo 'credentials not found in native keychain'; exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(helper), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DOCKER_CONFIG", dir)
}

func TestAuth(t *testing.T) {
	login(t, `{
		"auths": {
			"https://index.docker.io/v1/": {"auth": "`+base64.StdEncoding.EncodeToString([]byte("hub:pass:word"))+`"},
			"private.example.org:5000": {"username": "me", "password": "secret"},
			"https://old.example.org/v1/": {"identitytoken": "tok"},
			"stored.example.org": {},
			"damaged.example.org": {"auth": "%%"}
		},
		"credsStore": "test",
		"credHelpers": {"helped.example.org": "test", "token.example.org": "test", "broken.example.org": "test", "bad.example.org": "../sh"}
	}`)
	for image, want := range map[string]string{
		"busybox":                                `{"username":"hub","password":"pass:word","serveraddress":"https://index.docker.io/v1/"}`,
		"docker.io/library/busybox:1":            `{"username":"hub","password":"pass:word","serveraddress":"https://index.docker.io/v1/"}`,
		"private.example.org:5000/team/image:1":  `{"username":"me","password":"secret","serveraddress":"private.example.org:5000"}`,
		"private.example.org/team/image":         "",
		"old.example.org/image":                  `{"identitytoken":"tok","serveraddress":"old.example.org"}`,
		"helped.example.org/image":               `{"username":"helped","password":"s1","serveraddress":"helped.example.org"}`,
		"token.example.org/image":                `{"identitytoken":"s2","serveraddress":"token.example.org"}`,
		"stored.example.org/image":               "",
		"Not A Reference":                        "",
		"broken.example.org/image":               "error: invalid JSON",
		"bad.example.org/image":                  "error: not a credential helper",
		"damaged.example.org/image":              "error: run docker login again",
		"private.example.org:5000.evil.org/x/y":  "",
		"evil.org/private.example.org:5000/team": "",
	} {
		got, err := Auth(t.Context(), image)
		if wrong, ok := strings.CutPrefix(want, "error: "); ok {
			if err == nil || !strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: got %q, %v; want an error with %q", image, got, err, wrong)
			}
			continue
		}
		raw, e := base64.URLEncoding.DecodeString(got)
		if err != nil || e != nil || string(raw) != want {
			t.Errorf("%s: got %s, %v, %v; want %s", image, raw, err, e, want)
		}
		if want != "" && !json.Valid(raw) {
			t.Errorf("%s: %s is not JSON", image, raw)
		}
	}
}

func TestNoLogin(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if got, err := Auth(t.Context(), "busybox"); got != "" || err != nil {
		t.Errorf("without a config file: %q, %v", got, err)
	}
	login(t, "{")
	if _, err := Auth(t.Context(), "busybox"); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("with a damaged config file: %v", err)
	}
}
