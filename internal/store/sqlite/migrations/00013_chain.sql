-- Rows of events end with the mark of a hash chain, which earlier versions cannot read. The
-- counter says which sessions are older: their logs may begin without marks.
INSERT OR IGNORE INTO counters (name, value) SELECT 'chain', coalesce(max(n), 0) FROM sessions;
