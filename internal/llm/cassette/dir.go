package cassette

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"deckhand/internal/llm"
)

// Dir is a folder of cassettes; "" for none. The cassette NAME is in NAME.jsonl.
type Dir string

// Open returns the model that replays a cassette.
func (d Dir) Open(name string, redact func(string) string) (llm.Model, error) {
	model := "cassette/" + name
	if d == "" {
		return nil, &llm.UnavailableError{Model: model, Reason: "this server plays no cassettes; start it with --cassettes DIR."}
	}
	path, err := d.file(name)
	if err != nil {
		return nil, &llm.UnavailableError{Model: model, Reason: err.Error()}
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &llm.UnavailableError{Model: model, Reason: "there is no such cassette."}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := Replay(f, redact)
	if err != nil {
		return nil, &llm.UnavailableError{Model: model, Reason: err.Error()}
	}
	return m, nil
}

// Record returns a model whose calls are added to the cassettes of their conversations.
// No file stays open between calls.
func (d Dir) Record(m llm.Model, redact func(string) string) llm.Model {
	return &recorder{model: m, redact: redact, tapes: map[string]*tape{}, to: func(conversation string) (*tape, error) {
		path, err := d.file(conversation)
		if err != nil {
			return nil, fmt.Errorf("the conversation %q cannot be recorded: %w", conversation, err)
		}
		return &tape{w: appender(path)}, nil
	}}
}

var fileName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)

func (d Dir) file(name string) (string, error) {
	if !fileName.MatchString(name) {
		return "", errors.New("a cassette's name has letters, digits, dots, dashes and underscores")
	}
	return filepath.Join(string(d), name+".jsonl"), nil
}

// appender appends to a file that only its owner may read.
type appender string

func (a appender) Write(b []byte) (int, error) {
	if err := os.MkdirAll(filepath.Dir(string(a)), 0o700); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(string(a), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(b)
	return n, errors.Join(err, f.Close())
}
