-- Servers that use this database together. Those that have ended are kept for a while, so that
-- people can be told which machine is missing.
CREATE TABLE deckhand.members (
	member  text COLLATE "C" PRIMARY KEY,
	machine text COLLATE "C" NOT NULL,
	host    text NOT NULL, -- the machine's name for people
	address text NOT NULL, -- where other members reach it
	worker  boolean NOT NULL,
	expires timestamptz NOT NULL -- by the clock of the database
) WITH (fillfactor = 50);

-- What members must know of each other at once and not for long, such as login tickets. holder is a
-- member with whose lease the value ends, or empty.
CREATE TABLE deckhand.shared (
	name    text COLLATE "C" PRIMARY KEY,
	value   text NOT NULL,
	holder  text COLLATE "C" NOT NULL,
	expires timestamptz NOT NULL,
	made    bigint GENERATED ALWAYS AS IDENTITY
) WITH (fillfactor = 50);

CREATE INDEX shared_by_expires ON deckhand.shared (expires);
