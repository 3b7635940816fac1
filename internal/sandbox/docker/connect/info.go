package connect

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"

	"github.com/moby/moby/client"
)

// rootless is how Docker says that its engine runs without root.
const rootless = "name=rootless"

// Info describes the engine. Podman does not say here that it is rootless and claims limits that it then ignores, so its own
// description is read as well.
func (e Engine) Info(ctx context.Context, o client.InfoOptions) (client.SystemInfoResult, error) {
	got, err := e.Client.Info(ctx, o)
	if err != nil {
		return got, err
	}
	host, ok := e.Podman(ctx)
	if !ok || !host.Security.Rootless {
		return got, nil
	}
	if !slices.Contains(got.Info.SecurityOptions, rootless) {
		got.Info.SecurityOptions = append(got.Info.SecurityOptions, rootless)
	}
	has := func(controller string) bool { return slices.Contains(host.Controllers, controller) }
	got.Info.MemoryLimit, got.Info.PidsLimit, got.Info.CPUCfsQuota = has("memory"), has("pids"), has("cpu")
	return got, nil
}

// PodmanHost is what Podman says about its machine.
type PodmanHost struct {
	Controllers []string `json:"cgroupControllers"` // that it may use
	Security    struct {
		Rootless bool `json:"rootless"`
	} `json:"security"`
}

// Podman asks an engine for what only Podman knows; ok is false if it is another one.
func (e Engine) Podman(ctx context.Context) (host PodmanHost, ok bool) {
	dial := e.Dialer()
	caller := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine.invalid/v4.0.0/libpod/info", http.NoBody)
	if err != nil {
		return host, false
	}
	resp, err := caller.Do(req)
	if err != nil {
		return host, false
	}
	defer resp.Body.Close()
	var info struct {
		Host *PodmanHost `json:"host"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&info) != nil || info.Host == nil {
		return host, false
	}
	return *info.Host, true
}
