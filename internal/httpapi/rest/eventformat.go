package rest

import (
	"maps"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/conversation/query"
	"deckhand/internal/live"
	"deckhand/internal/native"
)

// eventFormats are the names of the formats in requests.
var eventFormats = []any{native.Legacy, native.Format}

// IsNative reports whether format names the native format.
func IsNative(format string) bool { return format == native.Format }

// StreamFormat is the format that a stream is asked for. The header of the answer says its version.
func StreamFormat(h http.Header, r *http.Request) (live.Format, error) {
	switch given := r.URL.Query()["format"]; {
	case len(given) == 0, len(given) == 1 && given[0] == native.Legacy:
		return query.LegacyEvents, nil
	case len(given) == 1 && IsNative(given[0]):
		StateEventVersion(h)
		return query.NativeEvents, nil
	}
	return 0, &api.ValidationError{Detail: []api.FieldError{{Loc: []any{"query", "format"}, Type: "literal_error", Msg: "Must be one of " + Choices(eventFormats) + "."}}}
}

// StateEventVersion says which version of the native format an answer has.
func StateEventVersion(h http.Header) {
	h.Set(native.VersionHeader, strconv.FormatInt(native.Version, 10))
}

// FormatParam describes the parameter of streams.
func FormatParam() *huma.Param {
	return &huma.Param{Name: "format", In: "query", Description: "Format of the events: legacy, or deckhand for the events as logged (schema Event).",
		Schema: &huma.Schema{Type: huma.TypeString, Enum: eventFormats, Default: native.Legacy}}
}

// DescribeEvents puts the schemas of the native format into the document.
func DescribeEvents(r huma.Registry) {
	all := r.Map()
	maps.Copy(all, native.Schemas())
	if s := all["EventPage"]; s != nil {
		legacy := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: "An event in the format legacy."}
		s.Properties["events"].Items = &huma.Schema{AnyOf: []*huma.Schema{{Ref: "#/components/schemas/" + native.SchemaName}, legacy}}
	}
}
