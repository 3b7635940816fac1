package main

import (
	"deckhand/internal/cli"
	"deckhand/internal/httpapi"
)

type openapiCmd struct{}

// Run prints the document. It needs no data and no server.
func (openapiCmd) Run(o *cli.Output) error {
	_, err := o.Stdout.Write(httpapi.New(httpapi.Config{Server: httpapi.Server{Version: version}}).Spec())
	return err
}
