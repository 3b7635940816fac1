package feedbacktest

import (
	"testing"

	"deckhand/internal/feedback"
)

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) feedback.Store { return &Memory{} })
}
