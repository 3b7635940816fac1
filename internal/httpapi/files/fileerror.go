package files

import (
	"errors"
	"net/http"
	"slices"

	"deckhand/api"
	"deckhand/internal/httpapi/status"
)

var unfitFor = []int{http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}

// tell is what a route that shows a file says of an error about it, if that is how it
// was asked, or the error. Browsers write every error to the console, and that somebody
// clicked on a program or a large file is none.
func tell(how string, err error) (*api.Unfit, error) {
	if err == nil || how != "told" {
		return nil, err
	}
	f := status.Of(err)
	if !slices.Contains(unfitFor, f.Status) {
		return nil, err
	}
	why := &api.Unfit{Status: f.Status, Message: f.Msg}
	var invalid *api.ValidationError
	if errors.As(err, &invalid) && len(invalid.Detail) > 0 {
		why.Message = invalid.Detail[0].Msg
	}
	return why, nil
}
