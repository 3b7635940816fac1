package main

import "deckhand/internal/httpapi"

type openapiCmd struct{}

// Run prints the document. It needs no data and no server.
func (openapiCmd) Run(o *output) error {
	_, err := o.stdout.Write(httpapi.New(httpapi.Config{Version: version}).Spec())
	return err
}
