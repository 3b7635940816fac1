package rpc

import (
	"errors"
	"fmt"
	"io/fs"

	"deckhand/internal/clip"
)

// The errors that keep their meaning across the connection, with those of io/fs.
var (
	ErrFenced  = errors.New("a newer owner commands this sandbox")
	ErrEscapes = errors.New("the path leads out of the workspace")
	ErrInvalid = errors.New("invalid request")
	ErrBusy    = errors.New("busy")
	ErrTooBig  = errors.New("too large")
	ErrBinary  = errors.New("not a text")
	ErrNoRepo  = errors.New("not a git repository")
	ErrChanged = errors.New("the file has changed since it was read")

	ErrNoCheckpoint = errors.New("there is no such checkpoint")
)

// The errors of the connection itself.
var (
	// ErrLost says the connection to the runner ended.
	ErrLost = errors.New("the connection to the sandbox was lost")
	// ErrUnread says that data was sent which the other side does not take any
	// more. It may have answered: Answer tells.
	ErrUnread = errors.New("the other side takes no more data")
)

func lost(err error) error {
	if errors.Is(err, ErrLost) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

var codes = []struct {
	code string
	err  error
}{
	{"not_exist", fs.ErrNotExist}, {"exist", fs.ErrExist}, {"permission", fs.ErrPermission},
	{"fenced", ErrFenced}, {"escapes", ErrEscapes}, {"invalid", ErrInvalid}, {"busy", ErrBusy}, {"too_big", ErrTooBig},
	{"binary", ErrBinary}, {"no_repo", ErrNoRepo}, {"changed", ErrChanged}, {"no_checkpoint", ErrNoCheckpoint},
}

// Error is what the other side answered instead of a result.
type Error struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is see the error that was meant on the other side.
func (e *Error) Is(target error) bool {
	for _, c := range codes {
		if c.code == e.Code {
			return c.err == target
		}
	}
	return false
}

// maxMessage is how much of an error's text travels: it is for people.
const maxMessage = 64 << 10

// toError is how an error travels.
func toError(err error) *Error {
	e := &Error{Message: clip.Bytes(err.Error(), maxMessage)}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			e.Code = c.code
			break
		}
	}
	return e
}
