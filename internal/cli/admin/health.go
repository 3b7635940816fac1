package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/control"
)

// Health is deckhand health.
type Health struct {
	DataDir string `name:"data-dir" env:"DECKHAND_DATA_DIR" default:"${data_dir}" placeholder:"DIR" help:"Data directory of the server (default: ${default})."`
}

// Help implements kong.HelpProvider.
func (Health) Help() string {
	return "Exits with 0 if the server that runs on the data directory is ready, and with 1 otherwise. Container images use it as their health check. A server with TLS only has to respond on its control socket."
}

// healthTime is the timeout of a health check.
const healthTime = 5 * time.Second

// Run asks the server.
func (c *Health) Run(ctx context.Context, o *cli.Output) error {
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	answer, err := control.Ask(c.DataDir, control.Address)
	if err != nil {
		return fmt.Errorf("%w%s", control.Explain(c.DataDir, err), config.Packaged.Hint(c.DataDir))
	}
	// The name in a certificate is the public one, which may lead elsewhere.
	if local, _, _ := strings.Cut(answer, " "); strings.HasPrefix(local, "http://") {
		if err := ready(ctx, local); err != nil {
			return err
		}
	}
	fmt.Fprintln(o.Stdout, "ready")
	return nil
}

// ready requests the readiness probe of a server.
func ready(ctx context.Context, base string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/ready", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true} // without a proxy
	got, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(got.Body, 1000))
	if got.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(said)))
	}
	return nil
}
