-- The last event in the compressed part of a log.
ALTER TABLE sessions ADD COLUMN compressed INTEGER NOT NULL DEFAULT 0;

-- Finds sessions by a part of their title or repository: rowid is their n. It is made
-- after the sessions, in batches, so that creating one does not wait for it. The counter
-- "words" says up to which n it reaches, and unfiled which sessions below have changed.
CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = full, tokenize = 'trigram case_sensitive 1');

CREATE TABLE unfiled (n INTEGER PRIMARY KEY) STRICT;

INSERT INTO counters (name, value) VALUES ('words', 0);
