#!/bin/sh
# Starts the service, or restarts it after an upgrade. Conversations continue.
set -e
chown root:deckhand /etc/deckhand /etc/deckhand/deckhand.yaml
chmod 0750 /etc/deckhand
chmod 0640 /etc/deckhand/deckhand.yaml
if test -d /run/systemd/system; then
	systemctl daemon-reload
	if systemctl is-active --quiet deckhand.service; then
		systemctl restart deckhand.service
	elif test -z "${2:-}" && test "${1:-1}" != 2; then # not an upgrade: for upgrades, deb passes the old version and rpm passes 2
		systemctl enable --now deckhand.service
		echo "Deckhand is running. To show the login link, run: journalctl -u deckhand | grep 'log in'"
	fi
else
	echo "systemd is not running. To start the server, run: deckhand serve"
fi
