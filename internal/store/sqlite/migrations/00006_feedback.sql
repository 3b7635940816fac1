-- What people said of the agent's work. Ids are never used twice, so that a page
-- which is read while others are removed shows nothing a second time. rating is 0
-- in a verdict, and event 0 means the conversation as a whole.
CREATE TABLE feedback (
	id          INTEGER PRIMARY KEY AUTOINCREMENT,
	user        TEXT    NOT NULL,
	session     TEXT    NOT NULL,
	at          INTEGER NOT NULL,
	rating      INTEGER NOT NULL,
	event       INTEGER NOT NULL,
	reason      TEXT    NOT NULL,
	metadata    BLOB,
	polarity    TEXT    NOT NULL,
	permissions TEXT    NOT NULL,
	email       TEXT    NOT NULL,
	version     TEXT    NOT NULL
) STRICT;

CREATE INDEX feedback_by_session ON feedback (session, id);

CREATE UNIQUE INDEX feedback_stars ON feedback (session, user, event) WHERE rating > 0;
