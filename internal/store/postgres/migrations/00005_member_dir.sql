-- The data directory of a member, for messages: several servers on one machine have the same host. Earlier versions leave it empty.
ALTER TABLE deckhand.members ADD COLUMN IF NOT EXISTS dir text NOT NULL DEFAULT '';
