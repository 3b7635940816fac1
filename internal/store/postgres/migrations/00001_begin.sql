-- Times are microseconds since 1970, UTC. Texts are compared by their bytes.

-- What lists know of a session. n is its short name inside this database: it never
-- changes and is never used again, because rows are kept as tombstones. A row is
-- changed with every append, and mostly in columns that no index has: the space
-- that is left free in each page lets the new version stay beside the old one.
CREATE TABLE deckhand.sessions (
	n          bigint   PRIMARY KEY,
	id         text     COLLATE "C" NOT NULL,
	owner      text     COLLATE "C" NOT NULL,
	created_at bigint   NOT NULL,
	updated_at bigint   NOT NULL,
	last       bigint   NOT NULL,
	attention  smallint NOT NULL, -- 0: none, 1: wants a loop, 2: runs and is idle, 3: starts
	deleted    boolean  NOT NULL,
	holder     text     COLLATE "C",
	compressed bigint   NOT NULL DEFAULT 0, -- the last event in the compressed part of the log
	row        bytea    NOT NULL            -- what lists show, in one piece
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

ALTER TABLE deckhand.sessions ALTER COLUMN row SET STORAGE MAIN;

-- Lists are newest first, ties by id.
CREATE INDEX sessions_by_owner ON deckhand.sessions (owner, created_at, id) WHERE NOT deleted;

-- Sessions that are not stopped: there are few.
CREATE INDEX sessions_by_attention ON deckhand.sessions (attention) WHERE attention > 0;

-- Numbers are given away in blocks of this size, so that ids are made without a query.
CREATE SEQUENCE deckhand.session_numbers INCREMENT 1024;

-- Ids chosen by clients. Generated ids contain the number of their session.
CREATE TABLE deckhand.names (
	id text COLLATE "C" PRIMARY KEY,
	n  bigint NOT NULL
);

-- A row is the events of one append; last is the number of the last of them. The
-- parts are by session, so that reading a log looks into one of them, and so many
-- that none gets too large to be vacuumed or rebuilt in minutes.
CREATE TABLE deckhand.events (
	n    bigint NOT NULL,
	last bigint NOT NULL,
	at   bigint NOT NULL,
	body bytea  NOT NULL,
	PRIMARY KEY (n, last)
) PARTITION BY HASH (n);

-- Old logs are compressed by us, as a whole; new ones are to be stored quickly.
ALTER TABLE deckhand.events ALTER COLUMN body SET STORAGE EXTERNAL;

DO $$
BEGIN
	FOR i IN 0..15 LOOP
		EXECUTE format('CREATE TABLE deckhand.events_%s PARTITION OF deckhand.events FOR VALUES WITH (MODULUS 16, REMAINDER %s)
			WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2)', i, i);
	END LOOP;
END $$;

-- Finds sessions by a part of their title or repository: grams are the groups of
-- three letters in them, as numbers, and a negative number for their owner. Sessions
-- without a title and a repository have no row.
CREATE TABLE deckhand.words (
	n     bigint PRIMARY KEY,
	grams integer[] NOT NULL
);

CREATE INDEX words_by_gram ON deckhand.words USING gin (grams);

CREATE TABLE deckhand.meta (
	name  text COLLATE "C" PRIMARY KEY,
	value bytea
);

CREATE TABLE deckhand.counters (
	name  text COLLATE "C" PRIMARY KEY,
	value bigint NOT NULL
);

CREATE TABLE deckhand.data_keys (
	username   text COLLATE "C" PRIMARY KEY,
	id         text COLLATE "C" NOT NULL,
	master_id  text COLLATE "C" NOT NULL,
	wrapped    bytea  NOT NULL,
	created_at bigint NOT NULL
);

CREATE TABLE deckhand.settings (
	username   text COLLATE "C" PRIMARY KEY,
	version    bigint NOT NULL,
	body       bytea,
	updated_at bigint NOT NULL
);

CREATE TABLE deckhand.users (
	name       text COLLATE "C" PRIMARY KEY,
	admin      boolean NOT NULL,
	disabled   boolean NOT NULL,
	created_at bigint  NOT NULL
);

CREATE TABLE deckhand.keys (
	id         text COLLATE "C" PRIMARY KEY,
	username   text COLLATE "C" NOT NULL REFERENCES deckhand.users (name),
	label      text COLLATE "C" NOT NULL,
	admin      boolean NOT NULL,
	created_at bigint  NOT NULL,
	expires_at bigint,
	revoked_at bigint,
	hash       bytea   NOT NULL UNIQUE,
	sign_on    boolean NOT NULL -- it stands for the browser logins of a user
);

-- Which user a person of an identity provider is.
CREATE TABLE deckhand.links (
	issuer         text COLLATE "C" NOT NULL,
	subject        text COLLATE "C" NOT NULL,
	username       text COLLATE "C" NOT NULL REFERENCES deckhand.users (name),
	created_at     bigint NOT NULL,
	email          text COLLATE "C" NOT NULL,
	email_verified boolean NOT NULL,
	PRIMARY KEY (issuer, subject)
);

CREATE INDEX links_by_user ON deckhand.links (username);

CREATE TABLE deckhand.answers (
	username   text COLLATE "C" NOT NULL,
	key        text COLLATE "C" NOT NULL,
	request    text COLLATE "C" NOT NULL,
	status     bigint NOT NULL,
	header     bytea,
	body       bytea,
	created_at bigint NOT NULL,
	PRIMARY KEY (username, key)
);

CREATE INDEX answers_by_age ON deckhand.answers (created_at);

-- What left a sandbox, or wanted to. id counts per sandbox and has no gaps, so
-- that the entry which is one too many is found without counting.
CREATE TABLE deckhand.egress (
	sandbox  text COLLATE "C" NOT NULL,
	id       bigint NOT NULL,
	at       bigint NOT NULL,
	took     bigint NOT NULL, -- microseconds
	call     text COLLATE "C" NOT NULL,
	method   text COLLATE "C" NOT NULL,
	host     text COLLATE "C" NOT NULL,
	port     bigint NOT NULL,
	sent     bigint NOT NULL,
	received bigint NOT NULL,
	verdict  text COLLATE "C" NOT NULL,
	reason   text COLLATE "C" NOT NULL,
	PRIMARY KEY (sandbox, id)
);

-- What users spent in a calendar month (2026-11, UTC), in billionths of a
-- dollar. It outlives the sessions in which it was spent.
CREATE TABLE deckhand.spending (
	username text COLLATE "C" NOT NULL,
	month    text COLLATE "C" NOT NULL,
	amount   bigint NOT NULL,
	PRIMARY KEY (username, month)
) WITH (fillfactor = 50);

-- What sessions have reserved for the model call that is under way.
CREATE TABLE deckhand.reservations (
	username text COLLATE "C" NOT NULL,
	session  text COLLATE "C" NOT NULL,
	amount   bigint NOT NULL,
	PRIMARY KEY (username, session)
) WITH (fillfactor = 50);

-- What people said of the agent's work. rating is 0 in a verdict, and event 0
-- means the conversation as a whole.
CREATE TABLE deckhand.feedback (
	id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	username    text COLLATE "C" NOT NULL,
	session     text COLLATE "C" NOT NULL,
	at          bigint NOT NULL,
	rating      bigint NOT NULL,
	event       bigint NOT NULL,
	reason      text COLLATE "C" NOT NULL,
	metadata    bytea,
	polarity    text COLLATE "C" NOT NULL,
	permissions text COLLATE "C" NOT NULL,
	email       text COLLATE "C" NOT NULL,
	version     text COLLATE "C" NOT NULL
);

CREATE INDEX feedback_by_session ON deckhand.feedback (session, id);

CREATE UNIQUE INDEX feedback_stars ON deckhand.feedback (session, username, event) WHERE rating > 0;

-- Addresses that users want to be told at.
CREATE TABLE deckhand.webhooks (
	id            text COLLATE "C" PRIMARY KEY,
	username      text COLLATE "C" NOT NULL REFERENCES deckhand.users (name) ON DELETE CASCADE,
	description   text COLLATE "C" NOT NULL,
	events        bigint  NOT NULL, -- a set of bits
	enabled       boolean NOT NULL,
	target        bytea   NOT NULL, -- sealed
	created_at    bigint  NOT NULL,
	changed_at    bigint  NOT NULL,
	failures      bigint  NOT NULL,
	failing_since bigint,
	quiet_until   bigint  NOT NULL,
	disabled      text COLLATE "C" NOT NULL -- why we did; empty if we did not
);

CREATE INDEX webhooks_by_user ON deckhand.webhooks (username, created_at, id);

-- Users' wishes to be asked for work at a git provider.
CREATE TABLE deckhand.integrations (
	id            text COLLATE "C" PRIMARY KEY,
	username      text COLLATE "C" NOT NULL REFERENCES deckhand.users (name) ON DELETE CASCADE,
	provider      text COLLATE "C" NOT NULL,
	host          text COLLATE "C" NOT NULL,
	mention       text COLLATE "C" NOT NULL,
	label         text COLLATE "C" NOT NULL,
	repositories  text COLLATE "C" NOT NULL, -- JSON
	allowed_users text COLLATE "C" NOT NULL, -- JSON
	enabled       boolean NOT NULL,
	secret        bytea   NOT NULL, -- sealed
	created_at    bigint  NOT NULL,
	changed_at    bigint  NOT NULL
);

CREATE INDEX integrations_by_user ON deckhand.integrations (username, created_at, id);

CREATE INDEX integrations_by_provider ON deckhand.integrations (provider) WHERE enabled;

-- Which conversation an issue or a pull request has.
CREATE TABLE deckhand.threads (
	integration text COLLATE "C" NOT NULL REFERENCES deckhand.integrations (id) ON DELETE CASCADE,
	repository  text COLLATE "C" NOT NULL,
	pull        boolean NOT NULL,
	number      bigint  NOT NULL,
	session     text COLLATE "C" NOT NULL,
	PRIMARY KEY (integration, repository, pull, number)
);

-- The durable queue. Its rules are in internal/queue and in the packages whose
-- names the queues have.
CREATE TABLE deckhand.queue_owners (
	queue    text COLLATE "C" NOT NULL,
	id       text COLLATE "C" NOT NULL, -- of the webhook or the integration
	username text COLLATE "C" NOT NULL REFERENCES deckhand.users (name) ON DELETE CASCADE,
	PRIMARY KEY (queue, id)
);

-- seq counts per owner and has no gaps, so that the one which is one too many is
-- found without counting. next_at is NULL when nothing is to be done now. kind,
-- state, body and details mean something to the queue's package alone.
CREATE TABLE deckhand.queue_items (
	queue      text COLLATE "C" NOT NULL,
	owner      text COLLATE "C" NOT NULL,
	seq        bigint NOT NULL,
	id         text COLLATE "C" NOT NULL,
	print      text COLLATE "C",
	lane       text COLLATE "C" NOT NULL,
	session    text COLLATE "C" NOT NULL,
	kind       text COLLATE "C" NOT NULL,
	state      text COLLATE "C" NOT NULL,
	open       boolean NOT NULL,
	attempts   bigint  NOT NULL,
	created_at bigint  NOT NULL,
	next_at    bigint,
	body       bytea,
	details    bytea,
	PRIMARY KEY (queue, owner, seq),
	UNIQUE (queue, owner, id),
	UNIQUE (queue, owner, print),
	FOREIGN KEY (queue, owner) REFERENCES deckhand.queue_owners (queue, id) ON DELETE CASCADE
);

CREATE INDEX queue_waiting ON deckhand.queue_items (queue, lane, next_at, owner, seq) WHERE next_at IS NOT NULL;

CREATE INDEX queue_opened ON deckhand.queue_items (queue, session, owner, seq) WHERE open;

CREATE INDEX queue_by_age ON deckhand.queue_items (queue, created_at);

-- What is worked on one at a time. ready_at is kept so that what is due is found
-- without looking at lanes or items that are not.
CREATE TABLE deckhand.queue_lanes (
	queue    text COLLATE "C" NOT NULL,
	name     text COLLATE "C" NOT NULL,
	username text COLLATE "C" NOT NULL,
	waiting  bigint NOT NULL,
	due_at   bigint,
	holder   text COLLATE "C" NOT NULL,
	until    bigint,
	claim    bigint NOT NULL,
	ready_at bigint,
	PRIMARY KEY (queue, name)
) WITH (fillfactor = 50);

CREATE INDEX queue_ready ON deckhand.queue_lanes (queue, ready_at) WHERE ready_at IS NOT NULL;

-- The lease of the server that uses the database. There is at most one row.
CREATE TABLE deckhand.server_lease (
	one     boolean PRIMARY KEY CHECK (one),
	server  text COLLATE "C" NOT NULL,
	expires timestamptz NOT NULL -- by the clock of the database
) WITH (fillfactor = 50);

-- append_1 stores one batch of a session, or says why not, and then has changed
-- nothing. p_n is the number that the id says, if p_ours, or one that is free, or 0.
-- p_words are NULL if they are as they were. With a charge, the caller must hold the lock of
-- the owner's money.
CREATE FUNCTION deckhand.append_1(
	p_id text, p_ours boolean, p_n bigint, p_after bigint, p_last bigint, p_at bigint, p_body bytea, p_drops boolean,
	p_owner text, p_created bigint, p_updated bigint, p_attention bigint, p_holder text, p_deleted boolean, p_row bytea, p_words text,
	p_month text, p_spent bigint, p_reserves boolean, p_reserved bigint, p_forfeits boolean, p_limit bigint, p_news boolean,
	OUT code bigint, -- 0: stored, 1: conflict, 2: over the limit, 3: has news for webhooks
	OUT has_spent bigint, OUT has_reserved bigint
) LANGUAGE plpgsql AS $$
DECLARE
	v_n bigint;
BEGIN
	code := 0;
	-- A call may be a transaction of its own.
	IF current_setting('lock_timeout') = '0' THEN
		PERFORM set_config('lock_timeout', '10s', true);
	END IF;
	IF current_setting('synchronous_commit') = 'off' THEN
		PERFORM set_config('synchronous_commit', 'on', true);
	END IF;
	IF p_news AND EXISTS (SELECT FROM deckhand.webhooks w WHERE w.username = p_owner) THEN
		code := 3;
		RETURN;
	END IF;
	IF p_limit <> 0 THEN
		SELECT coalesce(sum(s.amount), 0) INTO has_spent FROM deckhand.spending s WHERE s.username = p_owner AND s.month >= p_month;
		SELECT coalesce(sum(r.amount), 0) INTO has_reserved FROM deckhand.reservations r WHERE r.username = p_owner AND r.session <> p_id;
		IF p_spent + p_reserved > p_limit - has_spent - has_reserved THEN
			code := 2;
			RETURN;
		END IF;
	END IF;
	IF p_after = 0 THEN
		IF p_ours THEN
			INSERT INTO deckhand.sessions (n, id, owner, created_at, updated_at, last, attention, deleted, holder, row)
				VALUES (p_n, p_id, p_owner, p_created, p_updated, p_last, p_attention, p_deleted, p_holder, p_row)
				ON CONFLICT DO NOTHING RETURNING n INTO v_n;
			IF v_n IS NULL AND EXISTS (SELECT FROM deckhand.sessions s WHERE s.n = p_n AND s.id = p_id) THEN
				code := 1;
				RETURN;
			END IF;
		END IF;
		IF v_n IS NULL THEN
			INSERT INTO deckhand.names (id, n)
				VALUES (p_id, CASE WHEN p_ours OR p_n = 0 THEN nextval('deckhand.session_numbers') ELSE p_n END)
				ON CONFLICT DO NOTHING RETURNING n INTO v_n;
			IF v_n IS NULL THEN
				code := 1;
				RETURN;
			END IF;
			INSERT INTO deckhand.sessions (n, id, owner, created_at, updated_at, last, attention, deleted, holder, row)
				VALUES (v_n, p_id, p_owner, p_created, p_updated, p_last, p_attention, p_deleted, p_holder, p_row);
		END IF;
	ELSE
		FOR named IN CASE WHEN p_ours THEN 0 ELSE 1 END .. 1 LOOP
			v_n := CASE named WHEN 0 THEN p_n ELSE (SELECT m.n FROM deckhand.names m WHERE m.id = p_id) END;
			UPDATE deckhand.sessions SET owner = p_owner, created_at = p_created, updated_at = p_updated, last = p_last,
				attention = p_attention, deleted = p_deleted, holder = p_holder, row = p_row
				WHERE n = v_n AND id = p_id AND last = p_after;
			EXIT WHEN FOUND;
			v_n := NULL;
		END LOOP;
		IF v_n IS NULL THEN
			code := 1;
			RETURN;
		END IF;
	END IF;
	IF p_drops THEN
		DELETE FROM deckhand.events WHERE n = v_n AND last <= p_after;
		DELETE FROM deckhand.words WHERE n = v_n;
	ELSIF p_words = '{}' THEN
		DELETE FROM deckhand.words WHERE n = v_n;
	ELSIF p_words IS NOT NULL THEN
		INSERT INTO deckhand.words AS w (n, grams) VALUES (v_n, p_words::integer[])
			ON CONFLICT (n) DO UPDATE SET grams = excluded.grams WHERE w.grams <> excluded.grams;
	END IF;
	INSERT INTO deckhand.events (n, last, at, body) VALUES (v_n, p_last, p_at, p_body);
	IF p_spent > 0 THEN
		INSERT INTO deckhand.spending AS s (username, month, amount) VALUES (p_owner, p_month, p_spent)
			ON CONFLICT (username, month) DO UPDATE SET amount = s.amount + excluded.amount;
	END IF;
	IF p_forfeits THEN
		INSERT INTO deckhand.spending AS s (username, month, amount)
			SELECT r.username, p_month, r.amount FROM deckhand.reservations r WHERE r.username = p_owner AND r.session = p_id
			ON CONFLICT (username, month) DO UPDATE SET amount = s.amount + excluded.amount;
	END IF;
	IF p_reserves AND p_reserved > 0 THEN
		INSERT INTO deckhand.reservations (username, session, amount) VALUES (p_owner, p_id, p_reserved)
			ON CONFLICT (username, session) DO UPDATE SET amount = excluded.amount;
	ELSIF p_reserves OR p_forfeits THEN
		DELETE FROM deckhand.reservations WHERE username = p_owner AND session = p_id;
	END IF;
END $$;
