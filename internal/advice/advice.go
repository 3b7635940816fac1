// Package advice has errors that say what to do: a command to run or a setting to change. Commands print both parts in one line, and
// deckhand doctor prints the advice below the error.
package advice

import (
	"errors"
	"fmt"
	"strings"
)

// Error is an error and its fix.
type Error struct {
	Err error
	Fix string
}

func (e *Error) Error() string { return e.Err.Error() + "; " + e.Fix }
func (e *Error) Unwrap() error { return e.Err }

// With adds a fix to an error, unless it has one, which is more precise; nil stays nil.
func With(err error, fix string, args ...any) error {
	if e := (*Error)(nil); err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{err, fmt.Sprintf(fix, args...)}
}

// Split returns the text of an error without its fix, and the fix; "" if it has none.
func Split(err error) (text, fix string) {
	text = err.Error()
	if e := (*Error)(nil); errors.As(err, &e) {
		return strings.Replace(text, e.Error(), e.Err.Error(), 1), e.Fix
	}
	return text, ""
}
