package postgres

import (
	"testing"

	"deckhand/internal/access"
	"deckhand/internal/access/accesstest"
	"deckhand/internal/feedback"
	"deckhand/internal/feedback/feedbacktest"
	"deckhand/internal/idempotency"
	"deckhand/internal/idempotency/idempotencytest"
	"deckhand/internal/notify"
	"deckhand/internal/notify/notifytest"
	"deckhand/internal/queue"
	"deckhand/internal/queue/queuetest"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/egress/ledgertest"
	"deckhand/internal/secret"
	"deckhand/internal/secret/keystoretest"
	"deckhand/internal/settings"
	"deckhand/internal/settings/settingstest"
	"deckhand/internal/trigger"
	"deckhand/internal/trigger/triggertest"
)

type settingsStore struct{ opened }

func (s settingsStore) Reopen(t *testing.T) settings.Store { return settingsStore{s.reopened(t)} }

func TestSettings(t *testing.T) {
	t.Parallel()
	settingstest.Run(t, func(t *testing.T) settings.Store { return settingsStore{openNew(t)} })
}

type answerStore struct{ opened }

func (s answerStore) Reopen(t *testing.T) idempotency.Store { return answerStore{s.reopened(t)} }

func TestAnswers(t *testing.T) {
	t.Parallel()
	idempotencytest.Run(t, func(t *testing.T) idempotency.Store { return answerStore{openNew(t)} })
}

type dataKeyStore struct{ opened }

func (s dataKeyStore) Reopen(t *testing.T) secret.KeyStore { return dataKeyStore{s.reopened(t)} }

func TestDataKeys(t *testing.T) {
	t.Parallel()
	keystoretest.Run(t, func(t *testing.T) secret.KeyStore { return dataKeyStore{openNew(t)} })
}

type accessStore struct{ opened }

func (s accessStore) Reopen(t *testing.T) access.Store { return accessStore{s.reopened(t)} }

func TestAccess(t *testing.T) {
	t.Parallel()
	accesstest.Run(t, func(t *testing.T) access.Store { return accessStore{openNew(t)} })
}

func TestEgress(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, func(t *testing.T) egress.Ledger { return openNew(t).Egress() })
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	feedbacktest.Run(t, func(t *testing.T) feedback.Store { return openNew(t).Feedback() })
}

func (o opened) addUser(t *testing.T) func(string) {
	return func(name string) { must(t, o.CreateUser(t.Context(), access.User{Name: name, CreatedAt: noon})) }
}

func (o opened) disableUser(t *testing.T) func(string) {
	return func(name string) { must(t, o.SetUserDisabled(t.Context(), name, true)) }
}

func TestWebhooks(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, func(t *testing.T) notifytest.Rig {
		db := openNew(t)
		return notifytest.Rig{Store: db.Webhooks(), Log: db, AddUser: db.addUser(t), DisableUser: db.disableUser(t)}
	})
}

func TestTriggers(t *testing.T) {
	t.Parallel()
	triggertest.Run(t, func(t *testing.T) triggertest.Rig {
		db := openNew(t)
		return triggertest.Rig{Store: db.Triggers(), AddUser: db.addUser(t), DisableUser: db.disableUser(t)}
	})
}

func TestQueue(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(*DB) queue.Store{
		notify.Queue:  func(db *DB) queue.Store { return db.Webhooks() },
		trigger.Queue: func(db *DB) queue.Store { return db.Triggers() },
		"named":       func(db *DB) queue.Store { return db.Queue("named") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queuetest.Run(t, func(t *testing.T) queuetest.Rig {
				db := openNew(t)
				return queuetest.Rig{Store: of(db.DB), Added: db.base.Added.Of(name), AddUser: db.addUser(t), DisableUser: db.disableUser(t),
					Reopen: func() queue.Store { return of(db.reopened(t).DB) }}
			})
		})
	}
}
