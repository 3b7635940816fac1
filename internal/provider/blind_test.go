package provider

import (
	"testing"

	"deckhand/internal/llm/catalogue"
	"deckhand/internal/llm/connect"
	"deckhand/internal/v0"
)

// Images are refused only if the model is known not to support them.
func TestBlind(t *testing.T) {
	yes, no, window := true, false, int64(1000)
	lists := catalogue.New(nil)
	var sees, blind string
	for _, name := range lists.Names() {
		switch info := lists.Info(name); {
		case info.Window == 0:
		case info.Images:
			sees = name
		default:
			blind = name
		}
	}
	for name, c := range map[string]struct {
		model string
		said  *catalogue.Override
		want  string
	}{
		"it sees":                         {sees, nil, ""},
		"it does not":                     {blind, nil, v0.ImagesUnsupported},
		"nobody knows":                    {"acme/nobody-knows", nil, ""},
		"the operator says it does":       {blind, &catalogue.Override{Images: &yes}, ""},
		"the operator says it must not":   {sees, &catalogue.Override{Images: &no}, v0.ImagesDisabled},
		"the operator says something":     {"acme/nobody-knows", &catalogue.Override{Window: &window}, ""},
		"the operator says something new": {blind, &catalogue.Override{Window: &window}, v0.ImagesUnsupported},
	} {
		said := map[string]catalogue.Override{}
		if c.said != nil {
			said[c.model] = *c.said
		}
		b := &Models{Connector: connect.Connector{Catalogue: catalogue.New(said)}}
		if got := b.blind(c.model); got != c.want {
			t.Errorf("%s (%s): %q, want %q", name, c.model, got, c.want)
		}
	}
}
