package rest

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/internal/gitprovider"
)

// lists are values of enums that the types of requests cannot know: the tag
// enum:"git_provider" takes every git provider that there is.
var lists = map[any]func() []string{"git_provider": gitprovider.Names, "git_trigger": gitprovider.TriggerNames}

// fill puts the values in place of the names of lists.
func fill(s *huma.Schema) {
	if s == nil {
		return
	}
	if len(s.Enum) == 1 {
		if list := lists[s.Enum[0]]; list != nil {
			s.Enum = nil
			for _, value := range list() {
				s.Enum = append(s.Enum, value)
			}
		}
	}
	fill(s.Items)
	for _, p := range s.Properties {
		fill(p)
	}
}

// KeepFounding leaves the founding git providers in an enum, and lists the others as AlsoAccepted.
func KeepFounding(s *huma.Schema) {
	var founding, more []any
	for _, value := range s.Enum {
		if name, _ := value.(string); slices.Contains(gitprovider.FoundingNames(), name) {
			founding = append(founding, value)
		} else {
			more = append(more, value)
		}
	}
	s.Enum, s.Extensions = founding, map[string]any{AlsoAccepted: more}
}

// registry fills the schemas that it makes.
type registry struct {
	huma.Registry
	filled map[*huma.Schema]bool
}

// Schema implements huma.Registry.
func (r *registry) Schema(t reflect.Type, allowRef bool, hint string) *huma.Schema {
	s := r.Registry.Schema(t, allowRef, hint)
	fill(s)
	for _, each := range r.Map() {
		if !r.filled[each] {
			r.filled[each] = true
			fill(each)
		}
	}
	return s
}

// MarshalJSON implements json.Marshaler, for the document.
func (r *registry) MarshalJSON() ([]byte, error) { return json.Marshal(r.Registry) }
