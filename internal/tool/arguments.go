package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Failf is the result of a call that could not be done, in words for the model.
func Failf(format string, a ...any) Result {
	return Result{Failed: true, Text: fmt.Sprintf(format, a...)}
}

// Into reads the arguments into v. What is wrong with them is the error, in
// words for the model: it can be shown as it is, and holds nothing else.
func (c Call) Into(v any) error {
	err := json.Unmarshal(c.Args, v)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		return fmt.Errorf("the argument %s must be %s, not %s", wrong.Field, kind(wrong.Type), wrong.Value)
	case errors.As(err, &wrong):
		return errors.New("the arguments must be a JSON object")
	}
	return errors.New("the arguments are not valid JSON")
}

// kind is a type in the words of JSON.
func kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
