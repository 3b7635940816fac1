#!/bin/sh
# Creates the user and group that the service runs as.
set -e
if ! getent group deckhand >/dev/null; then groupadd --system deckhand; fi
if ! getent passwd deckhand >/dev/null; then
	useradd --system --gid deckhand --home-dir /var/lib/deckhand --no-create-home --shell /usr/sbin/nologin \
		--comment "Deckhand server" deckhand
fi
# Tell postinstall.sh to start the service. After apt remove, deb passes the old version to it as in an upgrade.
case "${1:-1}" in
install | 1) : >"${DPKG_ROOT:-}/run/deckhand.installed" ;;
esac
