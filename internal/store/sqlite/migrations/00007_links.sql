-- Which user a person of an identity provider is.
CREATE TABLE links (
	issuer     TEXT    NOT NULL,
	subject    TEXT    NOT NULL,
	user       TEXT    NOT NULL REFERENCES users (name),
	created_at INTEGER NOT NULL,
	PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

-- The keys behind the browser logins of such people, which nobody holds.
ALTER TABLE keys ADD COLUMN sign_on INTEGER NOT NULL DEFAULT 0;
