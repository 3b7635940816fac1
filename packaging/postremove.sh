#!/bin/sh
# Deletes data and configuration only if the package is purged.
set -e
if test -d /run/systemd/system; then systemctl daemon-reload || true; fi
if test "${1:-}" = purge; then
	rm -rf /var/lib/deckhand /etc/deckhand /etc/default/deckhand
	if getent passwd deckhand >/dev/null; then userdel deckhand || true; fi
	if getent group deckhand >/dev/null; then groupdel deckhand || true; fi
fi
