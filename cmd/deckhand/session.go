package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"

	"deckhand/internal/cli"
	"deckhand/internal/cli/chat"
	"deckhand/internal/cli/choices"
	"deckhand/internal/cli/folder"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/drivers"
)

// sessionCmd is deckhand without a command.
type sessionCmd struct {
	choices.Session
	Dir             string `name:"dir" default:"." placeholder:"DIR" help:"Folder to work in (default: the current folder)."`
	cli.ServerFlags `group:"remote"`
	localFlags
}

// Run has a session with an agent, on a server of this process or on another one.
func (c *sessionCmd) Run(ctx context.Context, all *commands, o *cli.Output) error {
	dir, err := folder.Workdir(c.Dir)
	if err != nil {
		return err
	}
	options := chat.Options{Session: c.Session, Settings: c.SettingsFlags, DataDir: c.DataDir, Folder: dir}
	if c.Server != "" {
		remote := cli.RemoteFlags{DataDir: c.DataDir, ServerFlags: c.ServerFlags}
		if options.Client, err = remote.Client(); err != nil {
			return err
		}
		options.Elsewhere = c.Server
		return chat.Run(ctx, o, options)
	}
	if err := c.workIn(dir); err != nil {
		return err
	}
	if c.DataDir, err = filepath.Abs(c.DataDir); err != nil {
		return err
	}
	c.askRisky = true
	e := &embeddedServer{flags: &c.localFlags, all: all, home: folder.Of(c.DataDir, dir)}
	if c.Continue || c.Opens() {
		if err := folders.Check(ctx, c.DataDir, e.home, c.ID); err != nil {
			return err
		}
	}
	if err := e.home.Create(); err != nil {
		return err
	}
	return c.choice(e.home.Dir).Run(o, c.Continue || c.Opens(), func() error {
		link, err := folder.Connect(ctx, e.home, e.start)
		if err != nil {
			return err
		}
		properties, _ := drivers.Find(c.Sandbox)
		options.Client, options.OnOpen = link.Client, e.use
		options.Unconfined, options.Shared = !properties.Confined, e.running == nil
		return errors.Join(chat.Run(ctx, o, options), e.close())
	})
}

// embeddedServer is a server of this process for the sessions of one folder.
type embeddedServer struct {
	flags *localFlags
	all   *commands
	home  folder.Home
	used  []string // the conversations of this terminal

	running *runServer
	stop    context.CancelCauseFunc
	ended   chan error
	log     *os.File
}

// use remembers a conversation whose sandbox is stopped at the end.
func (e *embeddedServer) use(id string) { e.used = append(e.used, id) }

// start starts the server and returns its address.
func (e *embeddedServer) start(ctx context.Context) (base string, err error) {
	if e.log, err = os.OpenFile(filepath.Join(e.home.Dir, "deckhand.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return "", err
	}
	a, err := e.flags.start(ctx, e.all, e.log, e.flags.kept(home{}))
	if err != nil {
		return "", errors.Join(err, e.log.Close())
	}
	debug.SetGCPercent(200) // a session lives longer than a run
	_, _, err = a.data.gate.Bootstrap(ctx, a.dir)
	var listener net.Listener
	if err == nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", errors.Join(err, a.end(ctx))
	}
	a.local = a.c.Local(listener.Addr(), false)
	a.public = a.local
	a.onStopped = func(ctx context.Context) (err error) {
		for _, id := range e.used {
			err = errors.Join(err, a.driver.Stop(ctx, sandbox.Handle{Driver: a.driver.Name, ID: id}))
		}
		return err
	}
	ctx, e.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	e.running, e.ended = a, make(chan error, 1)
	go func() { e.ended <- a.run(ctx, e.stop, a.c, listener) }()
	return a.local, nil
}

// close stops the server, if this process runs it.
func (e *embeddedServer) close() error {
	if e.running == nil {
		return nil
	}
	e.stop(nil)
	err := errors.Join(<-e.ended, e.running.data.db.Close())
	e.running.unlock()
	return errors.Join(err, e.log.Close())
}
