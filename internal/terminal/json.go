package terminal

import (
	"bytes"
	"encoding/json"
	"io"
)

// PrintJSON prints a value as one line of JSON, without terminal control characters.
func PrintJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(JSON(b.Bytes()))
	return err
}
