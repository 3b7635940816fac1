package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/config/reload"
)

// configCmd is deckhand config.
type configCmd struct {
	Check  configCheck    `cmd:"" help:"Check the config file and the flags of the server without starting it. The exit code is 0 if they are valid, otherwise 2."`
	Show   configShow     `cmd:"" help:"Show the server's settings and the source of each."`
	Reload reload.Command `cmd:"" help:"Reload the config file and the TLS certificate of the running server."`
}

type configCheck struct{ serveCmd }

// Run checks the configuration and returns the first error.
func (c *configCheck) Run(o *cli.Output, r *config.Resolver) error {
	if err := c.check(); err != nil {
		return err
	}
	for _, text := range append(r.Warnings(), c.Warnings()...) {
		fmt.Fprintln(o.Stdout, "warning:", text)
	}
	_, err := fmt.Fprintln(o.Stdout, "The configuration is valid.\nConfig file:", cmp.Or(r.Path, "none"))
	return err
}

type configShow struct {
	serveCmd
	JSON bool `name:"json" help:"Print JSON."`
	All  bool `name:"all" help:"Include settings with default values."`
}

// Run prints the settings of a server started with the same flags, even if it would not start.
func (c *configShow) Run(k *kong.Context, r *config.Resolver, o *cli.Output) error {
	if err := config.WriteSettings(o.Stdout, config.Effective(k, r, c.Engine()...), c.JSON, c.All); err != nil {
		return err
	}
	return c.check()
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
		return v, file.Located(err)
	}
	if err := cmp.Or(config.CheckNegative(k), c.Serve.check()); err != nil {
		return v, file.Located(err)
	}
	return reload.Values{Settings: config.Effective(k, file), LogLevel: c.Serve.LogLevel, TLS: c.Serve.TLSFlags, Models: file.Models(), Sections: file.Sections(), Limits: c.Serve.Limits(c.Serve.perUser())}, nil
}
