// Package connect connects to a container engine: over a unix socket, TCP with TLS, or SSH.
package connect

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/moby/moby/client"
)

// Engine is a client of an engine.
type Engine struct {
	*client.Client
	// Address is where the engine is, for people.
	Address string
	// Local is true if it is reached by a socket of this machine, so that it may see the same files.
	Local bool
	// Plain is true if requests are sent over a network unencrypted.
	Plain bool

	over *program
}

// Close closes all connections.
func (e Engine) Close() error {
	err := e.Client.Close()
	if e.over != nil {
		e.over.close()
	}
	return err
}

// Open returns a client for the engine at an address: unix:///PATH, tcp://HOST:PORT, or ssh://USER@HOST. The default is DOCKER_HOST, or the
// default socket. For TCP, the certificates are in the folder DOCKER_CERT_PATH, or in DIR of tcp://HOST:PORT?certs=DIR, and that of the engine is
// always verified. Open does not connect.
func Open(host string) (Engine, error) {
	host = cmp.Or(host, os.Getenv(client.EnvOverrideHost), client.DefaultDockerHost)
	scheme, _, _ := strings.Cut(host, "://")
	certificates := os.Getenv(client.EnvOverrideCertPath)
	if address, query, found := strings.Cut(host, "?"); found && scheme == "tcp" {
		folder, ok := strings.CutPrefix(query, "certs=")
		if !ok || !filepath.IsAbs(folder) {
			return Engine{}, errors.New("after the address of an engine over TCP, only ?certs=DIR with an absolute path is allowed")
		}
		host, certificates = address, folder
	}
	if err := checkForm(scheme, host); err != nil {
		return Engine{}, err
	}
	e := Engine{Address: host, Local: scheme == "unix"}
	options := []client.Opt{client.WithAPIVersionFromEnv()}
	switch {
	case scheme == "ssh":
		var err error
		if e.over, err = overSSH(host); err != nil {
			return e, err
		}
		options = append(options, client.WithHost("http://engine.invalid"), client.WithDialContext(e.over.dial))
	case scheme == "tcp" && certificates != "":
		options = append(options, client.WithHost(host), client.WithTLSClientConfig(
			filepath.Join(certificates, "ca.pem"), filepath.Join(certificates, "cert.pem"), filepath.Join(certificates, "key.pem")))
	case os.Getenv(client.EnvTLSVerify) != "" && scheme == "tcp":
		return e, fmt.Errorf("%s is set, but not %s, the folder with ca.pem, cert.pem and key.pem", client.EnvTLSVerify, client.EnvOverrideCertPath)
	default:
		e.Plain = scheme == "tcp" || scheme == "http"
		options = append(options, client.WithHost(host))
	}
	var err error
	e.Client, err = client.New(options...)
	return e, err
}

// checkForm returns an error for an address that cannot be used. It does not contain the address, which may have a password.
func checkForm(scheme, host string) error {
	u, err := url.Parse(host)
	right := false
	switch scheme {
	case "unix":
		right = strings.HasPrefix(host, "unix:///") && host != "unix:///"
	case "tcp", "http", "https":
		right = err == nil && u.Hostname() != "" && u.User == nil && (u.Port() != "" || scheme != "tcp")
	case "ssh": // see overSSH
		right = err == nil
	case "npipe":
		right = true
	}
	if !right {
		return errors.New("the address must be unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST")
	}
	return nil
}

var password = regexp.MustCompile(`//([^:/@]*):.*@`)

// Masked returns an address without its password. It may be invalid.
func Masked(host string) string { return password.ReplaceAllString(host, "//$1:xxxxx@") }

// Default is the address of the default engine and its source, for errors.
func Default() string {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		return client.EnvOverrideHost + " " + Masked(host)
	}
	return "the default container engine"
}

// overSSH checks an address of the form ssh://USER@HOST:PORT/SOCKET and returns how to connect to it.
func overSSH(host string) (*program, error) {
	u, err := url.Parse(host)
	if err != nil {
		return nil, err
	}
	if _, secret := u.User.Password(); u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || secret {
		return nil, errors.New("the address of an engine over SSH must be ssh://USER@HOST, without a password")
	}
	for _, part := range []string{u.Hostname(), u.User.Username()} {
		if strings.HasPrefix(part, "-") {
			return nil, fmt.Errorf("%q is not a host or user name", part)
		}
	}
	// ssh must not ask questions, and must notice a dead connection.
	args := []string{"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=30"}
	if u.User.Username() != "" {
		args = append(args, "-l", u.User.Username())
	}
	if u.Port() != "" {
		args = append(args, "-p", u.Port())
	}
	args = append(args, "--", u.Hostname(), "docker")
	if socket := strings.TrimRight(u.Path, "/"); socket != "" {
		if strings.Trim(socket, pathLetters) != "" {
			return nil, fmt.Errorf("the path %q of a socket contains characters that are not allowed", socket)
		}
		args = append(args, "--host", "unix://"+socket)
	}
	return &program{name: "ssh", args: append(args, "system", "dial-stdio")}, nil
}

// pathLetters need no quotes in a shell.
const pathLetters = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
