// Package reload applies configuration changes to a running server: the log level, the TLS
// certificate, the limits on conversations, and the models in the config file. It lists other changes, which need a restart.
package reload

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"

	"deckhand/internal/admission"
	"deckhand/internal/config"
	"deckhand/internal/llm/catalogue"
)

// Values is a configuration that was read.
type Values struct {
	Settings []config.Setting
	LogLevel string
	TLS      config.TLSFlags
	Models   map[string]catalogue.Override
	// Sections are the contents of the sections of the config file, by name.
	Sections map[string]string
	Limits   admission.Limits
}

// Reloader holds the parts of a running server that can change. A nil Reloader changes nothing.
type Reloader struct {
	Read      func() (Values, error) // reads the command line, the environment and the config file again
	Level     *slog.LevelVar
	Catalogue *catalogue.Catalogue
	Log       *slog.Logger
	// Limits changes the limits on running and queued conversations; nil if there are none.
	Limits func(admission.Limits)

	Certificate config.Certificate

	hangUp chan os.Signal
	// closes is true if SIGHUP can mean that the terminal was closed.
	closes bool

	mu      sync.Mutex
	current Values
}

// Begin records the current values and loads the certificate. From now on, SIGHUP does not end the process.
func (r *Reloader) Begin() (err error) {
	if r.current, err = r.Read(); err != nil {
		return err
	}
	r.closes = terminal() && !signal.Ignored(syscall.SIGHUP)
	r.hangUp = make(chan os.Signal, 1)
	signal.Notify(r.hangUp, syscall.SIGHUP) // until the process ends: a second signal must not interrupt the shutdown
	_, err = r.Certificate.Load(r.current.TLS)
	return err
}

// applied are the flags that can be changed without a restart.
var applied = []string{"log-level", "tls-cert", "tls-key", "max-running", "max-running-per-user", "max-queued", "max-queued-per-user"}

// Reload reads the configuration again and applies the changes that need no restart. It returns a
// sentence that describes the result. If the configuration is invalid, nothing changes.
func (r *Reloader) Reload() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.Read()
	if err != nil {
		return "", r.failed(err)
	}
	if (r.current.TLS.TLSCert == "") != (next.TLS.TLSCert == "") {
		next.TLS = r.current.TLS // the listener either has TLS or not
	}
	renewed, err := r.Certificate.Load(next.TLS)
	if err != nil {
		return "", r.failed(err)
	}
	_ = r.Level.UnmarshalText([]byte(next.LogLevel)) // the flag allows only known names
	done := []string{}
	if renewed {
		done = append(done, "certificate")
	}
	if r.current.LogLevel != next.LogLevel {
		done = append(done, "log-level")
	}
	if !reflect.DeepEqual(r.current.Models, next.Models) {
		r.Catalogue.Replace(next.Models)
	}
	for _, section := range config.Sections {
		if r.current.Sections[section] != next.Sections[section] {
			done = append(done, section)
		}
	}
	if r.current.Limits != next.Limits && r.Limits != nil {
		r.Limits(next.Limits)
		done = append(done, "limits")
	}
	restart := slices.DeleteFunc(config.Changed(r.current.Settings, next.Settings), func(name string) bool { return slices.Contains(applied, name) })
	// Keep the old values of settings that need a restart, so that the next reload lists them again.
	next.Settings = r.current.Settings
	r.current = next
	said, level := summary(done, restart), slog.LevelInfo
	if len(restart) > 0 {
		level = slog.LevelWarn
	}
	r.Log.Log(context.Background(), level, said)
	return said, nil
}

// failed logs the error of a reload and returns it.
func (r *Reloader) failed(err error) error {
	r.Log.Error("cannot reload the configuration; the current one stays in effect", "error", err)
	return err
}

func summary(done, restart []string) string {
	s := "Reloaded; nothing changed."
	if len(done) > 0 {
		s = "Reloaded: " + strings.Join(done, ", ") + "."
	}
	if len(restart) > 0 {
		s += " Restart the server to change: " + strings.Join(restart, ", ") + "."
	}
	return s
}

// TLS returns the TLS configuration of the server's listener; nil without a certificate.
func (r *Reloader) TLS() *tls.Config {
	if r == nil {
		return nil
	}
	return r.Certificate.Config()
}

// Run reloads on each SIGHUP until ctx ends. The signal also comes when the terminal from which the server
// was started is closed. Run then returns an error, unless the signal was ignored at the start (nohup).
func (r *Reloader) Run(ctx context.Context) error {
	if r == nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.hangUp:
			if !r.closes || terminal() {
				_, _ = r.Reload() // logged
			}
			// The signal may precede the loss of the terminal, when the shell has ended.
			if r.closes && !terminal() {
				return errClosed
			}
		}
	}
}

var errClosed = errors.New("the terminal was closed")

// terminal returns whether this process has a terminal that is not closed.
func terminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
