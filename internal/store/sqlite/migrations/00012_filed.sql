-- Whether a session is in the index of its owner's. Upkeep sets it, in batches: new sessions
-- belong to any owner, so each would change a page of its own in the index, and creating one
-- would mostly be writing that page. The counter "filed" says up to which n all are filed;
-- what is above it is read one by one.
ALTER TABLE sessions ADD COLUMN filed INTEGER NOT NULL DEFAULT 1;

DROP INDEX sessions_by_owner;

CREATE INDEX sessions_by_owner ON sessions (owner, deleted, created_at, id) WHERE filed = 1;

INSERT INTO counters (name, value) SELECT 'filed', coalesce(max(n), 0) FROM sessions;
