// Package drivers lists the sandbox drivers and chooses one. It is the only package that
// knows all of them.
package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/engines"
	"deckhand/internal/sandbox/runner/embedded"
)

// Register adds a driver from another package. It must be called before a driver is
// opened.
func Register(k sandbox.Kind) {
	if _, taken := Find(k.Name); taken || k.Name == Auto || k.Name == None {
		panic("two sandbox drivers are called " + k.Name)
	}
	kinds = append(kinds, k)
}

// Values of --sandbox and names of a Driver that are not drivers.
const (
	Auto = "auto" // chooses a driver that works here
	None = "none" // the name of the driver where there is none
)

// Find returns the properties of the driver with a name.
func Find(name string) (sandbox.Properties, bool) {
	k, ok := find(name)
	return k.Properties, ok
}

func find(name string) (sandbox.Kind, bool) {
	i := slices.IndexFunc(kinds, func(k sandbox.Kind) bool { return k.Name == name })
	if i < 0 {
		return sandbox.Kind{}, false
	}
	return kinds[i], true
}

// ranked returns the drivers that auto tries, in order.
func ranked() []sandbox.Kind {
	auto := slices.DeleteFunc(slices.Clone(kinds), func(k sandbox.Kind) bool { return k.Auto == 0 })
	slices.SortStableFunc(auto, func(a, b sandbox.Kind) int { return cmp.Compare(b.Auto, a.Auto) })
	return auto
}

// FlagVars returns variables for the help of --sandbox.
func FlagVars() map[string]string {
	return map[string]string{"sandbox_drivers": strings.Join(names(), ","), "sandbox_help": help()}
}

// names returns the values of --sandbox.
func names() []string {
	all := []string{Auto}
	for _, k := range kinds {
		all = append(all, k.Name)
	}
	return all
}

// help describes the values of --sandbox.
func help() string {
	var each, auto []string
	for _, k := range kinds {
		each = append(each, k.Name+" ("+k.Label+")")
	}
	for _, k := range ranked() {
		auto = append(auto, k.Name)
	}
	return fmt.Sprintf("%s, or %s (%s)", strings.Join(each, ", "), Auto, strings.Join(auto, " if available, otherwise "))
}

// ForFolder returns the driver to use when a folder of this machine is the
// workspace: the named one, or for auto the first in the order of the help, which needs no daemon where there is a choice.
func ForFolder(name string) (sandbox.Properties, error) {
	var able []string
	for _, k := range kinds {
		switch {
		case k.Folders && k.Confined:
			able = append(able, k.Name)
		case k.Folders:
			able = append(able, "or "+k.Name+" for no sandbox")
		}
	}
	for _, k := range kinds {
		if k.Folders && (k.Name == name || name == Auto && k.Auto > 0) {
			return k.Properties, nil
		}
	}
	return sandbox.Properties{}, fmt.Errorf("--sandbox %s cannot use a folder of this machine; use %s", name, strings.Join(able, ", "))
}

// Unconfined returns a driver that works on every machine, as an alternative to the named
// one; "" if there is none.
func Unconfined(name string) string {
	if p, ok := Find(name); !ok || !p.Confined || !p.Folders {
		return ""
	}
	i := slices.IndexFunc(kinds, func(k sandbox.Kind) bool { return k.Folders && !k.Confined })
	if i < 0 {
		return ""
	}
	return kinds[i].Name
}

// WithEngines returns the driver for a value of --sandbox and addresses of container engines. Auto does not ignore such an address.
func WithEngines(name string, hosts []string) string {
	if name == Auto && len(hosts) > 0 {
		return engines.Kind.Name
	}
	return name
}

// CheckEngines returns an error if a driver that uses container engines cannot use their addresses. It does not connect.
func CheckEngines(name string, hosts []string) error {
	if name != engines.Kind.Name {
		return nil
	}
	d, err := engines.Kind.Open(sandbox.Options{EngineHosts: hosts})
	if err != nil {
		return err
	}
	return Driver{Driver: d}.Close()
}

// Ping returns an error if a driver depends on a program that does not respond: the container engines at these addresses.
func Ping(ctx context.Context, name string, hosts []string) error {
	if name != engines.Kind.Name {
		return nil
	}
	d, err := engines.Kind.Open(sandbox.Options{EngineHosts: hosts})
	if p, ok := d.(sandbox.Pinger); err == nil && ok {
		err = errors.Join(p.Ping(ctx), Driver{Driver: d}.Close())
	}
	return err
}

// Driver is the chosen driver.
type Driver struct {
	sandbox.Driver
	sandbox.Properties
}

// Close ends the driver. Sandboxes keep running.
func (d Driver) Close() error {
	if c, ok := d.Driver.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Path returns the PATH in the sandbox for a server with this PATH, or "" for the
// runner's default.
func (d Driver) Path(ours string) string {
	if p, ok := d.Driver.(sandbox.Pather); ok {
		return p.Path(ours)
	}
	return ""
}

// pingTime is how long auto waits for an engine.
const pingTime = 2 * time.Second

// Config is the choice of a driver and its configuration.
type Config struct {
	Kind string // auto, or a driver's name
	// DataDir is where the runner is installed and workspaces are stored.
	DataDir    string
	RunnerPath string // "" for the embedded one
	// Options are the driver's. Dir and Runner follow from the above.
	sandbox.Options
}

// Open opens the driver.
func Open(ctx context.Context, f Config) (Driver, error) {
	runner := f.RunnerPath
	if runner == "" {
		dir, err := filepath.Abs(filepath.Join(f.DataDir, "runner"))
		if err != nil {
			return Driver{}, err
		}
		if runner, err = embedded.Install(dir); err != nil {
			return Driver{}, err
		}
		f.RunnerFor = func(arch string) (string, error) { return embedded.InstallFor(dir, arch) }
	}
	runner, err := filepath.Abs(runner)
	if err != nil {
		return Driver{}, err
	}
	f.Dir, f.Runner = filepath.Join(f.DataDir, "boxes"), runner
	if f.Kind == Auto {
		return first(ctx, f.Options)
	}
	k, ok := find(f.Kind)
	if !ok {
		return Driver{}, fmt.Errorf("%q is not a sandbox driver; use one of %s", f.Kind, strings.Join(names(), ", "))
	}
	return open(k, f.Options)
}

func open(k sandbox.Kind, o sandbox.Options) (Driver, error) {
	d, err := k.Open(o)
	if err != nil {
		return Driver{}, err
	}
	return Driver{Driver: d, Properties: k.Properties}, nil
}

// first opens the first driver that auto may use and that responds. The last one is not
// probed: its error is the one to report.
func first(ctx context.Context, o sandbox.Options) (Driver, error) {
	auto := ranked()
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	for _, k := range auto[:len(auto)-1] {
		d, err := open(k, o)
		if err != nil {
			continue
		}
		if p, ok := d.Driver.(sandbox.Pinger); !ok || p.Ping(ctx) == nil {
			return d, nil
		}
		_ = d.Close() // nothing was started
	}
	return open(auto[len(auto)-1], o)
}

// unavailable is the driver without sandboxes: conversations work, and operations that need
// a sandbox return the reason.
type unavailable struct{ why error }

func (n unavailable) Start(context.Context, sandbox.Spec, func(sandbox.Progress)) (sandbox.Handle, error) {
	return sandbox.Handle{}, &sandbox.Unavailable{Reason: "This server cannot create sandboxes: " + n.why.Error(), Cause: n.why}
}
func (unavailable) Attach(context.Context, sandbox.Handle) (*sandbox.Sandbox, error) {
	return nil, sandbox.ErrGone
}
func (unavailable) Stop(context.Context, sandbox.Handle) error    { return nil }
func (unavailable) Destroy(context.Context, sandbox.Handle) error { return nil }
func (unavailable) List(context.Context) ([]sandbox.Found, error) { return nil, nil }

// Choose opens the driver and checks it. A driver chosen by name must work; auto
// continues without a sandbox and logs a warning.
func Choose(ctx context.Context, f Config) (Driver, error) {
	d, err := Open(ctx, f)
	if q, ok := d.Driver.(sandbox.Prober); ok && err == nil {
		if err = q.Possible(); err != nil {
			err = fmt.Errorf("--sandbox %s does not work here: %w", d.Name, err)
		}
	}
	if err == nil {
		return d, nil
	}
	if d.Driver != nil {
		err = errors.Join(err, d.Close())
	}
	if f.Kind != Auto {
		return d, err
	}
	f.Logger.Error("NO SANDBOX AVAILABLE: agents cannot run commands; run deckhand doctor for details", "why", err)
	return Driver{Driver: unavailable{err}, Properties: sandbox.Properties{Name: None, Confined: true}}, nil
}

// DestroyAll destroys every sandbox of an instance.
func DestroyAll(ctx context.Context, f Config) error {
	if f.Kind == None {
		return nil
	}
	d, err := Open(ctx, f)
	if err != nil {
		return err
	}
	return errors.Join(d.DestroyAll(ctx), d.Close())
}

// DestroyAll destroys all sandboxes.
func (d Driver) DestroyAll(ctx context.Context) error {
	found, err := d.List(ctx)
	for _, b := range found {
		err = errors.Join(err, d.Destroy(ctx, b.Handle))
	}
	return err
}

// Findings returns the checks of a driver on this machine.
func Findings(ctx context.Context, d sandbox.Driver) []sandbox.Finding {
	if c, ok := d.(sandbox.Checker); ok {
		return c.Check(ctx)
	}
	return nil
}
