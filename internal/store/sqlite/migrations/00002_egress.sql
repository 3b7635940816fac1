-- What left a sandbox, or wanted to. id counts per sandbox and has no gaps, so
-- that the entry which is one too many is found without counting; the key keeps
-- the entries of a sandbox together, in the order in which they are read.
CREATE TABLE egress (
	sandbox  TEXT    NOT NULL,
	id       INTEGER NOT NULL,
	at       INTEGER NOT NULL,
	took     INTEGER NOT NULL, -- microseconds
	call     TEXT    NOT NULL,
	method   TEXT    NOT NULL,
	host     TEXT    NOT NULL,
	port     INTEGER NOT NULL,
	sent     INTEGER NOT NULL,
	received INTEGER NOT NULL,
	verdict  TEXT    NOT NULL,
	reason   TEXT    NOT NULL,
	PRIMARY KEY (sandbox, id)
) STRICT, WITHOUT ROWID;
