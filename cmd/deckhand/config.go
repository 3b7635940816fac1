package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/config/reload"
)

// configCmd is deckhand config.
type configCmd struct {
	Check  configCheck    `cmd:"" help:"Check the config file and the flags of the server without starting it."`
	Show   configShow     `cmd:"" help:"Show the server's settings and the source of each."`
	Reload reload.Command `cmd:"" help:"Reload the config file and the TLS certificate of the running server."`
}

type configCheck struct{ serveCmd }

// Run checks the configuration and returns the first error.
func (c *configCheck) Run(o *cli.Output, r *config.Resolver) error {
	if err := c.check(); err != nil {
		return err
	}
	for _, name := range r.Unused {
		fmt.Fprintf(o.Stdout, "warning: unknown environment variable %s; check its spelling\n", name)
	}
	_, err := fmt.Fprintln(o.Stdout, "The configuration is valid.\nConfig file:", cmp.Or(r.Path, "none"))
	return err
}

type configShow struct {
	serveCmd
	JSON bool `name:"json" help:"Print JSON."`
	All  bool `name:"all" help:"Include settings with default values."`
}

// Run prints the settings of a server started with the same flags.
func (c *configShow) Run(k *kong.Context, r *config.Resolver, o *cli.Output) error {
	return config.WriteSettings(o.Stdout, config.Effective(k, r), c.JSON, c.All)
}

// values reads the configuration of a server that was started with args.
func values(args []string) (v reload.Values, err error) {
	var c commands
	file := &config.Resolver{Args: args}
	parser, err := newParser(&c, file, io.Discard, io.Discard, kong.Exit(func(int) {}))
	if err != nil {
		return v, err
	}
	k, err := parser.Parse(args)
	if err != nil {
		return v, err
	}
	if err := errors.Join(config.CheckNegative(k), c.Serve.check()); err != nil {
		return v, err
	}
	return reload.Values{Settings: config.Effective(k, file), LogLevel: c.Serve.LogLevel, TLS: c.Serve.TLSFlags, Models: file.Models(), Limits: c.Serve.Limits(c.Serve.perUser())}, nil
}
