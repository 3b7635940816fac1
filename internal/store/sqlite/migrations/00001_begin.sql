-- Times are microseconds since 1970, UTC. Optional texts and blobs are NULL when empty.

-- What lists know of a session. n is its short name inside this file: it never
-- changes and is never used again, because rows are kept as tombstones.
CREATE TABLE sessions (
	n          INTEGER PRIMARY KEY,
	id         TEXT    NOT NULL,
	owner      TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	last       INTEGER NOT NULL,
	attention  INTEGER NOT NULL, -- 0: none, 1: wants a loop, 2: runs and is idle
	deleted    INTEGER NOT NULL,
	row        BLOB    NOT NULL -- what lists show, in one piece; see row.go
) STRICT;

-- Lists are newest first, ties by id. The id is in the index so that a page is
-- read in order: sorting twenty rows would cost more than reading them.
CREATE INDEX sessions_by_owner ON sessions (owner, deleted, created_at, id);

-- It deliberately does not hold updated_at: that changes with every append, and
-- then so would the index.
CREATE INDEX sessions_by_attention ON sessions (attention);

-- Ids that somebody chose. Those that we make say where their session is.
CREATE TABLE names (
	id TEXT PRIMARY KEY,
	n  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A row is the events of one append. id is n * 2^32 + the number of the last of
-- them: one integer key gives the smallest and fastest tree, keeps a session's
-- events together and puts new sessions at the end.
CREATE TABLE events (
	id   INTEGER PRIMARY KEY,
	at   INTEGER NOT NULL,
	body BLOB    NOT NULL
) STRICT;

CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value BLOB
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
	name  TEXT PRIMARY KEY,
	value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE data_keys (
	user       TEXT PRIMARY KEY,
	id         TEXT    NOT NULL,
	master_id  TEXT    NOT NULL,
	wrapped    BLOB    NOT NULL,
	created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
	user       TEXT PRIMARY KEY,
	version    INTEGER NOT NULL,
	body       BLOB,
	updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE users (
	name       TEXT PRIMARY KEY,
	admin      INTEGER NOT NULL,
	disabled   INTEGER NOT NULL,
	created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
	id         TEXT PRIMARY KEY,
	user       TEXT    NOT NULL REFERENCES users (name),
	label      TEXT    NOT NULL,
	admin      INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	revoked_at INTEGER,
	hash       BLOB    NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;

CREATE TABLE answers (
	user       TEXT    NOT NULL,
	key        TEXT    NOT NULL,
	request    TEXT    NOT NULL,
	status     INTEGER NOT NULL,
	header     BLOB,
	body       BLOB,
	created_at INTEGER NOT NULL,
	PRIMARY KEY (user, key)
) STRICT;

CREATE INDEX answers_by_age ON answers (created_at);
