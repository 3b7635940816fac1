-- What the identity provider said of the person's address when they last signed on.
ALTER TABLE links ADD COLUMN email TEXT NOT NULL DEFAULT '';
ALTER TABLE links ADD COLUMN email_verified INTEGER NOT NULL DEFAULT 0;
CREATE INDEX links_by_user ON links (user);
