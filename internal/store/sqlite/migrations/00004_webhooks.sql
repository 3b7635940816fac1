-- Addresses that users want to be told at. due_at is when an attempt may be made
-- next: the earliest next_at of its deliveries, but not before quiet_until; NULL
-- if none waits. It is kept here so that what is due is found without looking at
-- webhooks or deliveries that are not.
CREATE TABLE webhooks (
	id            TEXT PRIMARY KEY,
	user          TEXT    NOT NULL REFERENCES users (name) ON DELETE CASCADE,
	description   TEXT    NOT NULL,
	events        INTEGER NOT NULL, -- a set of bits
	enabled       INTEGER NOT NULL,
	target        BLOB    NOT NULL, -- sealed
	created_at    INTEGER NOT NULL,
	changed_at    INTEGER NOT NULL,
	failures      INTEGER NOT NULL,
	failing_since INTEGER,
	quiet_until   INTEGER NOT NULL,
	disabled      TEXT    NOT NULL, -- why we did; empty if we did not
	waiting       INTEGER NOT NULL,
	due_at        INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX webhooks_by_user ON webhooks (user, created_at, id);

CREATE INDEX webhooks_due ON webhooks (due_at) WHERE enabled = 1 AND due_at IS NOT NULL;

-- What they are told, or were. seq counts per webhook and has no gaps, so that
-- the one which is one too many is found without counting. next_at is NULL when
-- nothing more is to be done.
CREATE TABLE deliveries (
	webhook    TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
	seq        INTEGER NOT NULL,
	id         TEXT    NOT NULL,
	type       TEXT    NOT NULL,
	session    TEXT    NOT NULL,
	event      INTEGER NOT NULL,
	body       BLOB    NOT NULL,
	created_at INTEGER NOT NULL,
	state      TEXT    NOT NULL,
	attempts   INTEGER NOT NULL,
	next_at    INTEGER,
	last_at    INTEGER,
	took       INTEGER NOT NULL, -- microseconds
	status     INTEGER NOT NULL,
	error      TEXT    NOT NULL,
	PRIMARY KEY (webhook, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_waiting ON deliveries (webhook, next_at, seq) WHERE next_at IS NOT NULL;

CREATE INDEX deliveries_by_age ON deliveries (created_at);
