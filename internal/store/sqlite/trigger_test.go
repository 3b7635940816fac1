package sqlite

import (
	"testing"

	"deckhand/internal/access"
	"deckhand/internal/trigger/triggertest"
)

func TestTriggersSuite(t *testing.T) {
	triggertest.Run(t, func(t *testing.T) triggertest.Rig {
		db := openNew(t)
		return triggertest.Rig{Store: db.Triggers(),
			AddUser:     func(name string) { must(t, db.CreateUser(t.Context(), access.User{Name: name, CreatedAt: noon})) },
			DisableUser: func(name string) { must(t, db.SetUserDisabled(t.Context(), name, true)) }}
	})
}
