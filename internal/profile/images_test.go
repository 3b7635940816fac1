package profile

import (
	"testing"

	"deckhand/api"
	"deckhand/internal/llm/picture"
	"deckhand/internal/v0"
)

// What clients may send must reach the model: an image that is as large as api.MaxImage allows is accepted inline, and shown.
func TestImageLimits(t *testing.T) {
	t.Parallel()
	if picture.MaxBytes != api.MaxImage {
		t.Errorf("models are shown %d bytes, clients send %d", picture.MaxBytes, api.MaxImage)
	}
	if inline := len("data:image/jpeg;base64,") + (api.MaxImage+2)/3*4; inline > v0.MaxImageData {
		t.Errorf("an image of %d bytes has %d characters, and %d are accepted", api.MaxImage, inline, v0.MaxImageData)
	}
}
