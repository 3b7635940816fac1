package settings_test

import (
	"testing"

	"deckhand/internal/settings"
	"deckhand/internal/settings/settingstest"
)

func TestMemStore(t *testing.T) {
	settingstest.Run(t, func(*testing.T) settings.Store { return settings.NewMemStore() })
}
