// Package dockerproxy holds the command deckhand docker-proxy.
package dockerproxy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"

	"deckhand/internal/cli"
	"deckhand/internal/sandbox/docker/socketproxy"
)

// Command is deckhand docker-proxy.
type Command struct {
	Listen     string `name:"listen" env:"DECKHAND_PROXY_LISTEN" default:"/run/deckhand/docker.sock" placeholder:"FILE" help:"Unix socket to create (default: ${default}). Only its owner can use it."`
	DockerHost string `name:"docker-host" env:"DECKHAND_DOCKER_HOST" default:"unix:///var/run/docker.sock" placeholder:"URL" help:"Unix socket of the container engine (default: ${default})."`
}

// Help implements kong.HelpProvider.
func (Command) Help() string {
	return "Access to the socket of a container engine is equivalent to root access to its machine. This proxy only passes requests that docker sandboxes need: it refuses containers with network access, capabilities, devices or files of the machine, and all access to containers that Deckhand did not create. Start the server with --docker-host unix:///run/deckhand/docker.sock."
}

// Run serves until it is interrupted.
func (c *Command) Run(ctx context.Context, o *cli.Output) error {
	engine, ok := strings.CutPrefix(c.DockerHost, "unix://")
	if !ok {
		return cli.Usagef("--docker-host must be a unix socket, such as unix:///var/run/docker.sock")
	}
	log := slog.New(slog.NewTextHandler(o.Stderr, nil))
	p, err := socketproxy.New(engine, log)
	if err != nil {
		return err
	}
	if err := remove(c.Listen); err != nil {
		return err
	}
	l, err := net.Listen("unix", c.Listen)
	if err != nil {
		return err
	}
	if err := os.Chmod(c.Listen, 0o600); err != nil {
		return errors.Join(err, l.Close())
	}
	log.Info("ready", "socket", c.Listen, "engine", c.DockerHost)
	return p.Serve(ctx, l)
}

// remove removes the socket of a proxy that has ended.
func remove(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("--listen: %s exists and is not a socket", path)
	}
	if conn, err := net.Dial("unix", path); err == nil {
		_ = conn.Close()
		return fmt.Errorf("--listen: another process uses %s", path)
	}
	return os.Remove(path)
}
