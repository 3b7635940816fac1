// Package registry finds the credentials for private registries where docker login stores them.
package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/distribution/reference"
)

// hub is the key of Docker Hub in the config file.
const hub = "https://index.docker.io/v1/"

// file is what of ~/.docker/config.json is about credentials.
type file struct {
	Auths       map[string]credentials `json:"auths"`
	CredsStore  string                 `json:"credsStore"`
	CredHelpers map[string]string      `json:"credHelpers"`
}

// credentials are those of one registry. Auth is USER:PASSWORD in base64.
type credentials struct {
	Auth          string `json:"auth,omitempty"`
	Username      string `json:"username,omitempty"`
	Password      string `json:"password,omitempty"`
	IdentityToken string `json:"identitytoken,omitempty"`
	ServerAddress string `json:"serveraddress,omitempty"`
}

// Auth returns the credentials for the registry of an image as engines expect them, or "" if there are none. They are read each time
// from config.json in DOCKER_CONFIG or ~/.docker, so that a login needs no restart.
func Auth(ctx context.Context, image string) (string, error) {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", nil // the engine says what is wrong with the name
	}
	f, err := read()
	if err != nil {
		return "", err
	}
	c, err := f.find(ctx, reference.Domain(ref))
	if err != nil || c == (credentials{}) {
		return "", err
	}
	raw, err := json.Marshal(c)
	return base64.URLEncoding.EncodeToString(raw), err
}

func read() (f file, err error) {
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return f, nil // no home, no login
		}
		dir = filepath.Join(home, ".docker")
	}
	path := filepath.Join(dir, "config.json")
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		return f, fmt.Errorf("cannot read the registry logins in %s: %w", path, err)
	}
	return f, nil
}

// find looks for the credentials of a registry: at its own helper, in the file, and at the helper for all.
func (f file) find(ctx context.Context, domain string) (credentials, error) {
	key := domain
	if domain == "docker.io" {
		key = hub
	}
	if name := cmp.Or(f.CredHelpers[domain], f.CredHelpers[key]); name != "" {
		return ask(ctx, name, key)
	}
	for at, c := range f.Auths {
		if at == key || hostOf(at) == domain {
			if c, err := c.decoded(key); err != nil || c != (credentials{}) {
				return c, err
			}
		}
	}
	if f.CredsStore != "" {
		return ask(ctx, f.CredsStore, key)
	}
	return credentials{}, nil
}

// hostOf returns the host of a key, which may be a URL.
func hostOf(key string) string {
	_, rest, found := strings.Cut(key, "://")
	if !found {
		rest = key
	}
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// decoded returns the credentials as engines expect them; none if the file only says that there was a login.
func (c credentials) decoded(key string) (credentials, error) {
	if c.Auth != "" {
		raw, err := base64.StdEncoding.DecodeString(c.Auth)
		user, password, ok := strings.Cut(string(raw), ":")
		if err != nil || !ok {
			return c, fmt.Errorf("the login for %s in config.json is damaged; run docker login again", key)
		}
		c.Auth, c.Username, c.Password = "", user, strings.TrimRight(password, "\x00")
	}
	if c.Username == "" && c.IdentityToken == "" {
		return credentials{}, nil
	}
	c.ServerAddress = key
	return c, nil
}

// askTime is the timeout of a helper.
const askTime = 30 * time.Second

// ask runs a credential helper.
func ask(ctx context.Context, name, key string) (c credentials, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	program := "docker-credential-" + name
	if strings.ContainsAny(name, "/\\") {
		return c, fmt.Errorf("%q is not a credential helper", name)
	}
	cmd := exec.CommandContext(ctx, program, "get")
	cmd.Stdin = strings.NewReader(key)
	out, err := cmd.Output()
	if err != nil {
		if bytes.Contains(out, []byte("credentials not found")) {
			return c, nil
		}
		return c, fmt.Errorf("the credential helper %s failed for %s: %w", program, key, err)
	}
	var got struct{ Username, Secret string }
	if err := json.Unmarshal(out, &got); err != nil {
		return c, fmt.Errorf("the credential helper %s returned invalid JSON", program)
	}
	if got.Username == "<token>" {
		return credentials{IdentityToken: got.Secret, ServerAddress: key}, nil
	}
	return credentials{Username: got.Username, Password: got.Secret, ServerAddress: key}, nil
}
