-- Users' wishes to be asked for work at a git provider.
CREATE TABLE integrations (
	id            TEXT PRIMARY KEY,
	user          TEXT    NOT NULL REFERENCES users (name) ON DELETE CASCADE,
	provider      TEXT    NOT NULL,
	host          TEXT    NOT NULL,
	mention       TEXT    NOT NULL,
	label         TEXT    NOT NULL,
	repositories  TEXT    NOT NULL, -- JSON
	allowed_users TEXT    NOT NULL, -- JSON
	enabled       INTEGER NOT NULL,
	secret        BLOB    NOT NULL, -- sealed
	created_at    INTEGER NOT NULL,
	changed_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX integrations_by_user ON integrations (user, created_at, id);

CREATE INDEX integrations_by_provider ON integrations (provider) WHERE enabled = 1;

-- What providers told. seq counts per integration. next_at is NULL when nothing
-- is to be done now. id is the provider's name for it, and print that of its
-- content: with either one it is known again.
CREATE TABLE arrivals (
	integration TEXT    NOT NULL REFERENCES integrations (id) ON DELETE CASCADE,
	seq         INTEGER NOT NULL,
	id          TEXT    NOT NULL,
	print       TEXT    NOT NULL,
	event       TEXT    NOT NULL,
	repository  TEXT    NOT NULL,
	pull        INTEGER NOT NULL,
	number      INTEGER NOT NULL,
	actor       TEXT    NOT NULL,
	created_at  INTEGER NOT NULL,
	state       TEXT    NOT NULL,
	reason      TEXT    NOT NULL,
	task        BLOB,
	session     TEXT    NOT NULL,
	said        INTEGER NOT NULL,
	posting     INTEGER NOT NULL,
	attempts    INTEGER NOT NULL,
	next_at     INTEGER,
	done_at     INTEGER,
	PRIMARY KEY (integration, seq),
	UNIQUE (integration, id),
	UNIQUE (integration, print)
) STRICT, WITHOUT ROWID;

CREATE INDEX arrivals_due ON arrivals (next_at, integration, seq) WHERE next_at IS NOT NULL;

CREATE INDEX arrivals_at_work ON arrivals (session, integration, seq) WHERE state = 'working';

-- Which conversation an issue or a pull request has.
CREATE TABLE threads (
	integration TEXT    NOT NULL REFERENCES integrations (id) ON DELETE CASCADE,
	repository  TEXT    NOT NULL,
	pull        INTEGER NOT NULL,
	number      INTEGER NOT NULL,
	session     TEXT    NOT NULL,
	PRIMARY KEY (integration, repository, pull, number)
) STRICT, WITHOUT ROWID;
