package native

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/session"
)

// SchemaName is the name of the schema of all events in the OpenAPI document.
const SchemaName = "Event"

const refPrefix = "#/components/schemas/"

// Schemas are those of the format by their names in the OpenAPI document: SchemaName, and
// one for each kind.
func Schemas() map[string]*huma.Schema {
	all := &huma.Schema{
		Description:   fmt.Sprintf("An event in the format deckhand, version %d. Kinds and fields are only added: ignore those that you do not know.", Version),
		Discriminator: &huma.Discriminator{PropertyName: "kind", Mapping: map[string]string{}},
		Extensions:    map[string]any{"x-version": Version},
	}
	out := map[string]*huma.Schema{SchemaName: all}
	for _, p := range session.Payloads() {
		k := kinds[p.Kind()]
		if k.internal {
			continue
		}
		name := reflect.TypeOf(p).Name() + "Event"
		out[name] = eventSchema(p, k)
		all.OneOf = append(all.OneOf, &huma.Schema{Ref: refPrefix + name})
		all.Discriminator.Mapping[string(p.Kind())] = refPrefix + name
	}
	return out
}

func eventSchema(p session.Payload, k kind) *huma.Schema {
	payload := structSchema(reflect.TypeOf(p), k.private)
	if p.Kind() == session.KindImported {
		payload.Properties["as"] = &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{Ref: refPrefix + SchemaName}}
		payload.Required = append(payload.Required, "as")
	}
	if p.Kind() == session.KindToolCalled || p.Kind() == session.KindToolReturned {
		shown := structSchema(reflect.TypeFor[api.Display](), nil)
		shown.Description = "How people see the call, as the tool declares it."
		payload.Properties["display"] = shown
		payload.Required = append(payload.Required, "display")
	}
	return &huma.Schema{
		Type: huma.TypeObject, Description: k.about, Required: []string{"id", "kind", "time", "payload"},
		Properties: map[string]*huma.Schema{
			"id":      {Type: huma.TypeInteger, Format: "int64", Minimum: new(1.0), Description: "Number of the event in the log."},
			"kind":    {Type: huma.TypeString, Enum: []any{string(p.Kind())}},
			"time":    {Type: huma.TypeString, Format: "date-time"},
			"payload": payload,
		},
	}
}

// structSchema describes a struct without its private fields. Other properties are allowed:
// newer servers send more.
func structSchema(t reflect.Type, private []string) *huma.Schema {
	s := &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{}}
	for _, f := range fields(t) {
		if slices.Contains(private, f.name) {
			continue
		}
		var inner []string
		for _, path := range private {
			if rest, ok := strings.CutPrefix(path, f.name+"."); ok {
				inner = append(inner, rest)
			}
		}
		p := typeSchema(f.typ, inner)
		p.Description = cmp.Or(f.tag.Get("doc"), p.Description)
		for _, value := range strings.FieldsFunc(f.tag.Get("enum"), func(r rune) bool { return r == ',' }) {
			p.Enum = append(p.Enum, value)
		}
		s.Properties[f.name] = p
		if !f.optional {
			s.Required = append(s.Required, f.name)
		}
	}
	return s
}

// values are the types with few values.
var values = map[reflect.Type][]any{
	reflect.TypeFor[session.Risk]():        {session.RiskUnknown, session.RiskLow, session.RiskMedium, session.RiskHigh},
	reflect.TypeFor[session.Outcome]():     {session.Succeeded, session.FailedRun, session.Cancelled, session.Rejected, session.Unknown},
	reflect.TypeFor[session.Origin]():      {session.OriginSetUp},
	reflect.TypeFor[session.Outside]():     {session.OutsideActor, session.OutsideFork},
	reflect.TypeFor[session.TrustReason](): {session.TrustByUser, session.TrustByList, session.TrustByPush, session.TrustNoPush, session.TrustUnknown, session.TrustOutside},
	reflect.TypeFor[session.AgentState](): {session.AgentLoading, session.AgentRunning, session.AgentAwaitingUser, session.AgentPaused, session.AgentStopped, session.AgentFinished,
		session.AgentRejected, session.AgentError, session.AgentAwaitingYes, session.AgentUserYes, session.AgentUserNo, session.AgentRateLimited},
}

func typeSchema(t reflect.Type, private []string) *huma.Schema {
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return &huma.Schema{Description: "Any JSON value."}
	case reflect.TypeFor[time.Time]():
		return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	case reflect.TypeFor[session.Money]():
		return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Description: "Billionths of a US dollar."}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), private)
	case reflect.Struct:
		return structSchema(t, private)
	case reflect.Slice:
		return &huma.Schema{Type: huma.TypeArray, Items: typeSchema(t.Elem(), private)}
	case reflect.String:
		return &huma.Schema{Type: huma.TypeString, Enum: values[t]}
	case reflect.Bool:
		return &huma.Schema{Type: huma.TypeBoolean}
	case reflect.Int, reflect.Int64:
		return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Enum: values[t]}
	}
	panic("the native format has no schema for " + t.String())
}
