-- One queue in place of two: what webhooks are told, and what git providers told.
-- The rules are in internal/queue and in the packages whose names the queues have.
CREATE TABLE queue_owners (
	queue TEXT NOT NULL, -- webhooks, triggers
	id    TEXT NOT NULL, -- of the webhook or the integration
	user  TEXT NOT NULL REFERENCES users (name) ON DELETE CASCADE,
	PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;

-- seq counts per owner and has no gaps, so that the one which is one too many is
-- found without counting. next_at is NULL when nothing is to be done now. kind,
-- state, body and details mean something to the queue's package alone.
CREATE TABLE queue_items (
	queue      TEXT    NOT NULL,
	owner      TEXT    NOT NULL,
	seq        INTEGER NOT NULL,
	id         TEXT    NOT NULL,
	print      TEXT,
	lane       TEXT    NOT NULL,
	session    TEXT    NOT NULL,
	kind       TEXT    NOT NULL,
	state      TEXT    NOT NULL,
	open       INTEGER NOT NULL,
	attempts   INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	next_at    INTEGER,
	body       BLOB,
	details    BLOB,
	PRIMARY KEY (queue, owner, seq),
	UNIQUE (queue, owner, id),
	UNIQUE (queue, owner, print),
	FOREIGN KEY (queue, owner) REFERENCES queue_owners (queue, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_waiting ON queue_items (queue, lane, next_at, owner, seq) WHERE next_at IS NOT NULL;

CREATE INDEX queue_opened ON queue_items (queue, session, owner, seq) WHERE open = 1;

CREATE INDEX queue_by_age ON queue_items (queue, created_at);

-- What is worked on one at a time. ready_at is kept so that what is due is found
-- without looking at lanes or items that are not.
CREATE TABLE queue_lanes (
	queue    TEXT    NOT NULL,
	name     TEXT    NOT NULL,
	user     TEXT    NOT NULL,
	waiting  INTEGER NOT NULL,
	due_at   INTEGER,
	holder   TEXT    NOT NULL,
	until    INTEGER,
	claim    INTEGER NOT NULL,
	ready_at INTEGER,
	PRIMARY KEY (queue, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX queue_ready ON queue_lanes (queue, ready_at) WHERE ready_at IS NOT NULL;

INSERT INTO queue_owners SELECT 'webhooks', id, user FROM webhooks;

INSERT INTO queue_owners SELECT 'triggers', id, user FROM integrations;

INSERT INTO queue_items (queue, owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details)
SELECT 'webhooks', webhook, seq, id, NULL, webhook, session, type, state, next_at IS NOT NULL, attempts, created_at, next_at, body,
	CAST(json_object('event', event, 'last_at', coalesce(last_at, 0), 'took', took, 'status', status, 'error', error) AS BLOB)
FROM deliveries;

INSERT INTO queue_items (queue, owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details)
SELECT 'triggers', integration, seq, id, print,
	CASE WHEN state = 'working' THEN 'session ' || session
		ELSE CASE WHEN pull THEN 'pull ' ELSE 'issue ' END || integration || ' ' || repository || ' ' || number END,
	session, event, state, next_at IS NOT NULL OR state = 'working', attempts, created_at, next_at, task,
	CAST(json_object('repository', repository, 'pull', json(CASE WHEN pull THEN 'true' ELSE 'false' END), 'number', number, 'actor', actor,
		'reason', reason, 'said', said, 'posting', posting, 'done_at', coalesce(done_at, 0)) AS BLOB)
FROM arrivals;

INSERT INTO queue_lanes (queue, name, user, waiting, due_at, holder, until, claim, ready_at)
SELECT 'webhooks', id, user, waiting, CASE WHEN enabled THEN due_at END, '', NULL, 0, CASE WHEN enabled THEN due_at END
FROM webhooks WHERE waiting > 0;

INSERT INTO queue_lanes (queue, name, user, waiting, due_at, holder, until, claim, ready_at)
SELECT i.queue, i.lane, min(o.user), count(*), min(i.next_at), '', NULL, 0, min(i.next_at)
FROM queue_items i JOIN queue_owners o ON o.queue = i.queue AND o.id = i.owner
WHERE i.queue = 'triggers' AND i.next_at IS NOT NULL GROUP BY i.lane;

DROP TABLE deliveries;

DROP TABLE arrivals;

DROP INDEX webhooks_due;

ALTER TABLE webhooks DROP COLUMN waiting;

ALTER TABLE webhooks DROP COLUMN due_at;
