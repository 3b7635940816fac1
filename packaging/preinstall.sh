#!/bin/sh
# Creates the user and group that the service runs as.
set -e
if ! getent group deckhand >/dev/null; then groupadd --system deckhand; fi
if ! getent passwd deckhand >/dev/null; then
	useradd --system --gid deckhand --home-dir /var/lib/deckhand --no-create-home --shell /usr/sbin/nologin \
		--comment "Deckhand server" deckhand
fi
