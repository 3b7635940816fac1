-- What users spent in a calendar month (2026-11, UTC), in billionths of a
-- dollar. It outlives the sessions in which it was spent.
CREATE TABLE spending (
	user   TEXT    NOT NULL,
	month  TEXT    NOT NULL,
	amount INTEGER NOT NULL,
	PRIMARY KEY (user, month)
) STRICT, WITHOUT ROWID;

-- What sessions have reserved for the model call that is under way; those
-- without one have no row. It is a row for each session and not a sum, so that
-- it can be set anew whatever it was, and a mistake does not stay in it.
CREATE TABLE reservations (
	user    TEXT    NOT NULL,
	session TEXT    NOT NULL,
	amount  INTEGER NOT NULL,
	PRIMARY KEY (user, session)
) STRICT, WITHOUT ROWID;
