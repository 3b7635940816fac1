// Package schema checks the final answer of an agent against a JSON schema, for scripts that read it.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Answer is the schema of an answer. A nil Answer accepts every text.
type Answer struct {
	text     string
	resolved *jsonschema.Resolved
}

// maxSize is how large a schema may be: the model reads all of it.
const maxSize = 256 << 10

// Read reads a schema from a file; "" is none.
func Read(file string) (*Answer, error) {
	if file == "" {
		return nil, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(b) > maxSize {
		return nil, fmt.Errorf("%s is larger than %d KiB", file, maxSize>>10)
	}
	var decoded any
	if err := json.Unmarshal(b, &decoded); err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema: %w", file, err)
	}
	if err := fault(decoded); err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema: %w", file, err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema: %w", file, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON schema: %w", file, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		return nil, err
	}
	return &Answer{text: compact.String(), resolved: resolved}, nil
}

// Instructions tell the agent what to answer.
func (a *Answer) Instructions() string {
	if a == nil {
		return ""
	}
	return "A program reads your final answer. Your final answer must be a single JSON value that is valid for the JSON schema below, without any other text and without a code fence.\n\n" + a.text
}

// Again tells the agent why its answer was not accepted.
func (a *Answer) Again(why error) string {
	return "Your final answer was not accepted: " + why.Error() + ". Answer again. " + a.Instructions()
}

// Check returns the JSON value of an answer, or an error that says what is wrong with it. A code fence
// around the value is removed, because models often add one.
func (a *Answer) Check(answer string) (json.RawMessage, error) {
	text := strings.TrimSpace(answer)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		if _, rest, ok := strings.Cut(inner, "\n"); ok {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
		}
	}
	if text == "" {
		return nil, errors.New("it is empty")
	}
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if err := a.resolved.Validate(value); err != nil {
		return nil, fmt.Errorf("it does not match the schema: %w", err)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
