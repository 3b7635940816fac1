-- The member that works on the session; NULL if none does. Rows of before have
-- none: the process that worked on them is gone. There is no index on it, because
-- it would change with every claim: sessions_by_attention finds the few sessions
-- that want a loop, and the holder is read from their rows.
ALTER TABLE sessions ADD COLUMN holder TEXT;
