#!/bin/sh
# Stops the service and its sandboxes, except during an upgrade.
set -e
case "${1:-0}" in
remove | 0)
	if test -d /run/systemd/system; then
		systemctl disable --now deckhand.service || true
		# Sandboxes keep running when the server stops, so they must be killed separately.
		systemctl kill --kill-whom=all --signal=SIGKILL deckhand.service 2>/dev/null || true
	fi
	;;
esac
