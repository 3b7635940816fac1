package advice

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

// The first fix is kept, and is found in an error that wraps it.
func TestSplit(t *testing.T) {
	t.Parallel()
	err := With(fmt.Errorf("open: %w", With(io.EOF, "read %s", "less")), "another fix")
	if !errors.Is(err, io.EOF) || err.Error() != "open: EOF; read less" {
		t.Errorf("%v", err)
	}
	if text, fix := Split(err); text != "open: EOF" || fix != "read less" {
		t.Errorf("%q, %q", text, fix)
	}
	if text, fix := Split(io.EOF); text != "EOF" || fix != "" {
		t.Errorf("%q, %q", text, fix)
	}
	if With(nil, "fix") != nil {
		t.Error("nil did not stay nil")
	}
}
